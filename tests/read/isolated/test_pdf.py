import pytest

from trilens.errors import BadInput
from trilens.text.document import Document

from .conftest import Documents

pytest.importorskip("pypdfium2")


def test_each_page_is_a_document_that_names_its_page(documents: Documents) -> None:
    first, second = documents("handbook.pdf")
    facts = {"pages": 2, "author": "Ada Lovelace", "date": "2026-11-18T23:43:35Z", "path": "handbook.pdf"}
    assert isinstance(first, Document)
    assert (first.doc_id, first.title, first.metadata) == ("handbook.pdf#page=1", "Pump handbook", {"page": 1, **facts})
    assert "Heat transfer in the casing limits their \nspeed." in first.text and "Use lithium grease." in first.text
    assert second == Document(
        "handbook.pdf#page=2",
        "Valves\nValves control the flow of a liquid through a naïve pipe: open(valve).\nMention the noise.",
        "Pump handbook",
        {"page": 2, **facts},
    )


def test_words_that_a_line_end_divides_are_whole(documents: Documents) -> None:
    (page,) = documents("hyphens.pdf")
    assert isinstance(page, Document)
    assert page.text == "The flow of a liquid is controlled by well-known valves."
    assert (page.title, "author" in page.metadata) == ("", False)  # "untitled" and "anonymous" in the file


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("scanned.pdf", r"^scanned.pdf has no text on any page \(1 in all\), .*run text recognition first"),
        ("encrypted.pdf", r"^encrypted.pdf is encrypted; expected a file without a password: remove it"),
    ],
)
def test_pages_without_text_and_passwords_are_errors(documents: Documents, name: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        documents(name)

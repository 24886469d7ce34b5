from pathlib import Path

import pytest

from trilens.errors import BadInput
from trilens.text.document import Document

from .conftest import Documents

pytest.importorskip("striprtf")


def test_the_text_title_and_author_are_read(documents: Documents) -> None:
    (document,) = documents("handbook.rtf")
    assert isinstance(document, Document)
    assert (document.doc_id, document.title) == ("handbook.rtf", "Pump handbook")
    assert document.metadata == {"author": "Ada Lovelace", "path": "handbook.rtf"}
    assert document.text.endswith(
        "Valves\nValves control the flow of a liquid through a naïve pipe: open(valve).\nMention the noise."
    )


def test_another_format_is_an_error(documents: Documents, tmp_path: Path) -> None:
    (tmp_path / "a.rtf").write_text("plain")
    with pytest.raises(BadInput, match=r"^a.rtf does not start with \{\\rtf; expected RTF"):
        documents(tmp_path / "a.rtf")

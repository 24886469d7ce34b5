import zipfile
from pathlib import Path

import pytest

from trilens.errors import BadInput
from trilens.text.document import Document

from .conftest import Documents

ENCRYPTION = """<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container" xmlns:e="http://www.w3.org/2001/04/xmlenc#">
<e:EncryptedData><e:CipherData><e:CipherReference URI="EPUB/text/ch001.xhtml"/></e:CipherData></e:EncryptedData></encryption>"""


def test_each_chapter_is_a_document_named_by_its_heading(documents: Documents) -> None:
    facts = {"chapters": 3, "author": "Ada Lovelace", "date": "2026-11-18T23:43:15Z", "lang": "en", "path": "handbook.epub"}
    cover, pumps, valves = documents("handbook.epub")
    assert isinstance(cover, Document) and isinstance(pumps, Document)
    assert [cover.title, pumps.title] == ["Pump handbook", "Pump handbook: Centrifugal pumps"]
    assert valves == Document(
        "handbook.epub#chapter=3",
        "Valves\nValves control the flow of a liquid through a naïve pipe: open(valve).\nMention the noise.",
        "Pump handbook: Valves",
        {"chapter": 3, **facts},
    )


def test_a_book_whose_chapters_are_encrypted_is_an_error(documents: Documents, data: Path, tmp_path: Path) -> None:
    book = tmp_path / "locked.epub"
    book.write_bytes((data / "handbook.epub").read_bytes())
    with zipfile.ZipFile(book, "a") as archive:
        archive.writestr("META-INF/encryption.xml", ENCRYPTION)
    with pytest.raises(BadInput, match=r"^locked.epub is encrypted \(digital rights management\)"):
        documents(book)

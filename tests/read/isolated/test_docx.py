from pathlib import Path

import pytest

from trilens.errors import BadInput
from trilens.text.document import Document

from .conftest import Documents, Repack

pytest.importorskip("docx")
TEXT = """\
Pump handbook

Ada Lovelace

Centrifugal pumps

Centrifugal pumps move water. Heat transfer in the casing limits their speed.

part  interval
bearing  every month
gasket  every year

Valves

Valves control the flow of a liquid through a naïve pipe: open(valve).

Mention the noise.

 Use lithium grease."""
BODY = "word/document.xml"


@pytest.mark.parametrize("name", ["handbook.docx", "libreoffice.docx"])
def test_files_of_two_programs_have_the_same_text(documents: Documents, name: str) -> None:
    metadata = {"author": "Ada Lovelace", "date": "2026-11-18T23:43:14Z", "path": name}
    assert documents(name) == [Document(name, TEXT, "Pump handbook", metadata)]


def test_insertions_and_text_boxes_are_read_and_deletions_are_not(documents: Documents, repack: Repack) -> None:
    tracked = b"<w:p><w:ins><w:r><w:t>In</w:t></w:r></w:ins><w:del><w:r><w:delText>Out</w:delText></w:r></w:del>"
    boxed = (
        b"<w:r><w:t>:</w:t><w:pict><w:txbxContent><w:p><w:r><w:t>Boxed</w:t></w:r></w:p></w:txbxContent></w:pict></w:r></w:p>"
    )
    (document,) = documents(repack("handbook.docx", BODY, b"<w:p>", tracked + boxed + b"<w:p>"))
    assert isinstance(document, Document)
    assert document.text.startswith("In:\n\nBoxed\n\nPump handbook\n\n")


def test_an_encrypted_file_and_an_old_one_are_errors(documents: Documents, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"^encrypted.docx is encrypted; expected a file without a password"):
        documents("encrypted.docx")
    old = tmp_path / "old.docx"
    old.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(1000))
    with pytest.raises(BadInput, match=r"^old.docx has the format of Office 97-2003; .*: save it as DOCX"):
        documents(old)

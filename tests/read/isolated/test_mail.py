import gzip
from pathlib import Path

import pytest

from trilens.errors import BadInput
from trilens.text.document import Document

from .conftest import Documents

DATE = "2026-11-18T23:44:37Z"
SENDER = "Ada Lovelace <ada@example.org>"
BROKEN = b"""\
From: "unclosed <a@b
To: =?utf-8?q?=FF?= <>, ,
Date: yesterday
Content-Type: multipart/alternative; boundary=x

--x
Content-Type: text/plain

--x
Content-Type: text/html; charset=nonsense

<p>Only <b>HTML</b> \xc3\xa9</p>
--x--
"""


def test_a_message_has_its_subject_body_and_sender(documents: Documents) -> None:
    (message,) = documents("patch.eml")
    assert isinstance(message, Document)
    assert (message.doc_id, message.title) == ("patch.eml", "[PATCH] Pumpe für Öl, step 2")
    assert message.metadata == {"from": SENDER, "date": DATE, "path": "patch.eml"}
    assert message.text.startswith("Grease the bearing every month.\n---\n pumps.txt | 1 +\n")


def test_each_message_of_a_mailbox_is_a_document_and_attachments_are_named(documents: Documents) -> None:
    first, second = documents("patches.mbox")
    assert isinstance(first, Document) and isinstance(second, Document)
    assert [first.doc_id, second.doc_id] == ["patches.mbox#1", "patches.mbox#2"]
    attachments = ["0001-Pumpe-f-r-l-step-1.patch"]
    assert first.metadata == {"from": SENDER, "date": DATE, "attachments": attachments, "path": "patches.mbox"}
    assert first.text.strip().startswith("Grease the bearing every month.")


def test_messages_are_named_by_their_id_and_lines_are_unquoted(documents: Documents, tmp_path: Path) -> None:
    message = b"From ada Mon Jan  1 00:00:00 2024\nMessage-ID: <%d@example.org>\nSubject: s\n\nOne.\n>From two.\n\n"
    (tmp_path / "a.mbox.gz").write_bytes(gzip.compress(message % 1 + message % 2 + message % 2))
    found = documents(tmp_path / "a.mbox.gz")
    ids = [f"a.mbox.gz#{name}" for name in ("1@example.org", "2@example.org", "2@example.org~2")]
    assert [document.doc_id for document in found if isinstance(document, Document)] == ids
    assert {document.text for document in found if isinstance(document, Document)} == {"One.\nFrom two.\n"}


def test_a_message_with_broken_headers_is_read_as_far_as_possible(documents: Documents, tmp_path: Path) -> None:
    (tmp_path / "a.eml").write_bytes(BROKEN)
    (message,) = documents(tmp_path / "a.eml")
    assert isinstance(message, Document)
    assert message.text == "Only HTML é"
    assert "date" not in message.metadata


@pytest.mark.parametrize(("name", "message"), [("a.mbox", "does not start with a line `From"), ("a.eml", "has no header")])
def test_other_texts_are_errors(documents: Documents, tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / name).write_text("\nplain text\n")
    with pytest.raises(BadInput, match=f"^{name} {message}"):
        documents(tmp_path / name)

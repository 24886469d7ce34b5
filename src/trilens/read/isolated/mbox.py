"""Mailboxes (.mbox): one document per message, named by its Message-ID."""

import mailbox
import re
from collections.abc import Iterator
from email import policy
from email.parser import BytesParser

from trilens.errors import BadInput
from trilens.read.formats import PageContent
from trilens.read.isolated.local_file import LocalFile
from trilens.read.isolated.mail import content_of, header

SEPARATOR = b"From "
QUOTED = re.compile(rb"^>(>*From )", re.MULTILINE)


def parse(file: LocalFile) -> Iterator[PageContent]:
    """Yield the messages."""
    with file.path.open("rb") as stream:
        if stream.read(len(SEPARATOR)) != SEPARATOR:
            raise BadInput("does not start with a line `From …`; expected a mailbox: rename it to .eml if it is one message")
    messages = mailbox.mbox(file.path, create=False)
    parser = BytesParser(policy=policy.default)
    for number, key in enumerate(messages.iterkeys(), start=1):
        message = parser.parsebytes(QUOTED.sub(rb"\1", messages.get_bytes(key)))
        yield content_of(message, header(message, "Message-ID").strip("<>") or str(number))
    messages.close()

"""E-mail (.eml): the subject is the title, the body the text; attachments are named in the metadata."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from email import policy
from email.message import EmailMessage, MIMEPart
from email.parser import BytesParser

from trilens.errors import BadInput
from trilens.read.described import described, moment, one_line
from trilens.read.formats import PageContent
from trilens.read.html import read_html
from trilens.read.isolated.local_file import LocalFile


def parse(file: LocalFile) -> Iterator[PageContent]:
    """Yield the message."""
    with file.path.open("rb") as stream:
        message = BytesParser(policy=policy.default).parse(stream)
    if not message.keys():
        raise BadInput("has no header; expected an e-mail with lines such as From: and Subject: repair it")
    yield content_of(message)


def content_of(message: EmailMessage, part: str = "") -> PageContent:
    """The content of a message."""
    subject = header(message, "Subject")
    return PageContent(
        subject,
        _text(message) or subject,
        described(
            from_=header(message, "From"),
            to=header(message, "To"),
            cc=header(message, "Cc"),
            date=_date(message),
            attachments=[name for name in (one_line(item.get_filename()) for item in message.iter_attachments()) if name],
        ),
        part,
    )


def header(message: EmailMessage, name: str) -> str:
    """A header on one line; empty if it is missing or cannot be parsed."""
    with suppress(ValueError, LookupError, AttributeError, TypeError):  # defects that the parser does not expect
        return one_line(str(message[name] or "").encode(errors="replace").decode())
    return ""


def _text(message: EmailMessage) -> str:
    """The plain text of the body, or else the visible text of its HTML."""
    for kind in ("plain", "html"):
        body = message.get_body(preferencelist=(kind,))
        if body is not None:
            text = _decoded(body)
            text = read_html(text)[1] if kind == "html" else text
            if text.strip():
                return text
    return ""


def _decoded(body: MIMEPart) -> str:
    raw = body.get_payload(decode=True)
    if not isinstance(raw, bytes):
        return ""
    try:
        text = raw.decode(body.get_content_charset("utf-8"), errors="replace")
    except LookupError:  # no such character set
        text = raw.decode("utf-8", errors="replace")
    return text.replace("\r\n", "\n").replace("\0", "")


def _date(message: EmailMessage) -> str:
    with suppress(ValueError, LookupError, AttributeError, TypeError):
        time = getattr(message["Date"], "datetime", None)
        return moment(time if isinstance(time, datetime) else None)
    return ""

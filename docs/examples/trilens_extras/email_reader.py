"""A reader of e-mails (.eml): the subject is the title, the plain text body is the text, the sender is metadata."""

from email import policy
from email.parser import BytesParser

from trilens.read.formats import InputFile, PageContent, page_reader


def read_email(file: InputFile) -> PageContent:
    """The content of one message."""
    message = BytesParser(policy=policy.default).parse(file.stream)
    body = message.get_body(preferencelist=("plain",))
    return PageContent(str(message["subject"] or ""), body.get_content() if body else "", {"from": str(message["from"] or "")})


EMAIL = page_reader([".eml"], "e-mail", read_email)

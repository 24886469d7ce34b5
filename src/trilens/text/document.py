"""A document: the unit that users add, delete and get back."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trilens.errors import BadInput

MAX_ID_BYTES = 1024


@dataclass(frozen=True, slots=True)
class Document:
    """One text with the user's own id. `metadata` is any JSON object; filters look into it."""

    doc_id: str
    text: str
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.doc_id, str) or not self.doc_id:
            raise BadInput(f"doc_id is {self.doc_id!r}; expected a non-empty string")
        require_utf8("doc_id", self.doc_id)
        if len(self.doc_id.encode()) > MAX_ID_BYTES:
            raise BadInput(f"doc_id {self.doc_id[:40]!r}… is longer than {MAX_ID_BYTES} bytes; use a shorter id")
        for name, value in (("title", self.title), ("text", self.text)):
            if not isinstance(value, str):
                raise BadInput(f"{name} of document {self.doc_id!r} is {type(value).__name__}; expected a string")
            require_utf8(f"{name} of document {self.doc_id!r}", value)
        if not isinstance(self.metadata, Mapping):
            kind = type(self.metadata).__name__
            raise BadInput(f"metadata of document {self.doc_id!r} is {kind}; expected an object with string keys")
        self.metadata_json()

    def metadata_json(self) -> str:
        """The metadata in canonical form: equal objects give equal strings."""
        try:
            text = json.dumps(self.metadata, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
        except (TypeError, ValueError, RecursionError) as error:
            raise BadInput(f"metadata of document {self.doc_id!r} cannot be written as JSON: {error}") from error
        require_utf8(f"metadata of document {self.doc_id!r}", text)
        return text


def require_utf8(what: str, text: str) -> None:
    """Refuse lone surrogates: they have no UTF-8 form, so they could not be stored or encoded."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        bad = ord(text[error.start])
        raise BadInput(
            f"{what} holds the lone surrogate U+{bad:04X} at character {error.start}; expected valid Unicode: "
            "repair the source, or skip the record"
        ) from error

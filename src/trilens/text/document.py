"""Documents: the unit that users add, delete and retrieve."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trilens.errors import BadInput

MAX_ID_BYTES = 1024
MAX_METADATA_LEVELS = 32  # objects and lists inside each other; serialisers and parsers stop at some hundreds

CANONICAL = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Document:
    """A text with the user's id. `metadata` is a JSON object that filters refer to."""

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
        if _is_deeper(self.metadata, MAX_METADATA_LEVELS):
            raise BadInput(
                f"metadata of document {self.doc_id!r} is nested more than {MAX_METADATA_LEVELS} levels deep; expected a "
                "flatter object"
            )
        self.metadata_json()

    def metadata_json(self) -> str:
        """The metadata as canonical JSON: equal objects give equal strings."""
        try:
            text = CANONICAL.encode(self.metadata)
        except (TypeError, ValueError, RecursionError) as error:
            raise BadInput(f"metadata of document {self.doc_id!r} cannot be written as JSON: {error}") from error
        require_utf8(f"metadata of document {self.doc_id!r}", text)
        return text


def _is_deeper(value: Any, levels: int) -> bool:
    """Whether objects and lists are nested in more levels than these."""
    if isinstance(value, Mapping):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return False
    return levels == 0 or any(_is_deeper(item, levels - 1) for item in value)


def require_utf8(name: str, text: str) -> None:
    """Raise `BadInput` if the text has lone surrogates, which UTF-8 cannot encode. `name` names the text in the error."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        surrogate = ord(text[error.start])
        raise BadInput(
            f"{name} holds the lone surrogate U+{surrogate:04X} at character {error.start}; expected valid Unicode: "
            "repair the source or skip the record"
        ) from error

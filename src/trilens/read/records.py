"""Convert records to documents: fields for id, text and title are selected, all others become metadata."""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from trilens.errors import BadInput, Unreadable
from trilens.read.decode import Place
from trilens.read.values import kind_of
from trilens.text.document import Document
from trilens.text.vectors import check_vector, write_vector

ID_FIELDS = ("_id", "id", "doc_id", "docid")
TEXT_FIELDS = ("text", "contents", "body", "content")
TITLE_FIELDS = ("title",)
SHOWN_FIELDS = 12
ID_HASH_BYTES = 12

Record = tuple[Place, object]
"""The place and the value of a record: an object in a valid file, any JSON value in an invalid one."""


class TypedRow(dict[str, Any]):
    """A row of a table with typed values. Its texts identify it, because the types depend on the other rows."""

    def __init__(self, texts: dict[str, str], typed: dict[str, Any]) -> None:
        super().__init__(texts | typed)
        self.texts = texts


@dataclass(frozen=True, slots=True)
class Fields:
    """The names of record fields; None selects the first usual name that a record has.

    `vector` names a field of weighted terms that replaces the text; all fields but it and the id are metadata then.
    """

    id: str | None = None
    text: str | None = None
    title: str | None = None
    vector: str | None = None

    def find(self, names: Iterable[str], place: Place) -> tuple[str | None, str, str | None]:
        """Select the id, text and title fields among `names`. Id and title are optional unless their names are set."""
        present = list(names)
        doc_id = self.find_id(present, place)
        text = _choose("text", self.text, TEXT_FIELDS, present, place)
        title = next((name for name in TITLE_FIELDS if name in present), None) if self.title is None else self.title
        return doc_id, text, title

    def find_id(self, present: list[str], place: Place) -> str | None:
        """The id field; None if the records are identified by their content."""
        if self.id is None:
            return next((name for name in ID_FIELDS if name in present), None)
        return _choose("id", self.id, (), present, place)


AUTOMATIC = Fields()


def to_document(record: Record, fields: Fields, source: str = "record") -> Document:
    """Convert a record to a document; errors name its place. A record without an id gets one of `source` and its content."""
    place, value = record
    if not isinstance(value, dict):
        message = f"{place}: the record is {kind_of(value)}; expected an object with an id and a text field"
        raise Unreadable(message, "not an object")
    if fields.vector is not None:
        return _vector_document(value, fields, place, source)
    id_field, text_field, title_field = fields.find(value, place)
    title = value.get(title_field) if title_field is not None else None
    used = (id_field, text_field, title_field)
    try:
        return Document(
            doc_id=_id(value, id_field, source),
            text=_string(value[text_field], text_field),
            title="" if title is None else _string(title, str(title_field)),
            metadata=_metadata({name: member for name, member in value.items() if name not in used}),
        )
    except BadInput as error:
        raise BadInput(f"{place}: {error}") from error


def content_id(source: str, value: object) -> str:
    """An id that depends on the source and the content of a record alone."""
    content = json.dumps(value, sort_keys=True).encode()
    return f"{source}#{blake2b(content, digest_size=ID_HASH_BYTES).hexdigest()}"


def _vector_document(value: dict[str, Any], fields: Fields, place: Place, source: str) -> Document:
    id_field = fields.find_id(list(value), place)
    vector_field = _choose("vector", fields.vector, (), list(value), place)
    try:
        return Document(
            doc_id=_id(value, id_field, source),
            text=write_vector(check_vector(value[vector_field])),
            metadata=_metadata({name: member for name, member in value.items() if name not in (id_field, vector_field)}),
        )
    except BadInput as error:
        raise BadInput(f"{place}: {error}") from error


def _choose(role: str, field: str | None, usual: tuple[str, ...], present: list[str], place: Place) -> str:
    names = usual if field is None else (field,)
    for name in names:
        if name in present:
            return name
    raise Unreadable(
        f"{place}: no {role} field; expected {' or '.join(map(repr, names))}, found {_listed(present)}: "
        f"choose one with --{role}-field NAME",
        f"without {'an' if role == 'id' else 'a'} {role} field",
    )


def _listed(names: list[str]) -> str:
    if not names:
        return "no fields at all"
    listed = ", ".join(repr(name[:40]) for name in names[:SHOWN_FIELDS])
    return listed + (f" and {len(names) - SHOWN_FIELDS} more" if len(names) > SHOWN_FIELDS else "")


def _id(record: dict[str, Any], field: str | None, source: str) -> str:
    if field is None:
        return content_id(source, record.texts if isinstance(record, TypedRow) else record)
    value = record[field]
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return str(value)
    raise BadInput(f"the id field {field!r} is {kind_of(value)}; expected a string or a number")


def _string(value: object, field: str) -> str:
    if isinstance(value, str):
        return value
    raise BadInput(f"the field {field!r} is {kind_of(value)}; expected a string")


def _metadata(others: dict[str, Any]) -> dict[str, Any]:
    """The remaining fields. A `metadata` object is flattened, so that filters can name its members directly."""
    members = others.get("metadata")
    if members is None:
        others.pop("metadata", None)
        return others
    if not isinstance(members, dict):
        return others
    del others["metadata"]
    for name, value in members.items():
        if name in others and others[name] != value:
            raise BadInput(f"{name!r} is both a field and a member of 'metadata', with different values; remove one of them")
    return {**others, **members}

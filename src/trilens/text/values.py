"""Values of a record as an example needs them: strings, lists of strings, scores, ids; with one line for what they are not."""

from collections.abc import Mapping
from typing import Any

from trilens.errors import BadInput

KINDS = {dict: "an object", list: "an array", str: "a string", bool: "true or false", type(None): "null"}


def an_object(value: object) -> dict[str, Any]:
    """The record itself."""
    if not isinstance(value, dict):
        raise BadInput(f"the record is {kind_of(value)}; expected an object")
    return value


def a_string(record: Mapping[str, Any], *names: str) -> str:
    """The first of these fields that is there."""
    for name in names:
        if name in record:
            if isinstance(record[name], str):
                return str(record[name])
            raise BadInput(f"the field {name!r} is {kind_of(record[name])}; expected a string")
    found = ", ".join(repr(name[:40]) for name in list(record)[:12]) or "no fields at all"
    raise BadInput(f"there is no field {' or '.join(map(repr, names))}; found {found}")


def a_list(record: Mapping[str, Any], name: str) -> list[Any]:
    """A field that may be missing, or null: then it is empty."""
    value = record.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise BadInput(f"the field {name!r} is {kind_of(value)}; expected an array")
    return value


def strings(record: Mapping[str, Any], name: str) -> list[str]:
    """A list of strings that may be missing."""
    values = a_list(record, name)
    for value in values:
        if not isinstance(value, str):
            raise BadInput(f"the field {name!r} holds {kind_of(value)}; expected strings")
    return values


def scores(record: Mapping[str, Any], name: str) -> list[float] | None:
    """A list of numbers; None if it is missing."""
    if record.get(name) is None:
        return None
    return [a_number(value, name) for value in a_list(record, name)]


def a_number(value: object, name: str) -> float:
    """A score."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    raise BadInput(f"the field {name!r} holds {kind_of(value)}; expected numbers")


def an_id(value: object, what: str) -> str:
    """Ids may be numbers in the file."""
    if isinstance(value, str) and value:
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise BadInput(f"{what} is {kind_of(value) if value != '' else 'empty'}; expected a string or a whole number")


def kind_of(value: object) -> str:
    """A value in words."""
    return KINDS.get(type(value), f"the number {value!r:.20}")

"""Typed access to the values of JSON records: strings, lists, numbers and ids; wrong types raise `BadInput`."""

from collections.abc import Mapping
from typing import Any

from trilens.errors import BadInput

KINDS = {dict: "an object", list: "an array", str: "a string", bool: "true or false", type(None): "null"}


def an_object(value: object) -> dict[str, Any]:
    """Check that a record is an object."""
    if not isinstance(value, dict):
        raise BadInput(f"the record is {kind_of(value)}; expected an object")
    return value


def a_string(record: Mapping[str, Any], *names: str) -> str:
    """The string in the first of these fields that the record has."""
    for name in names:
        if name in record:
            if isinstance(record[name], str):
                return str(record[name])
            raise BadInput(f"the field {name!r} is {kind_of(record[name])}; expected a string")
    present = ", ".join(repr(name[:40]) for name in list(record)[:12]) or "no fields at all"
    raise BadInput(f"there is no field {' or '.join(map(repr, names))}; found {present}")


def a_list(record: Mapping[str, Any], name: str) -> list[Any]:
    """The array in a field; empty if the field is missing or null."""
    value = record.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise BadInput(f"the field {name!r} is {kind_of(value)}; expected an array")
    return value


def strings(record: Mapping[str, Any], name: str) -> list[str]:
    """The array of strings in a field; empty if the field is missing or null."""
    values = a_list(record, name)
    for value in values:
        if not isinstance(value, str):
            raise BadInput(f"the field {name!r} holds {kind_of(value)}; expected strings")
    return values


def scores(record: Mapping[str, Any], name: str) -> list[float] | None:
    """The array of numbers in a field; None if the field is missing or null."""
    if record.get(name) is None:
        return None
    return [a_number(value, name) for value in a_list(record, name)]


def a_number(value: object, name: str) -> float:
    """Convert a number to a float; `name` names its field in errors."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    raise BadInput(f"the field {name!r} holds {kind_of(value)}; expected numbers")


def an_id(value: object, name: str) -> str:
    """Convert a string or an integer to an id; `name` names it in errors."""
    if isinstance(value, str) and value:
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise BadInput(f"{name} is {kind_of(value) if value != '' else 'empty'}; expected a string or an integer")


def kind_of(value: object) -> str:
    """The type of a JSON value in words, for messages."""
    return KINDS.get(type(value), f"the number {value!r:.20}")

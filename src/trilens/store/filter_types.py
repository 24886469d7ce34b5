"""Filters that compare metadata with values of another type, which never match, and so would silently miss documents."""

from collections.abc import Iterator, Mapping
from typing import Any

from trilens.store.filters import LOGIC, MetadataField

KINDS = {"integer": "a number", "real": "a number", "text": "text", "true": "true or false", "false": "true or false"}
"""The types of SQLite that a comparison may expect, in words. Null, objects and missing fields are no mistakes."""


def compared_kinds(where: Mapping[str, Any]) -> dict[str, set[str]]:
    """The kinds of values with which a valid filter compares each field."""
    kinds: dict[str, set[str]] = {}
    for key, value in _operands(where):
        kind = _kind(value)
        if kind is not None:
            kinds.setdefault(key, set()).add(kind)
    return kinds


def json_path(key: str) -> str:
    """The path of a field in SQLite's syntax."""
    return MetadataField(key, 0).path


def unexpected(kinds: set[str], counts: Mapping[str, int]) -> dict[str, int]:
    """The kinds that a field has but is not compared with, and in how many documents; `counts` are by types of SQLite."""
    found: dict[str, int] = {}
    for name, count in counts.items():
        if name in KINDS and KINDS[name] not in kinds:
            found[KINDS[name]] = found.get(KINDS[name], 0) + count
    return found


def describe(key: str, kinds: set[str], found: Mapping[str, int]) -> str:
    """One line on a field whose type is not that of the filter."""
    shown = " and ".join(f"{kind} in {count:,} document{'s' * (count != 1)}" for kind, count in sorted(found.items()))
    return f"{key} is {shown}; expected {' or '.join(sorted(kinds))}, with which the filter compares it"


def _operands(where: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Each field with each value that it is compared with."""
    for key, value in where.items():
        if key in LOGIC:
            for item in [value] if isinstance(value, Mapping) else value:
                yield from _operands(item)
        else:
            yield from ((key, operand) for operand in _values(value))


def _values(condition: Any) -> Iterator[Any]:
    if not isinstance(condition, Mapping):
        yield condition
        return
    for operator, operand in condition.items():
        if operator == "$not":
            yield from _values(operand)
        elif isinstance(operand, list):
            yield from operand
        elif operator != "$exists":
            yield operand


def _kind(value: Any) -> str | None:
    if isinstance(value, bool):
        return KINDS["true"]
    if isinstance(value, int | float):
        return KINDS["integer"]
    return KINDS["text"] if isinstance(value, str) else None

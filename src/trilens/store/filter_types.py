"""Filters that compare metadata with values of another type, which never match, and so would silently miss documents.

Dates are text, but an order of dates in ISO 8601 is none of other texts, such as 31.01.2024.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from trilens.store.filters import LOGIC, MetadataField

DATE, TEXT = "a date such as 2024-01-31", "text"
KINDS = {
    **{"integer": "a number", "real": "a number", "true": "true or false", "false": "true or false"},
    **{"text": TEXT, "date": DATE},
}
"""The types of `Catalog.types_of` that a comparison may expect, in words. Null, objects and missing fields are no mistakes."""

ORDERING = ("$gt", "$gte", "$lt", "$lte")
ISO_DATE = re.compile(r"\d{4}-\d{2}(-\d{2}([T ].*)?)?")


def compared_kinds(where: Mapping[str, Any]) -> dict[str, set[str]]:
    """The kinds of values with which a valid filter compares each field."""
    kinds: dict[str, set[str]] = {}
    for key, operator, value in _operands(where):
        kind = _kind(operator, value)
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
        kind = KINDS.get(name)
        if kind is None or kind in kinds or (kind == DATE and TEXT in kinds):
            continue
        shown = TEXT if kind == DATE else kind
        found[shown] = found.get(shown, 0) + count
    return found


def describe(key: str, kinds: set[str], found: Mapping[str, int]) -> str:
    """One line on a field whose type is not that of the filter."""
    shown = " and ".join(f"{kind} in {count:,} document{'s' * (count != 1)}" for kind, count in sorted(found.items()))
    return f"{key} is {shown}; expected {' or '.join(sorted(kinds))}, with which the filter compares it"


def _operands(where: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Each field with each operator and value that it is compared with."""
    for key, value in where.items():
        if key in LOGIC:
            for item in [value] if isinstance(value, Mapping) else value:
                yield from _operands(item)
        else:
            yield from ((key, operator, operand) for operator, operand in _values(value))


def _values(condition: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(condition, Mapping):
        yield "$eq", condition
        return
    for operator, operand in condition.items():
        if operator == "$not":
            yield from _values(operand)
        elif isinstance(operand, list):
            yield from ((operator, item) for item in operand)
        elif operator != "$exists":
            yield operator, operand


def _kind(operator: str, value: Any) -> str | None:
    if isinstance(value, bool):
        return KINDS["true"]
    if isinstance(value, int | float):
        return KINDS["integer"]
    if not isinstance(value, str):
        return None
    return DATE if operator in ORDERING and ISO_DATE.fullmatch(value) else TEXT

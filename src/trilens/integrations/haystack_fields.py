"""Statistics of the metadata of Haystack documents: types, ranges and distinct values of fields."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from trilens.extras import needs_extra
from trilens.integrations.haystack_filters import META

with needs_extra("haystack"):
    from haystack.dataclasses import Document

TYPES = {"bool": "boolean", "int": "int", "float": "float"}  # other values are keywords


def field_types(documents: Iterable[Document]) -> dict[str, dict[str, str]]:
    """The type of each metadata field, by the last document that has it."""
    items = (item for document in documents for item in document.meta.items())
    return {name: {"type": TYPES.get(type(value).__name__, "keyword")} for name, value in items if value is not None}


def smallest_and_largest(documents: Iterable[Document], field: str) -> dict[str, Any]:
    """The range of a field; None if it has no values, or values that are not comparable."""
    values = [value for value in _values(documents, field) if isinstance(value, int | float | str)]
    if not values or len({isinstance(value, str) for value in values}) > 1:
        return {"min": None, "max": None}
    return {"min": min(values), "max": max(values)}


def distinct_values(documents: Iterable[Document], field: str) -> list[Any]:
    """The distinct values of a field, sorted as text; equal values of different types are distinct."""
    by_name = {
        (str(value), type(value).__name__, json.dumps(value, sort_keys=True)): value for value in _values(documents, field)
    }
    return [by_name[name] for name in sorted(by_name)]


def _values(documents: Iterable[Document], field: str) -> Iterator[Any]:
    values = (document.meta.get(field.removeprefix(META)) for document in documents)
    return (value for value in values if value is not None)

"""The conditions from which the filters of frameworks are translated to those of trilens (`store/filters.py`)."""

from collections.abc import Sequence
from typing import Any

Filter = dict[str, Any]

EVERYTHING: Filter = {}
NOTHING: Filter = {"$not": EVERYTHING}


def compare(field: str, operator: str, value: Any) -> Filter:
    """A condition on one field, such as {"year": {"$gte": 2020}}."""
    return {field: {operator: value}}


def is_none(field: str) -> Filter:
    """The field is missing or null, which frameworks do not distinguish."""
    return {"$or": [compare(field, "$exists", False), compare(field, "$eq", None)]}


def is_one_of(field: str, values: Sequence[Any]) -> Filter:
    """The field equals one of the values; None also stands for a missing field."""
    listed = compare(field, "$in", [value for value in values if value is not None])
    return any_of([listed, is_none(field)]) if None in values else listed


def negate(filter: Filter) -> Filter:
    """The filter does not hold."""
    return {"$not": filter}


def all_of(filters: Sequence[Filter]) -> Filter:
    """All filters hold."""
    if len(filters) == 1:
        return filters[0]
    return {"$and": list(filters)} if filters else EVERYTHING


def any_of(filters: Sequence[Filter]) -> Filter:
    """At least one filter holds."""
    if len(filters) == 1:
        return filters[0]
    return {"$or": list(filters)} if filters else NOTHING

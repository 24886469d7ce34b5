"""Haystack's filters as filters of trilens.

Metadata are filtered; other fields of a document, such as its content or id, are refused. Dates are compared as text, so stored
dates must have the form and the time zone of the filter's. A list in the metadata satisfies a comparison if an element does.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import datetime
from functools import partial
from typing import Any

from trilens.errors import BadFilter
from trilens.extras import needs_extra
from trilens.integrations.filters import (
    EVERYTHING,
    NOTHING,
    Filter,
    all_of,
    any_of,
    compare,
    is_none,
    is_one_of,
    negate,
)

with needs_extra("haystack"):
    from haystack.dataclasses import Document

META = "meta."
NOT_META = frozenset(field.name for field in fields(Document))


def translate(filters: Mapping[str, Any] | None) -> Filter:
    """The filter of trilens with the same meaning."""
    return _any_filter(filters) if filters else EVERYTHING


def _any_filter(filters: Any) -> Filter:
    if not isinstance(filters, Mapping):
        raise BadFilter(f"filter is {filters!r}; expected an object with operator and conditions, or field, operator and value")
    return _comparison(filters) if "field" in filters else _logic(filters)


def _logic(filters: Mapping[str, Any]) -> Filter:
    operator, conditions = _member(filters, "operator"), _member(filters, "conditions")
    if operator not in LOGIC:
        raise BadFilter(f"operator is {operator!r}; expected one of {', '.join(LOGIC)}")
    if not isinstance(conditions, list):
        raise BadFilter(f"conditions are {conditions!r}; expected a list of filters")
    return LOGIC[operator]([_any_filter(condition) for condition in conditions])


def _comparison(filters: Mapping[str, Any]) -> Filter:
    operator, value, field = _member(filters, "operator"), _member(filters, "value"), filters["field"]
    if operator not in COMPARISONS:
        raise BadFilter(f"operator on {field!r} is {operator!r}; expected one of {', '.join(COMPARISONS)}")
    return COMPARISONS[operator](_name(field), value)


def _member(filters: Mapping[str, Any], name: str) -> Any:
    if name not in filters:
        raise BadFilter(f"filter {filters!r} has no {name}; expected one")
    return filters[name]


def _name(field: Any) -> str:
    """The metadata field of trilens."""
    if not isinstance(field, str) or field in NOT_META:
        raise BadFilter(f"field is {field!r}; expected a metadata field, such as meta.year: others cannot be filtered")
    return field.removeprefix(META)


def _equal(field: str, value: Any) -> Filter:
    return is_none(field) if value is None else compare(field, "$eq", _scalar(field, value))


def _in(field: str, values: Any) -> Filter:
    if not isinstance(values, list):
        raise BadFilter(f"{field} is compared with {values!r}; expected a list of values")
    return is_one_of(field, [_scalar(field, value) for value in values])


def _ordered(operator: str, field: str, value: Any) -> Filter:
    """A comparison by size. None is not comparable with anything; text must be a date."""
    if value is None:
        return NOTHING
    value = _scalar(field, value)
    if isinstance(value, str):
        try:
            datetime.fromisoformat(value)
        except ValueError as error:
            raise BadFilter(f"{field} is compared with {value!r} by size; expected a number or a date in ISO format") from error
    return compare(field, operator, value)


def _scalar(field: str, value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, list | tuple | set | Mapping):
        raise BadFilter(f"{field} is compared with {value!r}; expected a single value")
    return value


LOGIC: dict[str, Callable[[list[Filter]], Filter]] = {
    "AND": all_of,
    "OR": any_of,
    "NOT": lambda filters: negate(all_of(filters)),
}
COMPARISONS: dict[str, Callable[[str, Any], Filter]] = {
    "==": _equal,
    "!=": lambda field, value: negate(_equal(field, value)),
    ">": partial(_ordered, "$gt"),
    ">=": partial(_ordered, "$gte"),
    "<": partial(_ordered, "$lt"),
    "<=": partial(_ordered, "$lte"),
    "in": _in,
    "not in": lambda field, value: negate(_in(field, value)),
}

"""Metadata filters in plain Python: slow, obvious, and without SQL."""

from collections.abc import Callable, Mapping
from operator import eq, ge, gt, le, lt
from typing import Any

MISSING = object()
ORDER: dict[str, Callable[[Any, Any], bool]] = {"$eq": eq, "$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}


def holds(metadata: Mapping[str, Any], where: Mapping[str, Any]) -> bool:
    """Whether a document with this metadata passes the filter."""
    return all(_clause(metadata, key, value) for key, value in where.items())


def _clause(metadata: Mapping[str, Any], key: str, value: Any) -> bool:
    if key == "$and":
        return all(holds(metadata, part) for part in value)
    if key == "$or":
        return any(holds(metadata, part) for part in value)
    if key == "$not":
        return not holds(metadata, value)
    field: Any = metadata
    for part in key.split("."):
        field = field.get(part, MISSING) if isinstance(field, dict) else MISSING
    return _field(field, value)


def _field(field: Any, condition: Any) -> bool:
    if not isinstance(condition, dict):
        return _compare(field, "$eq", condition)
    return all(_operator(field, operator, operand) for operator, operand in condition.items())


def _operator(field: Any, operator: str, operand: Any) -> bool:
    if operator == "$not":
        return not _field(field, operand)
    if operator == "$ne":
        return not _compare(field, "$eq", operand)
    if operator == "$in":
        return any(_compare(field, "$eq", item) for item in operand)
    if operator == "$nin":
        return not any(_compare(field, "$eq", item) for item in operand)
    if operator == "$exists":
        return (field is not MISSING) is operand
    return _compare(field, operator, operand)


def _compare(field: Any, operator: str, operand: Any) -> bool:
    """Whether the field, or an element of it, has the operand's type and satisfies the comparison."""
    values = field if isinstance(field, list) else [field]
    return any(_kind(value) == _kind(operand) and ORDER[operator](value, operand) for value in values)


def _kind(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "number"
    return type(value).__name__

"""Metadata filters: JSON conditions, translated to SQL over the catalog.

    {"year": {"$gte": 2020}, "lang": "en"}            both must hold
    {"$or": [{"tags": {"$in": ["a"]}}, {"author.name": {"$exists": false}}]}

A key names a metadata field; dots address nested objects. A plain value means $eq. A comparison with a list holds if it holds
for any element ($ne and $nin: for all elements). Values of different types never match. A missing field matches only $ne,
$nin, $not and {"$exists": false}.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import accumulate
from typing import Any, Literal, NamedTuple

from trilens.errors import BadFilter

Value = str | int | float

LOGIC = ("$and", "$or", "$not")
DEEPEST = 16
MOST_BRACKETS = 24  # nested; SQLite's parser fails at 28
SAFE_INTEGER = 1 << 63
MOST_CONDITIONS = 64  # each reads the metadata of all documents
MOST_VALUES = 250_000  # in lists


class Sql(NamedTuple):
    """A SQL condition over the catalog with its parameters, and how many conditions and listed values it stands for."""

    text: str
    values: list[Value]
    conditions: int = 1
    listed: int = 0


class MetadataField(NamedTuple):
    """A metadata field under a condition, and the nesting depth of the condition."""

    key: str
    depth: int

    @property
    def path(self) -> str:
        """The JSON path of the field in SQLite's syntax."""
        return "$" + "".join("." + json.dumps(part, ensure_ascii=False) for part in self.key.split("."))


class Operator(NamedTuple):
    """An operator of a field: a label for user interfaces, its kind of operand, and its translation.

    `translate` receives the field, the name of the operator and the operand.
    """

    label: str
    operand: Literal["value", "list", "boolean", "condition"]
    translate: Callable[[MetadataField, str, Any], Sql]


def parse_filter(text: str) -> dict[str, Any]:
    """Parse a filter from the command line."""
    try:
        value = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise BadFilter(f"filter {text[:80]!r} is not JSON ({error}); expected an object such as {EXAMPLE}") from error
    if not isinstance(value, dict):
        raise BadFilter(f"filter is {value!r}; expected an object such as {EXAMPLE}")
    return value


EXAMPLE = '{"year": {"$gte": 2020}, "lang": "en"}'
TOO_DEEP = f"filter is nested too deep; expected at most {DEEPEST} levels, fewer where each has several conditions"
TOO_MANY = f"filter has more than {MOST_CONDITIONS} conditions; expected fewer: use $in for a list of values"
TOO_LONG = f"filter lists more than {MOST_VALUES:,} values; expected fewer: store what they share as a field, and filter by it"


def to_sql(where: Mapping[str, Any], depth: int = 0) -> Sql:
    """The SQL condition of a filter and its parameter values."""
    if not isinstance(where, Mapping):
        raise BadFilter(f"filter is {where!r}; expected an object such as {EXAMPLE}")
    if depth > DEEPEST:
        raise BadFilter(TOO_DEEP)
    sql = _join("AND", (_clause(key, value, depth) for key, value in where.items()))
    if depth == 0 and _brackets(sql.text) > MOST_BRACKETS:
        raise BadFilter(TOO_DEEP)
    return sql


def _clause(key: str, value: Any, depth: int) -> Sql:
    if not isinstance(key, str):
        raise BadFilter(f"filter key {key!r} is {type(key).__name__}; expected the name of a metadata field")
    if key in ("$and", "$or"):
        if not isinstance(value, list) or not value:
            raise BadFilter(f"{key} is given {value!r}; expected a list of filters")
        items = _merged(value) if key == "$or" else value
        return _join(key[1:].upper(), (to_sql(item, depth + 1) for item in items))
    if key == "$not":
        return _negate(to_sql(value, depth + 1))
    if key.startswith("$"):
        raise BadFilter(f"{key!r} is not known here; expected a metadata field or one of {', '.join(LOGIC)}")
    return _field(key, value, depth)


def _merged(filters: list[Any]) -> list[Any]:
    """Alternatives with the same meaning, in which those that only compare a field with a value are one $in per field.

    An $in takes one look-up per document however long its list is.
    """
    others, listed = [], dict[str, list[Any]]()
    for item in filters:
        key, value = next(iter(item.items())) if isinstance(item, Mapping) and len(item) == 1 else ("$", None)
        if isinstance(key, str) and not key.startswith("$") and not isinstance(value, Mapping | list):
            listed.setdefault(key, []).append(value)
        else:
            others.append(item)
    return [*others, *({key: {"$in": values}} for key, values in listed.items())]


def _field(key: str, value: Any, depth: int) -> Sql:
    """All conditions on one metadata field."""
    field = MetadataField(key, depth)
    if '"' in key:
        raise BadFilter(f"field {key!r} holds a quotation mark, which a filter cannot name; expected another field")
    if not isinstance(value, Mapping):
        return OPERATORS["$eq"].translate(field, "$eq", value)
    if not value:
        raise BadFilter(f"the condition on {key!r} is empty; expected an operator: {', '.join(OPERATORS)}")
    if depth > DEEPEST:
        raise BadFilter(TOO_DEEP)
    for operator in value:
        if operator not in OPERATORS:
            raise BadFilter(f"operator {operator!r} on {key!r} is not known; expected one of {', '.join(OPERATORS)}")
    return _join("AND", (OPERATORS[operator].translate(field, operator, operand) for operator, operand in value.items()))


def _compare(symbol: str, field: MetadataField, operator: str, operand: Any) -> Sql:
    """True if the field, or an element of its list, has the type of the operand and satisfies the SQL comparison `symbol`."""
    types, value = _typed(operator, operand)
    if value is None:
        return _any_atom(field, f"atom.type IN {types}", [])
    return _any_atom(field, f"atom.type IN {types} AND atom.value {symbol} ?", [value])


def _any_atom(field: MetadataField, condition: str, values: list[Value], listed: int = 0) -> Sql:
    """True if the condition holds for the value of the field or an element of its list; objects are not compared."""
    exists = f"EXISTS (SELECT 1 FROM json_each(metadata, ?) AS atom WHERE {condition})"
    return Sql(f"(json_type(metadata, ?) IS NOT 'object' AND {exists})", [field.path, field.path, *values], listed=listed)


def _typed(operator: str, operand: Any) -> tuple[str, Value | None]:
    """The JSON types comparable with the operand, and the operand as a SQL value; None if the type decides."""
    if isinstance(operand, bool) or operand is None:
        if operator != "$eq":
            raise BadFilter(f"{operator} is given {json.dumps(operand)}; expected a number or a string")
        return {True: "('true')", False: "('false')", None: "('null')"}[operand], None
    if isinstance(operand, int | float):
        if operand != operand or abs(operand) >= SAFE_INTEGER:
            raise BadFilter(f"{operator} is given {operand}; expected a number below 2^63")
        return "('integer', 'real')", operand
    if isinstance(operand, str):
        return "('text')", operand
    raise BadFilter(f"{operator} is given {operand!r}; expected a string, a number, true, false or null")


def _any_of(field: MetadataField, operator: str, operand: Any) -> Sql:
    if not isinstance(operand, list):
        raise BadFilter(f"{operator} is given {operand!r}; expected a list of values")
    if len(operand) > MOST_VALUES:
        raise BadFilter(TOO_LONG)
    by_types: dict[str, list[Value]] = {}  # a look-up compares values of one type
    for item in operand:
        types, value = _typed("$eq", item)
        by_types.setdefault(types, []).extend(() if value is None else (value,))
    choices, lists = ["0"], list[Value]()
    for types, values in by_types.items():
        choices.append(f"atom.type IN {types}" + (" AND atom.value IN (SELECT value FROM json_each(?))" if values else ""))
        lists += [json.dumps(values)] if values else []
    return _any_atom(field, f"({' OR '.join(choices)})", lists, len(operand))


def _exists(field: MetadataField, operator: str, operand: Any) -> Sql:
    if not isinstance(operand, bool):
        raise BadFilter(f"{operator} is given {operand!r}; expected true or false")
    return Sql(f"json_type(metadata, ?) IS {'NOT ' if operand else ''}NULL", [field.path])


def _negate(sql: Sql) -> Sql:
    return sql._replace(text=f"NOT ({sql.text})")


# The operators of a field, in the order in which error messages list them.
OPERATORS: dict[str, Operator] = {
    "$eq": Operator("is", "value", partial(_compare, "=")),
    "$ne": Operator("is not", "value", lambda field, _, operand: _negate(_compare("=", field, "$eq", operand))),
    "$gt": Operator("above", "value", partial(_compare, ">")),
    "$gte": Operator("at least", "value", partial(_compare, ">=")),
    "$lt": Operator("below", "value", partial(_compare, "<")),
    "$lte": Operator("at most", "value", partial(_compare, "<=")),
    "$in": Operator("is one of", "list", _any_of),
    "$nin": Operator("is none of", "list", lambda field, operator, operand: _negate(_any_of(field, operator, operand))),
    "$exists": Operator("exists", "boolean", _exists),
    "$not": Operator("not", "condition", lambda field, _, operand: _negate(_field(field.key, operand, field.depth + 1))),
}


def _join(word: str, parts: Iterable[Sql]) -> Sql:
    """Join conditions; those of a filter that exceeds a limit are not all translated."""
    joined: list[Sql] = []
    conditions = listed = 0
    for part in parts:
        joined.append(part)
        conditions, listed = conditions + part.conditions, listed + part.listed
        if conditions > MOST_CONDITIONS:
            raise BadFilter(TOO_MANY)
        if listed > MOST_VALUES:
            raise BadFilter(TOO_LONG)
    if len(joined) < 2:
        return joined[0] if joined else Sql("1", [])
    text = f"({f' {word} '.join(part.text for part in joined)})"
    return Sql(text, [value for part in joined for value in part.values], conditions, listed)


def _brackets(condition: str) -> int:
    """Maximum nesting of brackets."""
    return max(accumulate((mark == "(") - (mark == ")") for mark in condition))

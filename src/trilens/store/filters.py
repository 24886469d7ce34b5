"""Metadata filters: JSON conditions, translated to SQL over the catalog.

    {"year": {"$gte": 2020}, "lang": "en"}            both must hold
    {"$or": [{"tags": {"$in": ["a"]}}, {"author.name": {"$exists": false}}]}

A key names a metadata field; dots address nested objects. A plain value means $eq. A comparison with a list holds if it holds
for any element ($ne and $nin: for all elements). Values of different types never match. A missing field matches only $ne,
$nin, $not and {"$exists": false}.
"""

import json
from collections.abc import Callable, Mapping
from functools import partial
from itertools import accumulate
from typing import Any, Literal, NamedTuple

from trilens.errors import BadFilter

Value = str | int | float
Sql = tuple[str, list[Value]]

LOGIC = ("$and", "$or", "$not")
DEEPEST = 16
MOST_BRACKETS = 24  # nested; SQLite's parser fails at 28
SAFE_INTEGER = 1 << 63
MOST_VALUES = 30_000  # SQLite accepts 32,766
LONGEST_CHAIN = 24  # SQLite accepts expressions 1,000 deep, and each link of a chain counts


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
TOO_DEEP = f"filter is nested too deep; expected at most {DEEPEST} levels, fewer where one has over {LONGEST_CHAIN} conditions"


def to_sql(where: Mapping[str, Any], depth: int = 0) -> Sql:
    """The SQL condition of a filter and its parameter values."""
    if not isinstance(where, Mapping):
        raise BadFilter(f"filter is {where!r}; expected an object such as {EXAMPLE}")
    if depth > DEEPEST:
        raise BadFilter(TOO_DEEP)
    parts = [_clause(key, value, depth) for key, value in where.items()]
    condition, values = _join("AND", parts, empty="1")
    if depth == 0 and _brackets(condition) > MOST_BRACKETS:
        raise BadFilter(TOO_DEEP)
    if len(values) > MOST_VALUES:
        raise BadFilter(f"filter has more than {MOST_VALUES // 5:,} conditions; expected fewer: use $in for a list of values")
    return condition, values


def _clause(key: str, value: Any, depth: int) -> Sql:
    if not isinstance(key, str):
        raise BadFilter(f"filter key {key!r} is {type(key).__name__}; expected the name of a metadata field")
    if key in ("$and", "$or"):
        if not isinstance(value, list) or not value:
            raise BadFilter(f"{key} is given {value!r}; expected a list of filters")
        return _join(key[1:].upper(), [to_sql(item, depth + 1) for item in value], empty="1")
    if key == "$not":
        return _negate(to_sql(value, depth + 1))
    if key.startswith("$"):
        raise BadFilter(f"{key!r} is not known here; expected a metadata field or one of {', '.join(LOGIC)}")
    return _field(key, value, depth)


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
    parts = []
    for operator, operand in value.items():
        if operator not in OPERATORS:
            raise BadFilter(f"operator {operator!r} on {key!r} is not known; expected one of {', '.join(OPERATORS)}")
        parts.append(OPERATORS[operator].translate(field, operator, operand))
    return _join("AND", parts, empty="1")


def _compare(symbol: str, field: MetadataField, operator: str, operand: Any) -> Sql:
    """True if the field, or an element of its list, has the type of the operand and satisfies the SQL comparison `symbol`."""
    types, value = _typed(operator, operand)
    if value is None:
        return _any_atom(field, f"atom.type IN {types}", [])
    return _any_atom(field, f"atom.type IN {types} AND atom.value {symbol} ?", [value])


def _any_atom(field: MetadataField, condition: str, values: list[Value], join: str = "") -> Sql:
    """True if the condition holds for the value of the field or an element of its list; objects are not compared."""
    atoms = "json_each(CASE json_type(metadata, ?) WHEN 'array' THEN metadata -> ? ELSE json_array(json(metadata -> ?)) END)"
    exists = f"EXISTS (SELECT 1 FROM {atoms} AS atom {join} WHERE {condition})"
    return f"(json_type(metadata, ?) IS NOT NULL AND {exists})", [*[field.path] * 4, *values]


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
    for item in operand:
        _typed("$eq", item)
    numbers = "('integer', 'real')"
    same_type = f"(atom.type = wanted.type OR (atom.type IN {numbers} AND wanted.type IN {numbers}))"
    condition = f"{same_type} AND atom.value IS wanted.value"
    return _any_atom(field, condition, [json.dumps(operand)], join="JOIN json_each(?) AS wanted")


def _exists(field: MetadataField, operator: str, operand: Any) -> Sql:
    if not isinstance(operand, bool):
        raise BadFilter(f"{operator} is given {operand!r}; expected true or false")
    return f"json_type(metadata, ?) IS {'NOT ' if operand else ''}NULL", [field.path]


def _negate(sql: Sql) -> Sql:
    return f"NOT ({sql[0]})", sql[1]


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


def _join(word: str, parts: list[Sql], empty: str) -> Sql:
    """Join the parts as a tree of chains: SQLite limits both the nesting of brackets and the length of a chain."""
    if not parts:
        return empty, []
    while len(parts) > 1:
        parts = [_chain(word, parts[i : i + LONGEST_CHAIN]) for i in range(0, len(parts), LONGEST_CHAIN)]
    return parts[0]


def _chain(word: str, parts: list[Sql]) -> Sql:
    if len(parts) == 1:
        return parts[0]
    return f"({f' {word} '.join(part[0] for part in parts)})", [value for part in parts for value in part[1]]


def _brackets(condition: str) -> int:
    """Maximum nesting of brackets."""
    return max(accumulate((mark == "(") - (mark == ")") for mark in condition))

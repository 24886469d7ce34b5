"""Metadata filters: a JSON condition becomes SQL over the catalog.

    {"year": {"$gte": 2020}, "lang": "en"}            both must hold
    {"$or": [{"tags": {"$in": ["a"]}}, {"author.name": {"$exists": false}}]}

A key names a metadata field, dots go into nested objects. A plain value means $eq. Where the field is a list, a comparison
holds if it holds for an element ($ne and $nin: if it holds for every element). Values of different types never match, and a
field that is absent matches only $ne, $nin, $not and {"$exists": false}.
"""

import json
from collections.abc import Callable, Mapping
from itertools import accumulate
from typing import Any

from trilens.errors import BadFilter

Value = str | int | float
Sql = tuple[str, list[Value]]

COMPARISONS = {"$eq": "=", "$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
OPERATORS = ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$exists", "$not")
LOGIC = ("$and", "$or", "$not")
DEEPEST = 16
MOST_BRACKETS = 24  # within each other; SQLite's parser gives up at 28
SAFE_INTEGER = 1 << 63
MOST_VALUES = 30_000  # SQLite takes 32,766
LONGEST_CHAIN = 24  # SQLite takes an expression 1,000 deep, and each link of a chain counts


def parse_filter(text: str) -> dict[str, Any]:
    """A filter from the command line."""
    try:
        value = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise BadFilter(f"filter {text[:80]!r} is not JSON ({error}); expected something like {EXAMPLE}") from error
    if not isinstance(value, dict):
        raise BadFilter(f"filter {text!r} is not an object; expected something like {EXAMPLE}")
    return value


EXAMPLE = '{"year": {"$gte": 2020}, "lang": "en"}'
TOO_DEEP = f"filter is nested too deep; expected at most {DEEPEST} levels, fewer where one has over {LONGEST_CHAIN} conditions"


def to_sql(where: Mapping[str, Any], depth: int = 0) -> Sql:
    """The SQL condition of a filter, and its values."""
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
    path = "$" + "".join("." + json.dumps(part, ensure_ascii=False) for part in key.split("."))
    if '"' in key:
        raise BadFilter(f"field {key!r} holds a quotation mark, which a filter cannot name; expected another field")
    if not isinstance(value, Mapping):
        return _compare(path, "$eq", value)
    if not value:
        raise BadFilter(f"the condition on {key!r} is empty; expected an operator: {', '.join(OPERATORS)}")
    if depth > DEEPEST:
        raise BadFilter(TOO_DEEP)
    parts = []
    for operator, operand in value.items():
        if operator not in OPERATORS:
            raise BadFilter(f"operator {operator!r} on {key!r} is not known; expected one of {', '.join(OPERATORS)}")
        if operator == "$not":
            parts.append(_negate(_field(key, operand, depth + 1)))
        else:
            parts.append(_operators()[operator](path, operator, operand))
    return _join("AND", parts, empty="1")


def _operators() -> dict[str, Callable[[str, str, Any], Sql]]:
    special: dict[str, Callable[[str, str, Any], Sql]] = {
        "$ne": lambda path, _, operand: _negate(_compare(path, "$eq", operand)),
        "$in": _any_of,
        "$nin": lambda path, _, operand: _negate(_any_of(path, "$nin", operand)),
        "$exists": _exists,
    }
    return dict.fromkeys(COMPARISONS, _compare) | special


def _compare(path: str, operator: str, operand: Any) -> Sql:
    """True if the field, or an element of it, is of the operand's type and compares as asked."""
    types, value = _typed(operator, operand)
    if value is None:
        return _some_atom(path, f"atom.type IN {types}", [])
    return _some_atom(path, f"atom.type IN {types} AND atom.value {COMPARISONS[operator]} ?", [value])


def _some_atom(path: str, condition: str, values: list[Value], join: str = "") -> Sql:
    """True if the condition holds for an element of the field's list, or for its value; objects are not compared."""
    field = "json_each(CASE json_type(metadata, ?) WHEN 'array' THEN metadata -> ? ELSE json_array(json(metadata -> ?)) END)"
    found = f"EXISTS (SELECT 1 FROM {field} AS atom {join} WHERE {condition})"
    return f"(json_type(metadata, ?) IS NOT NULL AND {found})", [path, path, path, path, *values]


def _typed(operator: str, operand: Any) -> tuple[str, Value | None]:
    """JSON types that the operand may equal, and the operand as SQLite compares it (None: the type says it all)."""
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


def _any_of(path: str, operator: str, operand: Any) -> Sql:
    if not isinstance(operand, list):
        raise BadFilter(f"{operator} is given {operand!r}; expected a list of values")
    for item in operand:
        _typed("$eq", item)
    numbers = "('integer', 'real')"
    same_type = f"(atom.type = wanted.type OR (atom.type IN {numbers} AND wanted.type IN {numbers}))"
    condition = f"{same_type} AND atom.value IS wanted.value"
    return _some_atom(path, condition, [json.dumps(operand)], join="JOIN json_each(?) AS wanted")


def _exists(path: str, operator: str, operand: Any) -> Sql:
    if not isinstance(operand, bool):
        raise BadFilter(f"{operator} is given {operand!r}; expected true or false")
    return f"json_type(metadata, ?) IS {'NOT ' if operand else ''}NULL", [path]


def _negate(sql: Sql) -> Sql:
    return f"NOT ({sql[0]})", sql[1]


def _join(word: str, parts: list[Sql], empty: str) -> Sql:
    """The parts joined as a tree of long chains: SQLite's parser limits the brackets, its planner the length of a chain."""
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
    """How many brackets are open at most."""
    return max(accumulate((mark == "(") - (mark == ")") for mark in condition))

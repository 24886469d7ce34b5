"""LlamaIndex's metadata filters as filters of trilens.

Searching inside of values (`text_match`) is refused, as is a comparison with None, for which LlamaIndex has `is_empty`. A list
in the metadata satisfies a comparison if an element does.
"""

from trilens.errors import BadFilter
from trilens.extras import needs_extra
from trilens.integrations.filters import EVERYTHING, Filter, all_of, any_of, compare, negate

with needs_extra("llamaindex"):
    from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters


OPERATORS = {
    FilterOperator.EQ: "$eq",
    FilterOperator.NE: "$ne",
    FilterOperator.GT: "$gt",
    FilterOperator.GTE: "$gte",
    FilterOperator.LT: "$lt",
    FilterOperator.LTE: "$lte",
    FilterOperator.IN: "$in",
    FilterOperator.NIN: "$nin",
    FilterOperator.ANY: "$in",
    FilterOperator.CONTAINS: "$eq",
}


def translate(filters: MetadataFilters | None) -> Filter:
    """The filter of trilens with the same meaning."""
    if filters is None or not filters.filters:
        return EVERYTHING
    translated = [translate(inner) if isinstance(inner, MetadataFilters) else _comparison(inner) for inner in filters.filters]
    match filters.condition:
        case FilterCondition.OR:
            return any_of(translated)
        case FilterCondition.NOT:
            return negate(any_of(translated))
    return all_of(translated)


def _comparison(filter: MetadataFilter) -> Filter:
    operator, key, value = filter.operator, filter.key, filter.value
    if operator == FilterOperator.IS_EMPTY:
        return _is_empty(key)
    if value is None:
        raise BadFilter(f"{key!r} is compared with None; expected a value, or the operator is_empty")
    if operator == FilterOperator.ALL:
        if not isinstance(value, list):
            raise BadFilter(f"{key!r} is compared with all of {value!r}; expected a list of values")
        return all_of([compare(key, "$eq", item) for item in value])
    if operator not in OPERATORS:
        names = ", ".join(known.value for known in [*OPERATORS, FilterOperator.ALL, FilterOperator.IS_EMPTY])
        raise BadFilter(f"operator on {key!r} is {operator.value!r}, which trilens cannot express; expected one of {names}")
    return compare(key, OPERATORS[operator], value)


def _is_empty(key: str) -> Filter:
    """No value: the field is missing, null, "" or []. An object has no value of its own."""
    values = [compare(key, "$gt", ""), compare(key, "$gt", 0), compare(key, "$lte", 0), compare(key, "$in", [True, False])]
    return negate(any_of(values))

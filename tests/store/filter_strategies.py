"""Hypothesis strategies for metadata and filters, with strings that are special in SQL or JSON."""

from typing import Any

from hypothesis import strategies as st

HOSTILE = [
    "it's",
    "'; DROP TABLE documents; --",
    "%",
    "_",
    "?",
    ":a",
    "\\",
    "a\\",
    "\\u0041",
    "\n\t",
    "$",
    "[0]",
    "#-1",
    "*",
    "été",
    "e\u0301",
    "日本",
    "😀",
    "\u2028",
    "\x7f",
    "NULL",
    "true",
    "1",
    "",
    " ",
]
KEYS = ["a", "b", "A", "0", *HOSTILE]
SCALARS = [None, True, False, 0, 1, -1, 2, 1.0, 0.5, 1e-9, 2**53 + 1, 2**63 - 1, -(2**62), "a", "b", "B", *HOSTILE]

scalars = st.sampled_from(SCALARS) | st.integers(-5, 5) | st.floats(-3, 3) | st.text(alphabet="ab'é😀", max_size=3)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=6,
)
metadata = st.dictionaries(st.sampled_from(KEYS), values, max_size=4)
paths = st.lists(st.sampled_from(KEYS), min_size=1, max_size=3).map(".".join).filter(lambda key: not key.startswith("$"))
ordered = st.sampled_from([value for value in SCALARS if not isinstance(value, bool | None)]) | st.integers(-5, 5)


def condition(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Conditions on a field."""
    return st.one_of(
        scalars,
        st.fixed_dictionaries(
            {},
            optional={
                "$eq": scalars,
                "$ne": scalars,
                "$gt": ordered,
                "$gte": ordered,
                "$lt": ordered,
                "$lte": ordered,
                "$in": st.lists(scalars, max_size=3),
                "$nin": st.lists(scalars, max_size=3),
                "$exists": st.booleans(),
                "$not": inner,
            },
        ).filter(bool),
    )


conditions = condition(condition(scalars))
filters = st.recursive(
    st.dictionaries(paths, conditions, max_size=2),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "$and": st.lists(inner, min_size=1, max_size=3),
            "$or": st.lists(inner, min_size=1, max_size=3),
            "$not": inner,
        },
    ),
    max_leaves=4,
)

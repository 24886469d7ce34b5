"""Sparse vectors as text: JSON objects of terms and weights such as {"cat": 1.5, "feline": 0.8}."""

import json
import math
from collections.abc import Mapping

from trilens.errors import BadInput
from trilens.text.document import require_utf8

SHOWN = 60


def read_vector(text: str) -> dict[str, float]:
    """Parse the terms and weights of a vector."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(
            f'{text[:SHOWN]!r} is not JSON; expected an object of terms and weights, such as {{"cat": 1.5}}'
        ) from error
    return check_vector(value)


def check_vector(value: object) -> dict[str, float]:
    """Validate a vector: weights are finite and not negative. Terms of weight 0 are dropped."""
    if not isinstance(value, Mapping):
        raise BadInput(f'the vector is {str(value)[:SHOWN]!r}; expected an object of terms and weights, such as {{"cat": 1.5}}')
    for term, weight in value.items():
        if not isinstance(term, str) or not term:
            raise BadInput(f"the vector has the term {term!r}; expected a non-empty string")
        require_utf8(f"term {term[:SHOWN]!r}", term)
        is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
        if not is_number or not math.isfinite(weight) or weight < 0:
            raise BadInput(f"the weight of term {term[:SHOWN]!r} is {weight!r}; expected a number, 0 or more")
    return {term: float(weight) for term, weight in value.items() if weight > 0}


def write_vector(vector: Mapping[str, float]) -> str:
    """Serialise a vector; equal vectors give equal texts."""
    return json.dumps(vector, ensure_ascii=False, sort_keys=True, separators=(",", ":"))

"""Weighted terms as text: a JSON object such as {"cat": 1.5, "feline": 0.8}, as SPLADE-style models write them."""

import json
import math
from collections.abc import Mapping

from trilens.errors import BadInput
from trilens.text.document import require_utf8

SHOWN = 60


def read_vector(text: str) -> dict[str, float]:
    """The terms and weights that a text gives."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(
            f'{text[:SHOWN]!r} is not JSON; expected an object of terms and weights, such as {{"cat": 1.5}}'
        ) from error
    return check_vector(value)


def check_vector(value: object) -> dict[str, float]:
    """A vector that can be indexed: weights are numbers from 0 on; a term of weight 0 is as good as absent and left out."""
    if not isinstance(value, Mapping):
        raise BadInput(f'the vector is {str(value)[:SHOWN]!r}; expected an object of terms and weights, such as {{"cat": 1.5}}')
    for term, weight in value.items():
        if not isinstance(term, str) or not term:
            raise BadInput(f"the vector has the term {term!r}; expected a non-empty string")
        require_utf8(f"term {term[:SHOWN]!r}", term)
        number = isinstance(weight, int | float) and not isinstance(weight, bool)
        if not number or not math.isfinite(weight) or weight < 0:
            raise BadInput(f"the weight of term {term[:SHOWN]!r} is {weight!r}; expected a number, 0 or more")
    return {term: float(weight) for term, weight in value.items() if weight > 0}


def write_vector(vector: Mapping[str, float]) -> str:
    """The text of a vector: equal vectors give equal texts."""
    return json.dumps(vector, ensure_ascii=False, sort_keys=True, separators=(",", ":"))

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trilens.errors import BadInput
from trilens.represent import Dense


def numbered(texts: int, dims: int = 3) -> Dense:
    return Dense(np.arange(texts * dims, dtype=np.float32).reshape(texts, dims))


@pytest.mark.parametrize(("rows", "expected"), [([2, 0, 2], [[4, 5], [0, 1], [4, 5]]), ([], [])])
def test_texts_are_taken_in_the_given_order(rows: list[int], expected: list[list[float]]) -> None:
    taken = numbered(3, 2).take(np.array(rows, np.int64))
    assert (len(taken), taken.dim, taken.vectors.tolist()) == (len(rows), 2, expected)


def test_parts_are_concatenated() -> None:
    whole = numbered(5)
    parts = [whole.take(np.arange(*bounds)) for bounds in ((0, 2), (2, 2), (2, 5))]
    assert Dense.concat(parts).vectors.tolist() == whole.vectors.tolist()


@pytest.mark.parametrize("texts", [0, 1, 7])
def test_saved_vectors_are_opened(tmp_path: Path, texts: int) -> None:
    numbered(texts).save(tmp_path)
    opened = Dense.open(tmp_path)
    assert (len(opened), opened.dim) == (texts, 3)
    assert opened.vectors.tolist() == numbered(texts).vectors.tolist()


@pytest.mark.parametrize("vectors", [np.zeros(3, np.float32), np.zeros((1, 2)), np.zeros((1, 2), np.float16)])
def test_vectors_of_another_shape_or_dtype_are_refused(vectors: np.ndarray[Any, Any]) -> None:
    with pytest.raises(BadInput, match="expected float32"):
        Dense(vectors)

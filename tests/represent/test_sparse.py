from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trilens.errors import BadInput
from trilens.represent import Sparse

DIM = 6
Text = dict[int, float]
TEXTS = st.lists(st.dictionaries(st.integers(0, DIM - 1), st.integers(1, 9).map(float), max_size=4), max_size=6)


def sparse(texts: list[Text], dim: int = DIM) -> Sparse:
    items = [item for text in texts for item in sorted(text.items())]
    return Sparse(
        np.cumsum([0, *(len(text) for text in texts)], dtype=np.int64),
        np.array([term for term, _ in items], np.int32),
        np.array([weight for _, weight in items], np.float32),
        dim,
    )


def texts_of(rows: Sparse) -> list[Text]:
    spans = [slice(rows.indptr[i], rows.indptr[i + 1]) for i in range(len(rows))]
    return [dict(zip(rows.terms[span].tolist(), rows.weights[span].tolist(), strict=True)) for span in spans]


@given(TEXTS, st.data())
def test_texts_are_taken_in_the_given_order(texts: list[Text], data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(0, len(texts) - 1), max_size=8)) if texts else []
    taken = sparse(texts).take(np.array(rows, np.int64))
    assert texts_of(taken) == [texts[row] for row in rows]
    assert taken.dim == DIM


@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_parts_are_concatenated(parts: list[list[Text]]) -> None:
    whole = Sparse.concat([sparse(part) for part in parts])
    assert texts_of(whole) == [text for part in parts for text in part]
    assert whole.dim == DIM


@pytest.mark.parametrize("texts", [[], [{}], [{1: 2.0, 5: 0.5}, {}, {0: 1.0}]])
def test_saved_vectors_are_opened(tmp_path: Path, texts: list[Text]) -> None:
    sparse(texts).save(tmp_path)
    opened = Sparse.open(tmp_path)
    assert texts_of(opened) == texts
    assert opened.dim == DIM


def test_texts_over_different_vocabularies_are_not_joined() -> None:
    with pytest.raises(BadInput, match=r"\[4, 6\] terms; expected one size"):
        Sparse.concat([sparse([]), sparse([], dim=4)])


@pytest.mark.parametrize(("terms", "weights", "end"), [(2, 1, 2), (1, 2, 2), (2, 2, 1)])
def test_arrays_that_disagree_are_refused(terms: int, weights: int, end: int) -> None:
    with pytest.raises(BadInput, match=f"{terms} terms, {weights} weights, indptr ends at {end}"):
        Sparse(np.array([0, end]), np.zeros(terms, np.int32), np.zeros(weights, np.float32), DIM)

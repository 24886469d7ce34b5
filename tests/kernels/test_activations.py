import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trilens.kernels.activations import ALL, highest_per_term, keep_weights
from trilens.kernels.array_types import Float32s

Row = list[tuple[int, float]]


def kept(rows: Float32s, top: int, own: list[list[int]], with_own: bool) -> list[Row]:
    starts = np.cumsum([0, *(len(terms) for terms in own)])
    flat = np.array([term for terms in own for term in terms], np.int32)
    indptr, terms, weights = keep_weights(rows, top, starts, flat, with_own)
    assert [str(array.dtype) for array in (indptr, terms, weights)] == ["int64", "int32", "float32"]
    pairs = list(zip(terms.tolist(), weights.tolist(), strict=True))
    return [pairs[indptr[i] : indptr[i + 1]] for i in range(len(rows))]


def slow_weights(row: Float32s, top: int, own: list[int], with_own: bool) -> Row:
    """Slow reference: a full sort by descending weight, equal weights by ascending term."""
    positive = [term for term in range(len(row)) if row[term] > 0]
    best = sorted(positive, key=lambda term: (-row[term], term))
    terms = set(best if top == ALL else best[:top]) | (set(own) & set(positive) if with_own else set())
    return [(term, float(row[term])) for term in sorted(terms)]


def test_weights_by_hand() -> None:
    row = np.array([[0.5, 2.0, 0.0, 1.0, 0.5, 0.5]], np.float32)
    assert kept(row, 2, [[4]], False) == [[(1, 2.0), (3, 1.0)]]
    assert kept(row, 2, [[2, 4]], True) == [[(1, 2.0), (3, 1.0), (4, 0.5)]]  # an own term of weight zero is dropped
    assert kept(row, 3, [[]], True) == [[(0, 0.5), (1, 2.0), (3, 1.0)]]  # the smallest of three equal terms
    assert kept(row, 3, [[5]], True) == [[(0, 0.5), (1, 2.0), (3, 1.0), (5, 0.5)]]
    assert kept(row, 0, [[1, 4]], True) == [[(1, 2.0), (4, 0.5)]]
    assert kept(row, ALL, [[]], False) == [[(0, 0.5), (1, 2.0), (3, 1.0), (4, 0.5), (5, 0.5)]]
    assert kept(row, 99, [[]], False) == kept(row, 5, [[]], False) == kept(row, ALL, [[]], True)


@pytest.mark.parametrize("top", [ALL, 0, 1, 7, 100, 999, 1000, 2000])
@pytest.mark.parametrize("with_own", [False, True])
def test_weights_against_a_full_sort(top: int, with_own: bool) -> None:
    rng = np.random.default_rng(top + 2)
    rows = rng.normal(size=(6, 1000)).astype(np.float32)
    rows[1] = np.rint(rows[1] * 2)  # many equal ones, and zeros
    rows[2] = 1e-42  # below the smallest normal number, all equal
    rows[3] = np.abs(rows[3]) * 1e-3 + 3  # all in one octave
    rows[4] = 0
    own = [sorted(rng.choice(1000, count, replace=False).tolist()) for count in (0, 5, 50, 1000, 3, 9)]
    expected = [slow_weights(row, top, terms, with_own) for row, terms in zip(rows, own, strict=True)]
    assert kept(rows, top, own, with_own) == expected


@settings(deadline=None)
@given(
    st.lists(st.floats(0, 4, width=32) | st.sampled_from([0.0, -0.0, -1.0, 1.0, 2.0**-140]), min_size=1, max_size=30),
    st.integers(-1, 31),
    st.sets(st.integers(0, 29)),
    st.booleans(),
)
def test_any_row_against_a_full_sort(row: list[float], top: int, own: set[int], with_own: bool) -> None:
    rows = np.array([row], np.float32)
    own_terms = sorted(term for term in own if term < len(row))
    assert kept(rows, top, [own_terms], with_own) == [slow_weights(rows[0], top, own_terms, with_own)]


def test_a_vocabulary_of_250_002_terms() -> None:
    rows = np.random.default_rng(6).random((2, 250_002), np.float32)
    own = [[0, 999, 250_001], []]
    assert kept(rows, 768, own, True) == [slow_weights(row, 768, terms, True) for row, terms in zip(rows, own, strict=True)]


def test_no_rows() -> None:
    assert kept(np.empty((0, 5), np.float32), 3, [], True) == []


def distinct(texts: list[Row], shift: int, left_out: set[int], size: int = 40) -> list[list[tuple[int, float, float]]]:
    """The terms of each text with their highest weights and counts."""
    flat = [pair for text in texts for pair in [(7, 9.0), *text, (8, 9.0)]]  # tokens around a text must be ignored
    begins = np.cumsum([1, *(len(text) + 2 for text in texts)])[:-1]
    ends = begins + np.array([len(text) for text in texts], np.int64)
    marked = np.array([term in left_out for term in range(size)])
    ids, weights = np.array([id_ for id_, _ in flat], np.int32), np.array([weight for _, weight in flat], np.float32)
    indptr, *arrays = highest_per_term(ids, weights, begins, ends, shift, marked)
    rows = list(zip(*(array.tolist() for array in arrays), strict=True))
    return [rows[indptr[i] : indptr[i + 1]] for i in range(len(texts))]


def test_distinct_terms_by_hand() -> None:
    texts = [[(9, 1.0), (5, 0.5), (9, 3.0), (9, 2.0), (6, 0.0), (3, 1.0)], [], [(9, 0.25), (4, 1.0)]]
    assert distinct(texts, 0, set()) == [[(3, 1, 1), (5, 0.5, 1), (9, 3, 3)], [], [(4, 1, 1), (9, 0.25, 1)]]
    assert distinct(texts, 4, {9}) == [[(1, 0.5, 1)], [], [(0, 1, 1)]]
    assert distinct([], 0, set()) == []


@settings(deadline=None)
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 39), st.floats(0, 2, width=32))), max_size=5),
    st.integers(0, 39),
    st.sets(st.integers(0, 39)),
)
def test_distinct_terms_against_a_dict(texts: list[Row], shift: int, left_out: set[int]) -> None:
    expected = []
    for text in texts:
        weights_of: dict[int, list[float]] = {}
        for id_, weight in text:
            if id_ >= shift and id_ not in left_out and weight > 0:
                weights_of.setdefault(id_ - shift, []).append(weight)
        expected.append([(term, max(weights), len(weights)) for term, weights in sorted(weights_of.items())])
    assert distinct(texts, shift, left_out) == expected

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trilens.kernels.array_types import Float32s, Int64s
from trilens.kernels.topk import first_of_each, new_heaps, offer_block, offer_rows, sort_heaps

patient = settings(deadline=None)  # the first call compiles
SCORES = st.sampled_from([-2.5, -1.0, 0.0, 0.5, 1.0, 3.0])  # few values, many ties
NO_MASK = np.empty(0, np.bool_)


def best(scored: list[tuple[float, int]], k: int) -> list[tuple[float, int]]:
    """Slow reference: by descending score, equal scores by ascending row, then padding."""
    top = sorted(scored, key=lambda item: (-item[0], item[1]))[:k]
    return top + [(-np.inf, -1)] * (k - len(top))


def ranking(scores: Float32s, rows: Int64s) -> list[tuple[float, int]]:
    sort_heaps(scores, rows)
    return list(zip(scores[0].tolist(), rows[0].tolist(), strict=True))


@patient
@given(st.lists(SCORES, max_size=30), st.integers(1, 40), st.integers(1, 7))
def test_blocks_give_what_sorting_gives(scores: list[float], k: int, block_rows: int) -> None:
    heap_scores, heap_rows = new_heaps(1, k)
    for start in range(0, len(scores), block_rows):
        block = np.array([scores[start : start + block_rows]], np.float32)
        offer_block(block, 100 + start, NO_MASK, False, heap_scores, heap_rows)
    assert ranking(heap_scores, heap_rows) == best([(score, 100 + row) for row, score in enumerate(scores)], k)


@patient
@given(st.lists(st.tuples(SCORES, st.booleans()), max_size=30), st.integers(1, 40))
def test_only_allowed_rows_are_returned(scored: list[tuple[float, bool]], k: int) -> None:
    heap_scores, heap_rows = new_heaps(1, k)
    block = np.array([[score for score, _ in scored]], np.float32)
    offer_block(block, 0, np.array([allowed for _, allowed in scored], np.bool_), True, heap_scores, heap_rows)
    expected = best([(score, row) for row, (score, allowed) in enumerate(scored) if allowed], k)
    assert ranking(heap_scores, heap_rows) == expected


@patient
@given(st.lists(SCORES, max_size=30).flatmap(lambda scores: st.permutations(list(enumerate(scores)))), st.integers(1, 40))
def test_the_order_of_offers_does_not_matter(offers: list[tuple[int, float]], k: int) -> None:
    heap_scores, heap_rows = new_heaps(1, k)
    block = np.array([[score for _, score in offers]], np.float32)
    offer_rows(block, np.array([[row for row, _ in offers]], np.int64), heap_scores, heap_rows)
    assert ranking(heap_scores, heap_rows) == best([(score, row) for row, score in offers], k)


def test_missing_candidates_are_skipped() -> None:
    heap_scores, heap_rows = new_heaps(1, 3)
    offer_rows(np.array([[9, 1, 9]], np.float32), np.array([[-1, 7, -1]]), heap_scores, heap_rows)
    assert ranking(heap_scores, heap_rows) == [(1, 7), (-np.inf, -1), (-np.inf, -1)]


def test_every_query_has_its_own_heap() -> None:
    heap_scores, heap_rows = new_heaps(2, 2)
    offer_block(np.array([[1, 2, 3], [3, 2, 3]], np.float32), 0, NO_MASK, False, heap_scores, heap_rows)
    sort_heaps(heap_scores, heap_rows)
    assert heap_rows.tolist() == [[2, 1], [0, 2]]
    assert heap_scores.tolist() == [[3, 2], [3, 3]]


@pytest.mark.parametrize("k", [1, 2])
def test_a_nan_score_is_never_returned(k: int) -> None:
    heap_scores, heap_rows = new_heaps(1, k)
    offer_block(np.array([[np.nan, -1, np.nan]], np.float32), 0, NO_MASK, False, heap_scores, heap_rows)
    assert ranking(heap_scores, heap_rows) == best([(-1.0, 1)], k)


def slow_firsts(keys: list[int], rows: list[int], most: int) -> list[int]:
    valid = [position for position, row in enumerate(rows) if row >= 0]
    firsts = [position for position in valid if position == next(other for other in valid if keys[other] == keys[position])]
    count = min(most, len(keys))
    return (firsts + [-1] * count)[:count]


def test_the_first_position_of_each_key() -> None:
    random = np.random.default_rng(0)
    for most in (1, 3, 20, 100):
        for highest in (2, 30, 2**40):
            keys = random.integers(0, highest, (7, 40))
            rows = random.integers(-1, 5, (7, 40))
            positions = first_of_each(keys, rows, most)
            lines = zip(keys.tolist(), rows.tolist(), strict=True)
            assert positions.tolist() == [slow_firsts(*line, most) for line in lines]


def test_the_first_positions_of_no_keys() -> None:
    assert first_of_each(np.zeros((2, 0), np.int64), np.zeros((2, 0), np.int64), 5).shape == (2, 0)

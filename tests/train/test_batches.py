"""Batch plans by hand, and invariants for any lengths, sizes, keys and numbers of processes."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trilens.errors import BadInput
from trilens.train.batches import describe, plan, sizes_by_tokens
from trilens.train.ragged_lists import RaggedLists

KEYS = st.lists(st.lists(st.integers(0, 12), max_size=3), min_size=1, max_size=60)


def clashing(batch: np.ndarray, keys: list[list[int]]) -> bool:
    held = [key for example in batch.tolist() for key in set(keys[example])]
    return len(set(held)) < len(held)


@settings(max_examples=150, deadline=None)
@given(KEYS, st.integers(1, 6), st.integers(1, 4), st.integers(0, 3), st.booleans(), st.data())
def test_invariants(keys: list[list[int]], size: int, world: int, epoch: int, drop_last: bool, data: st.DataObject) -> None:
    count = len(keys)
    lengths = np.array(data.draw(st.lists(st.integers(0, 30), min_size=count, max_size=count)))
    sizes = {8: size, 20: max(1, size // 2), 30: 1}
    actual = plan(lengths, size=sizes, seed=1, epoch=epoch, world=world, groups=RaggedLists.of(keys), drop_last=drop_last)
    times = Counter(example for batch in actual for example in batch.tolist())
    assert len(actual) % world == 0
    for step in range(0, len(actual), world):
        together = actual[step : step + world]
        assert len({len(batch) for batch in together}) == 1
        assert 1 <= len(together[0]) <= size
        joined = np.concatenate(together)
        if max(Counter(times[example] for example in joined.tolist()), default=1) == 1:
            assert not clashing(joined, keys)
    if drop_last:
        assert all(number == 1 for number in times.values())
        return
    assert set(times) == set(range(count))
    if world == 1:
        assert all(number == 1 for number in times.values())
    again = plan(lengths, size=sizes, seed=1, epoch=epoch, world=world, groups=RaggedLists.of(keys))
    assert [batch.tolist() for batch in again] == [batch.tolist() for batch in actual]


def test_batches_have_similar_lengths() -> None:
    lengths = np.random.default_rng(0).integers(1, 513, 4000)
    actual = plan(lengths, size=16, seed=0, epoch=0)
    grouped, mixed = describe(actual, lengths), describe(np.split(np.arange(4000), 250), lengths)
    assert (grouped.batches, grouped.examples, grouped.smallest) == (250, 4000, 16)
    assert grouped.padding < 0.2 < 0.4 < mixed.padding


def test_padding_by_hand() -> None:
    """Batches of (1, 5), (3, 5) and of (2, 2): padded to (3, 5) twice and (2, 2) once, 20 tokens of which 18 are real."""
    lengths = np.array([[1, 5], [3, 5], [2, 2]])
    report = describe([np.array([0, 1]), np.array([2])], lengths)
    assert report.padding == pytest.approx(2 / 20)
    assert (report.batches, report.examples, report.smallest) == (2, 3, 1)
    assert describe([], lengths).padding == 0


def test_batch_size_per_bucket() -> None:
    lengths = np.array([4] * 12 + [40] * 6)
    actual = plan(lengths, size={8: 4, 64: 2}, seed=0, epoch=0)
    assert Counter((len(batch), int(lengths[batch].min())) for batch in actual) == {(4, 4): 3, (2, 40): 3}


def test_partial_batches_move_to_the_next_bucket() -> None:
    lengths = np.array([4] * 5 + [40] * 3)
    actual = plan(lengths, size=4, seed=0, epoch=0, borders=[8, 64])
    assert sorted(lengths[batch].tolist() for batch in actual) == [[4, 4, 4, 4], [4, 40, 40, 40]]


def test_conflicts_are_deferred_not_dropped() -> None:
    """Three share a key, so three batches of at most two are needed for four examples."""
    keys = RaggedLists.of([[7], [7], [7], []])
    actual = plan(np.ones(4, int), size=2, seed=0, epoch=0, groups=keys)
    assert sorted(len(batch) for batch in actual) == [1, 1, 2]
    assert sorted(np.concatenate(actual).tolist()) == [0, 1, 2, 3]


def test_many_conflicts_are_fast() -> None:
    """Every batch holds one example of each of ten keys; scanning all waiting examples would take hours."""
    count = 200_000
    keys = RaggedLists(np.arange(count + 1), np.arange(count) % 10)
    actual = plan(np.ones(count, int), size=64, seed=0, epoch=0, groups=keys)
    assert len(actual) == count // 10
    assert {len(batch) for batch in actual} == {10}


def test_last_step_is_filled_up_for_all_processes() -> None:
    actual = plan(np.ones(9, int), size=2, seed=0, epoch=0, world=2, groups=RaggedLists.of([[index] for index in range(9)]))
    assert sorted(len(batch) for batch in actual) == [1, 1, 2, 2, 2, 2]
    times = Counter(np.concatenate(actual).tolist())
    assert sorted(times.values()) == [1] * 8 + [2]
    dropped = plan(np.ones(9, int), size=2, seed=0, epoch=0, world=2, drop_last=True)
    assert [len(batch) for batch in dropped] == [2, 2, 2, 2]
    many = plan(np.ones(2001, int), size=2, seed=0, epoch=0, world=2)
    assert sorted(Counter(np.concatenate(many).tolist()).values()) == [1] * 2000 + [2]
    alone = plan(np.ones(1, int), size=2, seed=0, epoch=0, world=3)
    assert [batch.tolist() for batch in alone] == [[0], [0], [0]]


def test_epochs_differ() -> None:
    plans = [plan(np.ones(100, int), size=10, seed=seed, epoch=epoch) for seed, epoch in [(0, 0), (0, 1), (1, 0)]]
    orders = {tuple(np.concatenate(actual).tolist()) for actual in plans}
    assert len(orders) == 3


def test_sizes_by_tokens() -> None:
    assert sizes_by_tokens(1024, [512, 32, 4096]) == {32: 32, 512: 2, 4096: 1}


def test_texts_longer_than_all_default_buckets() -> None:
    assert len(plan(np.array([9000, 9000, 1]), size=4, seed=0, epoch=0)) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, "expected at least 1"),
        ({"size": {}}, "expected distinct non-negative lengths"),
        ({"size": {4: 2}}, "the longest text has 5 tokens; expected a bucket for it: the last one ends at 4"),
        ({"size": {8: 2}, "borders": [8]}, "size is given per bucket"),
        ({"size": 2, "borders": [8, 8]}, "expected distinct non-negative lengths"),
        ({"size": 2, "world": 0}, "world is 0"),
        ({"size": 2, "groups": RaggedLists.of([[1]])}, "groups for 1 examples and lengths for 2"),
    ],
)
def test_invalid_options(options: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        plan(np.array([5, 5]), seed=0, epoch=0, **options)  # type: ignore[arg-type]


def test_invalid_lengths() -> None:
    for lengths in (np.array([0.5]), np.array([-1]), np.zeros((1, 1, 1), int)):
        with pytest.raises(BadInput, match="expected whole numbers"):
            plan(lengths, size=1, seed=0, epoch=0)
    with pytest.raises(BadInput, match="at least 1"):
        sizes_by_tokens(0)

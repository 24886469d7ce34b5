"""Plans of batches: by hand, and what must hold for any lengths, sizes, keys and numbers of processes."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trilens.errors import BadInput
from trilens.train.batches import describe, plan, sizes_by_tokens
from trilens.train.lists import Lists

KEYS = st.lists(st.lists(st.integers(0, 12), max_size=3), min_size=1, max_size=60)


def clashing(batch: np.ndarray, keys: list[list[int]]) -> bool:
    held = [key for example in batch.tolist() for key in set(keys[example])]
    return len(set(held)) < len(held)


@settings(max_examples=150, deadline=None)
@given(KEYS, st.integers(1, 6), st.integers(1, 4), st.integers(0, 3), st.booleans(), st.data())
def test_what_holds_for_every_plan(
    keys: list[list[int]], size: int, world: int, epoch: int, drop_last: bool, data: st.DataObject
) -> None:
    count = len(keys)
    lengths = np.array(data.draw(st.lists(st.integers(0, 30), min_size=count, max_size=count)))
    sizes = {8: size, 20: max(1, size // 2), 30: 1}
    found = plan(lengths, size=sizes, seed=1, epoch=epoch, world=world, groups=Lists.of(keys), drop_last=drop_last)
    times = Counter(example for batch in found for example in batch.tolist())
    assert len(found) % world == 0
    for step in range(0, len(found), world):
        together = found[step : step + world]
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
    again = plan(lengths, size=sizes, seed=1, epoch=epoch, world=world, groups=Lists.of(keys))
    assert [batch.tolist() for batch in again] == [batch.tolist() for batch in found]


def test_batches_are_of_like_length() -> None:
    lengths = np.random.default_rng(0).integers(1, 513, 4000)
    found = plan(lengths, size=16, seed=0, epoch=0)
    grouped, mixed = describe(found, lengths), describe(np.split(np.arange(4000), 250), lengths)
    assert (grouped.batches, grouped.examples, grouped.smallest) == (250, 4000, 16)
    assert grouped.padding < 0.2 < 0.4 < mixed.padding


def test_padding_by_hand() -> None:
    """Batches of (1, 5), (3, 5) and of (2, 2): padded to (3, 5) twice and (2, 2) once, 20 tokens of which 18 are real."""
    lengths = np.array([[1, 5], [3, 5], [2, 2]])
    report = describe([np.array([0, 1]), np.array([2])], lengths)
    assert report.padding == pytest.approx(2 / 20)
    assert (report.batches, report.examples, report.smallest) == (2, 3, 1)
    assert describe([], lengths).padding == 0


def test_a_bucket_has_its_own_size() -> None:
    lengths = np.array([4] * 12 + [40] * 6)
    found = plan(lengths, size={8: 4, 64: 2}, seed=0, epoch=0)
    assert Counter((len(batch), int(lengths[batch].min())) for batch in found) == {(4, 4): 3, (2, 40): 3}


def test_what_does_not_fill_a_batch_goes_into_a_longer_bucket() -> None:
    lengths = np.array([4] * 5 + [40] * 3)
    found = plan(lengths, size=4, seed=0, epoch=0, borders=[8, 64])
    assert sorted(lengths[batch].tolist() for batch in found) == [[4, 4, 4, 4], [4, 40, 40, 40]]


def test_clashes_are_put_off_and_never_lost() -> None:
    """Three share a key, so three batches of at most two are needed for four examples."""
    keys = Lists.of([[7], [7], [7], []])
    found = plan(np.ones(4, int), size=2, seed=0, epoch=0, groups=keys)
    assert sorted(len(batch) for batch in found) == [1, 1, 2]
    assert sorted(np.concatenate(found).tolist()) == [0, 1, 2, 3]


def test_many_that_clash_take_no_time() -> None:
    """Every batch holds one of each of ten keys; a search through those that wait would take hours."""
    count = 200_000
    keys = Lists(np.arange(count + 1), np.arange(count) % 10)
    found = plan(np.ones(count, int), size=64, seed=0, epoch=0, groups=keys)
    assert len(found) == count // 10
    assert {len(batch) for batch in found} == {10}


def test_the_last_step_is_filled_up_for_all_processes() -> None:
    found = plan(np.ones(9, int), size=2, seed=0, epoch=0, world=2, groups=Lists.of([[at] for at in range(9)]))
    assert sorted(len(batch) for batch in found) == [1, 1, 2, 2, 2, 2]
    times = Counter(np.concatenate(found).tolist())
    assert sorted(times.values()) == [1] * 8 + [2]
    dropped = plan(np.ones(9, int), size=2, seed=0, epoch=0, world=2, drop_last=True)
    assert [len(batch) for batch in dropped] == [2, 2, 2, 2]
    many = plan(np.ones(2001, int), size=2, seed=0, epoch=0, world=2)
    assert sorted(Counter(np.concatenate(many).tolist()).values()) == [1] * 2000 + [2]
    alone = plan(np.ones(1, int), size=2, seed=0, epoch=0, world=3)
    assert [batch.tolist() for batch in alone] == [[0], [0], [0]]


def test_epochs_differ() -> None:
    plans = [plan(np.ones(100, int), size=10, seed=seed, epoch=epoch) for seed, epoch in [(0, 0), (0, 1), (1, 0)]]
    orders = {tuple(np.concatenate(found).tolist()) for found in plans}
    assert len(orders) == 3


def test_sizes_by_tokens() -> None:
    assert sizes_by_tokens(1024, [512, 32, 4096]) == {32: 32, 512: 2, 4096: 1}


def test_texts_longer_than_all_usual_buckets() -> None:
    assert len(plan(np.array([9000, 9000, 1]), size=4, seed=0, epoch=0)) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, "expected at least 1"),
        ({"size": {}}, "expected different lengths"),
        ({"size": {4: 2}}, "the longest text has 5 tokens; expected a bucket for it: the last one ends at 4"),
        ({"size": {8: 2}, "borders": [8]}, "size names the buckets already"),
        ({"size": 2, "borders": [8, 8]}, "expected different lengths"),
        ({"size": 2, "world": 0}, "world is 0"),
        ({"size": 2, "groups": Lists.of([[1]])}, "groups for 1 examples and lengths for 2"),
    ],
)
def test_bad_options(options: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        plan(np.array([5, 5]), seed=0, epoch=0, **options)  # type: ignore[arg-type]


def test_bad_lengths() -> None:
    for lengths in (np.array([0.5]), np.array([-1]), np.zeros((1, 1, 1), int)):
        with pytest.raises(BadInput, match="expected whole numbers"):
            plan(lengths, size=1, seed=0, epoch=0)
    with pytest.raises(BadInput, match="at least 1"):
        sizes_by_tokens(0)

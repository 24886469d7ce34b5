"""Commits every few seconds, whatever the speed."""

import pytest

from trilens.store import pace
from trilens.store.pace import FIRST_PASSAGES, FIRST_SHARED, GROWTH, MOST_PASSAGES, SECONDS, CommitPace


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(pace, "monotonic", clock)
    return clock


def due(one: CommitPace) -> int:
    """The number of passages from which on a commit is due."""
    return next(passages for passages in range(MOST_PASSAGES + 1) if one.is_due(passages))


@pytest.mark.parametrize("per_second", [0.5, 3.0, 40.0, 200.0])
def test_commits_take_the_same_time_at_any_speed(clock: Clock, per_second: float) -> None:
    one = CommitPace()
    for _ in range(5):
        passages = due(one)
        clock.now += passages / per_second
        one.committed(passages)
    assert due(one) / per_second == pytest.approx(SECONDS, abs=2 / per_second)


def test_one_fast_commit_changes_little(clock: Clock) -> None:
    one = CommitPace()
    assert due(one) == FIRST_PASSAGES
    one.committed(FIRST_PASSAGES)
    assert due(one) == GROWTH * FIRST_PASSAGES


def test_the_first_commit_has_enough_tokens_for_a_codebook(clock: Clock) -> None:
    assert due(CommitPace(shares=True)) == FIRST_SHARED


def test_slow_sources_are_committed_in_time_too(clock: Clock) -> None:
    one = CommitPace()
    assert not one.is_due(1)
    clock.now += SECONDS
    assert one.is_due(0)
    one.committed(0)
    assert due(one) == FIRST_PASSAGES


def test_full_batches_do_not_depend_on_the_speed(clock: Clock) -> None:
    one = CommitPace(full_batches=True)
    clock.now += SECONDS
    one.committed(1)
    assert due(one) == MOST_PASSAGES

"""The batches of an epoch: texts of like length together, nothing in a batch that is a false negative of another.

A *step* is what all processes work on at the same time: one batch each, of the same size and from the same bucket of lengths.
Since processes share their passages as negatives, it is the step in which no two examples may share a query or a positive.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trilens.errors import BadInput
from trilens.kernels.batching import assign_batches
from trilens.train.lists import Lists

Ints = NDArray[np.int64]

BORDERS = (16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192)
"""Lengths at which buckets end where nothing is said: a text is never padded by more than half of its length."""

FEW = 1024  # examples, of which all are tried to fill a step up
TRIES = 32  # otherwise, for each process


def plan(
    lengths: NDArray[np.integer],
    *,
    size: int | Mapping[int, int],
    seed: int,
    epoch: int,
    world: int = 1,
    groups: Lists | None = None,
    borders: Sequence[int] | None = None,
    drop_last: bool = False,
) -> list[Ints]:
    """The batches of an epoch, `world` of them for each step, as numbers of examples.

    `lengths` is (examples,) or (examples, parts): tokens of the query, of the positive, of the negatives; the longest part
    decides on the bucket. `size` is the size of every batch, or that of each bucket by the length at which it ends; see
    `sizes_by_tokens`. `groups` has for each example the keys that it must not share with others (`Examples.groups`).

    Every example comes exactly once. What does not fill a batch, or would clash in it, waits for a later batch, and where a
    bucket ends for the next longer one, so that only the last batches can be smaller than they should. `drop_last` leaves
    those out. Otherwise, where `world` does not divide what is left, each of the last steps is filled up with fewer than
    `world` examples that come twice.
    """
    longest = _longest(lengths)
    sizes = _sizes(size, borders, int(longest.max(initial=0)))
    if world < 1:
        raise BadInput(f"world is {world}; expected the number of processes, at least 1")
    clashes = _checked_groups(groups, len(longest))
    random = np.random.default_rng([seed, epoch])
    ends = np.array(list(sizes))
    buckets = np.searchsorted(ends, longest)
    steps: list[Ints] = []
    partial: list[Ints] = []
    for bucket, end in enumerate(ends.tolist()):
        waiting = np.concatenate([np.empty(0, np.int64), *partial])
        members = np.concatenate([waiting, random.permutation(np.flatnonzero(buckets == bucket))])
        capacity = sizes[end] * world
        packed = _pack(members, capacity, clashes)
        steps += [batch for batch in packed if len(batch) == capacity]
        partial = [batch for batch in packed if len(batch) < capacity]
    if not drop_last:
        steps += _last_steps(partial, world, clashes, random)
    order = random.permutation(len(steps))
    return [batch for step in order for batch in np.split(steps[step], world)]


def sizes_by_tokens(tokens: int, borders: Sequence[int] = BORDERS) -> dict[int, int]:
    """The size of a batch of each bucket such that no more than so many tokens of a part are in it, padding included."""
    if tokens < 1:
        raise BadInput(f"the budget of a batch is {tokens} tokens; expected at least 1")
    return {border: max(1, tokens // border) for border in _ascending(borders)}


@dataclass(frozen=True, slots=True)
class PlanReport:
    """`padding` is the share of all tokens of all batches that only fill up; `smallest` the size of the smallest batch."""

    batches: int
    examples: int
    smallest: int
    padding: float


def describe(batches: Sequence[Ints], lengths: NDArray[np.integer]) -> PlanReport:
    """What a plan costs; every part is padded to its longest in the batch."""
    parts = lengths.reshape(len(lengths), -1)
    padded = sum(len(batch) * int(parts[batch].max(axis=0).sum()) for batch in batches)
    real = sum(int(parts[batch].sum()) for batch in batches)
    counts = [len(batch) for batch in batches]
    return PlanReport(len(batches), sum(counts), min(counts, default=0), 1 - real / padded if padded else 0.0)


def _last_steps(partial: list[Ints], world: int, groups: Lists, random: np.random.Generator) -> list[Ints]:
    """Steps of what no full one was made of: as many examples as `world` divides; the others are packed again."""
    steps: list[Ints] = []
    while partial:
        even = [len(batch) - len(batch) % world for batch in partial]
        steps += [batch[:count] for batch, count in zip(partial, even, strict=True) if count]
        rest = np.concatenate([batch[count:] for batch, count in zip(partial, even, strict=True)])
        partial = _pack(rest, max(world, max(even)), groups)
        if not any(len(batch) >= world for batch in partial):
            break
    return steps + [_filled_up(batch, world, groups, random) for batch in partial]


def _filled_up(batch: Ints, world: int, groups: Lists, random: np.random.Generator) -> Ints:
    """With examples from anywhere until there is one for each process; they clash only if all that are tried do."""
    # Where there are many examples, a few tries find some: a shuffle of all of them for every batch would take hours.
    few = len(groups) <= FEW
    others = random.permutation(len(groups)) if few else random.integers(0, len(groups), TRIES * world)
    taken = set(groups.take(batch).values.tolist())
    chosen = batch.tolist()
    for example in others.tolist():
        if len(chosen) == world:
            break
        keys = groups[example].tolist()
        if example not in chosen and taken.isdisjoint(keys):
            chosen.append(example)
            taken.update(keys)
    while len(chosen) < world:
        chosen.append(int(others[len(chosen) % len(others)]))
    return np.array(chosen, np.int64)


def _pack(members: Ints, capacity: int, groups: Lists) -> list[Ints]:
    """Batches in which no two share a key, the first ones full."""
    if not len(members):
        return []
    key_count = int(groups.values.max(initial=-1)) + 1
    numbers = assign_batches(members, groups.offsets, groups.values, key_count, capacity)
    order = np.argsort(numbers, kind="stable")
    borders = np.flatnonzero(np.diff(numbers[order])) + 1
    return np.split(members[order], borders)


def _longest(lengths: NDArray[np.integer]) -> Ints:
    if lengths.ndim not in (1, 2) or not np.issubdtype(lengths.dtype, np.integer) or (lengths < 0).any():
        raise BadInput(f"lengths are {lengths.dtype}{lengths.shape}; expected whole numbers (examples,) or (examples, parts)")
    return np.asarray(lengths if lengths.ndim == 1 else lengths.max(axis=1, initial=0), np.int64)


def _sizes(size: int | Mapping[int, int], borders: Sequence[int] | None, longest: int) -> dict[int, int]:
    if isinstance(size, Mapping):
        if borders is not None:
            raise BadInput("size names the buckets already; expected borders only beside one size for all")
        sizes = {border: size[border] for border in _ascending(list(size))}
    else:
        known = _ascending(BORDERS if borders is None else borders)
        # Where nobody chose the borders, a longer text is no error.
        sizes = dict.fromkeys([*known, *([longest] if borders is None and longest > known[-1] else [])], size)
    if any(count < 1 for count in sizes.values()):
        raise BadInput(f"sizes of batches are {sorted(set(sizes.values()))}; expected at least 1")
    if longest > max(sizes):
        raise BadInput(f"the longest text has {longest} tokens; expected a bucket for it: the last one ends at {max(sizes)}")
    return sizes


def _ascending(borders: Sequence[int]) -> list[int]:
    if not len(borders) or min(borders) < 0 or len(set(borders)) < len(borders):
        raise BadInput(f"borders of buckets are {list(borders)}; expected different lengths, at least one")
    return sorted(borders)


def _checked_groups(groups: Lists | None, examples: int) -> Lists:
    if groups is None:
        return Lists(np.zeros(examples + 1, np.int64), np.empty(0, np.int64))
    if len(groups) != examples:
        raise BadInput(f"there are groups for {len(groups)} examples and lengths for {examples}; expected both for the same")
    return Lists(groups.offsets, groups.values.astype(np.int64))

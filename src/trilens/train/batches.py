"""`plan`: the batches of an epoch, bucketed by length and without false in-batch negatives.

A *step* is what all processes work on at the same time: one batch each, of the same size and from the same length bucket.
Processes share their passages as negatives, so no two examples of a step may share a query or a positive.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trilens.errors import BadInput
from trilens.kernels.array_types import Int64s
from trilens.kernels.batching import assign_batches
from trilens.train.ragged_lists import RaggedLists

BORDERS = (16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192)
"""Default upper bounds of length buckets: a text is padded by at most half of its length."""

FEW = 1024  # up to this many examples, all are tried to fill up a step
TRIES = 32  # per process, if there are more


def plan(
    lengths: NDArray[np.integer],
    *,
    size: int | Mapping[int, int],
    seed: int,
    epoch: int,
    world: int = 1,
    groups: RaggedLists | None = None,
    borders: Sequence[int] | None = None,
    drop_last: bool = False,
) -> list[Int64s]:
    """The batches of an epoch as arrays of example numbers, `world` consecutive batches per step.

    `lengths` is (examples,) or (examples, parts): token counts of query, positive and negatives; the longest part determines
    the bucket. `size` is the size of every batch, or a size per bucket, keyed by upper bound; see `sizes_by_tokens`. `groups`
    has the keys of each example that no other example of a step may share (`Examples.groups`).

    Every example occurs exactly once. Examples that do not fill a batch, or conflict within it, wait for a later batch, and at
    the end of a bucket for the next longer one, so only the last batches can be smaller. `drop_last` drops those. Otherwise,
    if `world` does not divide the remaining examples, each of the last steps is filled up with fewer than `world` repeated
    examples.
    """
    longest = _longest(lengths)
    sizes = _sizes(size, borders, int(longest.max(initial=0)))
    if world < 1:
        raise BadInput(f"world is {world}; expected the number of processes, at least 1")
    conflicts = _checked_groups(groups, len(longest))
    random = np.random.default_rng([seed, epoch])
    ends = np.array(list(sizes))
    buckets = np.searchsorted(ends, longest)
    steps: list[Int64s] = []
    partial: list[Int64s] = []
    for bucket, end in enumerate(ends.tolist()):
        waiting = np.concatenate([np.empty(0, np.int64), *partial])
        members = np.concatenate([waiting, random.permutation(np.flatnonzero(buckets == bucket))])
        capacity = sizes[end] * world
        packed = _pack(members, capacity, conflicts)
        steps += [batch for batch in packed if len(batch) == capacity]
        partial = [batch for batch in packed if len(batch) < capacity]
    if not drop_last:
        steps += _last_steps(partial, world, conflicts, random)
    order = random.permutation(len(steps))
    return [batch for step in order for batch in np.split(steps[step], world)]


def sizes_by_tokens(tokens: int, borders: Sequence[int] = BORDERS) -> dict[int, int]:
    """The batch size per bucket for a budget of `tokens` tokens per batch and part, padding included."""
    if tokens < 1:
        raise BadInput(f"the budget of a batch is {tokens} tokens; expected at least 1")
    return {border: max(1, tokens // border) for border in _ascending(borders)}


@dataclass(frozen=True, slots=True)
class PlanReport:
    """Cost of a plan: `padding` is the share of padding among all tokens, `smallest` the size of the smallest batch."""

    batches: int
    examples: int
    smallest: int
    padding: float


def describe(batches: Sequence[Int64s], lengths: NDArray[np.integer]) -> PlanReport:
    """The cost of a plan; every part is padded to its longest text in the batch."""
    parts = lengths.reshape(len(lengths), -1)
    padded = sum(len(batch) * int(parts[batch].max(axis=0).sum()) for batch in batches)
    real = sum(int(parts[batch].sum()) for batch in batches)
    counts = [len(batch) for batch in batches]
    return PlanReport(len(batches), sum(counts), min(counts, default=0), 1 - real / padded if padded else 0.0)


def _last_steps(partial: list[Int64s], world: int, groups: RaggedLists, random: np.random.Generator) -> list[Int64s]:
    """Steps from the partial batches: as many examples as `world` divides; the others are packed again."""
    steps: list[Int64s] = []
    while partial:
        even = [len(batch) - len(batch) % world for batch in partial]
        steps += [batch[:count] for batch, count in zip(partial, even, strict=True) if count]
        rest = np.concatenate([batch[count:] for batch, count in zip(partial, even, strict=True)])
        partial = _pack(rest, max(world, max(even)), groups)
        if not any(len(batch) >= world for batch in partial):
            break
    return steps + [_filled_up(batch, world, groups, random) for batch in partial]


def _filled_up(batch: Int64s, world: int, groups: RaggedLists, random: np.random.Generator) -> Int64s:
    """Fill up with random examples to one per process; they conflict only if all tried examples do."""
    # With many examples, a few tries suffice: shuffling all of them for every batch would take hours.
    few = len(groups) <= FEW
    others = random.permutation(len(groups)) if few else random.integers(0, len(groups), TRIES * world)
    taken = set(groups.take(batch).values.tolist())
    filled = batch.tolist()
    for example in others.tolist():
        if len(filled) == world:
            break
        keys = groups[example].tolist()
        if example not in filled and taken.isdisjoint(keys):
            filled.append(example)
            taken.update(keys)
    while len(filled) < world:
        filled.append(int(others[len(filled) % len(others)]))
    return np.array(filled, np.int64)


def _pack(members: Int64s, capacity: int, groups: RaggedLists) -> list[Int64s]:
    """Pack into batches in which no two examples share a key, the first ones full."""
    if not len(members):
        return []
    key_count = int(groups.values.max(initial=-1)) + 1
    numbers = assign_batches(members, groups.offsets, groups.values, key_count, capacity)
    order = np.argsort(numbers, kind="stable")
    borders = np.flatnonzero(np.diff(numbers[order])) + 1
    return np.split(members[order], borders)


def _longest(lengths: NDArray[np.integer]) -> Int64s:
    if lengths.ndim not in (1, 2) or not np.issubdtype(lengths.dtype, np.integer) or (lengths < 0).any():
        raise BadInput(f"lengths are {lengths.dtype}{lengths.shape}; expected whole numbers (examples,) or (examples, parts)")
    return np.asarray(lengths if lengths.ndim == 1 else lengths.max(axis=1, initial=0), np.int64)


def _sizes(size: int | Mapping[int, int], borders: Sequence[int] | None, longest: int) -> dict[int, int]:
    if isinstance(size, Mapping):
        if borders is not None:
            raise BadInput("size is given per bucket, which sets the borders; expected borders only with one size for all")
        sizes = {border: size[border] for border in _ascending(list(size))}
    else:
        known = _ascending(BORDERS if borders is None else borders)
        # With default borders, a longer text gets a bucket of its own.
        sizes = dict.fromkeys([*known, *([longest] if borders is None and longest > known[-1] else [])], size)
    if any(count < 1 for count in sizes.values()):
        raise BadInput(f"batch sizes are {sorted(set(sizes.values()))}; expected at least 1")
    if longest > max(sizes):
        raise BadInput(f"the longest text has {longest} tokens; expected a bucket for it: the last one ends at {max(sizes)}")
    return sizes


def _ascending(borders: Sequence[int]) -> list[int]:
    if not len(borders) or min(borders) < 0 or len(set(borders)) < len(borders):
        raise BadInput(f"bucket borders are {list(borders)}; expected distinct non-negative lengths, at least one")
    return sorted(borders)


def _checked_groups(groups: RaggedLists | None, examples: int) -> RaggedLists:
    if groups is None:
        return RaggedLists(np.zeros(examples + 1, np.int64), np.empty(0, np.int64))
    if len(groups) != examples:
        raise BadInput(f"there are groups for {len(groups)} examples and lengths for {examples}; expected equal numbers")
    return RaggedLists(groups.offsets, groups.values.astype(np.int64))

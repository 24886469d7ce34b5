"""Which segments belong to which shard."""

from collections.abc import Iterable, Sequence

from trilens.store.schema import SegmentRecord

MOST_SHARDS = 1024
MOST_SHARE = 2  # times the rows of an equal share that a shard may have


def deal_out(
    segments: Iterable[SegmentRecord], count: int, before: Sequence[Sequence[str]] = ()
) -> tuple[tuple[str, ...], ...]:
    """The segments of each of `count` shards: where they were before, and new ones where the fewest rows are.

    With another number of shards than before, all are dealt out again.
    """
    known = {folder_id: shard for shard, ids in enumerate(before) for folder_id in ids} if len(before) == count else {}
    shards: list[list[str]] = [[] for _ in range(count)]
    rows = [0] * count
    for segment in sorted(segments, key=lambda segment: (segment.id not in known, -segment.rows, segment.id)):
        shard = known.get(segment.id, min(range(count), key=rows.__getitem__))
        shards[shard].append(segment.id)
        rows[shard] += segment.rows
    return tuple(map(tuple, shards))


def is_balanced(segments: Iterable[SegmentRecord], shards: Sequence[Sequence[str]]) -> bool:
    """Whether no shard has far more rows than others could take from it."""
    rows = {segment.id: segment.rows for segment in segments}
    sizes = [sum(rows[folder_id] for folder_id in ids) for ids in shards]
    return max(sizes) * len(sizes) <= MOST_SHARE * sum(sizes)

from pathlib import Path

import numpy as np
import pytest

from trilens.collection import Collection
from trilens.errors import CollectionDamaged
from trilens.kernels.postings import MOST_ROWS
from trilens.store.merge import FANOUT, SMALLEST, divisions, full_merge, next_merge
from trilens.text.document import Document


def test_few_segments_are_left_alone() -> None:
    assert next_merge([10] * (FANOUT - 1), [10] * (FANOUT - 1)) is None


def test_the_youngest_of_a_size_are_merged() -> None:
    large = SMALLEST * FANOUT
    rows = [large] + [10] * FANOUT
    assert next_merge(rows, rows) == slice(1, FANOUT + 1)


def test_a_segment_with_more_dead_than_live_rows_is_rewritten() -> None:
    assert next_merge([100, 100, 100], [100, 49, 100]) == slice(1, 2)
    assert next_merge([100, 100, 100], [100, 50, 100]) is None


def test_one_at_a_time_ends_with_few_segments() -> None:
    rows: list[int] = []
    for _ in range(10_000):
        rows.append(1)
        while run := next_merge(rows, rows):
            rows[run] = [sum(rows[run])]
    assert sum(rows) == 10_000
    assert len(rows) < 3 * FANOUT


@pytest.mark.parametrize(
    ("live", "runs"),
    [
        ([], []),
        ([5], [slice(0, 1)]),
        ([5, 6, 7], [slice(0, 3)]),
        ([MOST_ROWS, 1, 2], [slice(1, 3), slice(0, 1)]),
        ([MOST_ROWS, MOST_ROWS], [slice(1, 2), slice(0, 1)]),
    ],
)
def test_all_are_merged_up_to_the_limit(live: list[int], runs: list[slice]) -> None:
    assert full_merge(live) == runs


def test_a_merge_refuses_what_has_changed_on_disk(root: Path) -> None:
    """Otherwise damage would get a checksum of its own, and no check would find it."""
    with Collection.open(root) as collection:
        collection.add([Document("a", "red fox")])
        collection.commit()
        collection.add([Document("b", "blue owl")])
        collection.commit()
        [counts, *_] = sorted((root / "segments").rglob("counts.npy"))
        counts.write_bytes(counts.read_bytes()[:-1] + b"\x07")
        with pytest.raises(CollectionDamaged, match=r"counts\.npy has changed"):
            collection.optimize()


def test_no_merge_has_more_rows_than_the_limit() -> None:
    rows = [300] * 3 + [10] * (FANOUT - 1)
    assert next_merge(rows, rows) == slice(0, len(rows))
    assert next_merge(rows, rows, most=900) == slice(1, len(rows))
    assert next_merge(rows, rows, most=300) is None  # only seven small ones are left
    assert next_merge([*rows, 10], [*rows, 10], most=300) == slice(3, len(rows) + 1)


def test_divisions_have_about_equal_numbers_of_rows_and_whole_documents() -> None:
    keys = [np.array([1, 1, 2, 3]), np.array([5, 5, 5, 6])]
    keep = [np.array([True, True, False, True]), np.ones(4, np.bool_)]
    # The kept rows are 1 1 3 5 5 5 6: the second part begins with the fourth.
    assert [[mask.tolist() for mask in part] for part in divisions(keys, keep, 2)] == [
        [[True, True, False, True], [False] * 4],
        [[False] * 4, [True] * 4],
    ]
    parts = divisions(keys, keep, 20)
    assert sum(sum(int(mask.sum()) for mask in part) for part in parts) == 7
    assert not any(mask.any() for part in divisions(keys, [mask & False for mask in keep], 2) for mask in part)

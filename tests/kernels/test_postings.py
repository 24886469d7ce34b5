"""Windowed posting lists: by hand, and against the rows that they were built from."""

import numpy as np

from trilens.kernels.array_types import Float32s, Int32s, Int64s
from trilens.kernels.postings import (
    BLOCK,
    WINDOW,
    PostingLists,
    cell_best,
    cell_size,
    cell_start,
    cell_window,
    copy_kept,
    count_allowed,
    count_cells,
    count_kept,
    fill_cells,
    invert,
)

ROWS, TERMS = 3 * WINDOW + 17, 12


def random_rows(seed: int) -> tuple[Int64s, Int32s, Float32s]:
    random = np.random.default_rng(seed)
    counts = random.integers(0, 9, (ROWS, TERMS)) * (random.random((ROWS, TERMS)) < 0.2)
    rows, terms = np.nonzero(counts)
    indptr = np.searchsorted(rows, np.arange(ROWS + 1)).astype(np.int64)
    return indptr, terms.astype(np.int32), counts[rows, terms].astype(np.float32)


def built(indptr: Int64s, terms: Int32s, weights: Float32s, norms: Float32s) -> PostingLists:
    lists, rows, counts = invert(indptr, terms, weights, TERMS)
    cell_ptr = count_cells(lists, rows)
    cells, bests = np.empty(cell_ptr[-1], np.int64), np.empty(cell_ptr[-1], np.uint64)
    made = PostingLists(cell_ptr, cells, bests, np.empty(len(rows), np.uint16), np.empty(len(rows), np.uint32))
    fill_cells(lists, rows, counts, norms, made)
    return made


def decoded(lists: PostingLists) -> list[list[tuple[int, int, int]]]:
    """Row, count and impact of the postings of each term."""
    terms = []
    for term in range(len(lists.cell_ptr) - 1):
        postings = []
        for cell in lists.cells[lists.cell_ptr[term] : lists.cell_ptr[term + 1]].tolist():
            span = slice(cell_start(cell), cell_start(cell) + cell_size(cell))
            offsets, impacts = lists.postings[span] >> 8, lists.postings[span] & 255
            rows = cell_window(cell) * WINDOW + offsets.astype(np.int64)
            postings += list(zip(rows.tolist(), lists.counts[span].tolist(), impacts.tolist(), strict=True))
        terms.append(postings)
    return terms


def test_a_list_by_hand() -> None:
    # Counts 1 and 3 with a norm of 1 have the impacts ⌈255 / 2⌉ = 128 and ⌈255 · 3 / 4⌉ = 192.
    indptr = np.zeros(WINDOW + 2, np.int64)
    indptr[3:], indptr[BLOCK + 2 :], indptr[WINDOW + 1 :] = 1, 2, 3  # rows 2, BLOCK + 1 and WINDOW
    norms = np.ones(WINDOW + 1, np.float32)
    lists = built(indptr, np.zeros(3, np.int32), np.array([1, 3, 1], np.float32), norms)
    assert decoded(lists)[0] == [(2, 1, 128), (BLOCK + 1, 3, 192), (WINDOW, 1, 128)]
    assert [cell_window(cell) for cell in lists.cells.tolist()] == [0, 1]
    assert [cell_best(cell) for cell in lists.cells.tolist()] == [192, 128]
    assert lists.bests.tolist() == [192 << 8 | 128, 128]


def test_lists_contain_all_rows_and_the_highest_impacts() -> None:
    indptr, terms, weights = random_rows(1)
    norms = np.random.default_rng(2).uniform(0.3, 2, ROWS).astype(np.float32)
    lists = built(indptr, terms, weights, norms)
    row_of = np.repeat(np.arange(ROWS), np.diff(indptr))
    for term, postings in enumerate(decoded(lists)):
        expected = list(zip(row_of[terms == term].tolist(), weights[terms == term].tolist(), strict=True))
        assert [(row, count) for row, count, _ in postings] == expected
        for row, count, impact in postings:
            assert 1 <= impact <= 255 and impact / 255 >= count / (count + norms[row]) - 1e-6
        for position in range(lists.cell_ptr[term], lists.cell_ptr[term + 1]):
            window = cell_window(int(lists.cells[position]))
            blocks = [0] * (WINDOW // BLOCK)
            for row, _, impact in postings:
                if row // WINDOW == window:
                    blocks[row % WINDOW // BLOCK] = max(blocks[row % WINDOW // BLOCK], impact)
            assert lists.bests[position : position + 1].view(np.uint8).tolist() == blocks
            assert cell_best(int(lists.cells[position])) == max(blocks)


def test_allowed_and_kept_postings() -> None:
    random = np.random.default_rng(3)
    lists = built(*random_rows(1), np.ones(ROWS, np.float32))
    keep = random.random(ROWS) < 0.5
    row_map = np.where(keep, np.cumsum(keep) - 1, -1).astype(np.int32)
    merged_terms = random.permutation(TERMS)
    expected = [[(int(row_map[row]), count) for row, count, _ in postings if keep[row]] for postings in decoded(lists)]
    for term in range(TERMS):
        cells = lists.cells[lists.cell_ptr[term] : lists.cell_ptr[term + 1]]
        assert count_allowed(cells, lists.postings, keep) == len(expected[term])
    kept = np.zeros(TERMS, np.int64)
    count_kept(lists, row_map, merged_terms, kept)
    assert kept[merged_terms].tolist() == [len(postings) for postings in expected]
    cursor = np.cumsum(kept) - kept
    starts, rows, counts = cursor.copy(), np.empty(kept.sum(), np.int32), np.empty(kept.sum(), np.uint32)
    copy_kept(lists, row_map, merged_terms, cursor, rows, counts)
    for term in range(TERMS):
        span = slice(starts[merged_terms[term]], cursor[merged_terms[term]])
        assert list(zip(rows[span].tolist(), counts[span].tolist(), strict=True)) == expected[term]

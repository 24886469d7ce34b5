"""SIMD sums of columns equal those of numpy."""

from typing import Any

import numba
import numpy as np
import pytest

from trilens.kernels import columns as module
from trilens.kernels import lanes
from trilens.kernels.array_types import AnyArray, Int64s, UInt8s
from trilens.kernels.columns import BLOCK, BLOCK_BYTES, LEVELS, adder


def levels_of(column: UInt8s) -> UInt8s:
    """The level of each row: in a block of 32 bytes, those in the low bits come first."""
    blocks = column.reshape(-1, BLOCK_BYTES)
    return np.concatenate([blocks & 15, blocks >> 4], axis=1).reshape(-1)


def added(together: int, columns: UInt8s, starts: Int64s, tables: UInt8s, shift: int, blocks: int) -> AnyArray:
    add: Any = adder(together)

    @numba.njit  # type: ignore[untyped-decorator]
    def run(sums: Any, columns: Any, starts: Any, tables: Any, shift: int, blocks: int) -> None:
        add(sums, BLOCK, columns, starts, tables, shift, blocks)

    sums = np.arange((blocks + 2) * BLOCK, dtype=np.uint16)
    run(sums, columns, starts, tables, shift, blocks)
    return sums - np.arange(len(sums), dtype=np.uint16)


@pytest.mark.parametrize("portable", [False, True])
@pytest.mark.parametrize("together", [1, 2, 4, 8])
def test_columns_are_added_up(together: int, portable: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if portable:  # as on a processor without byte lookup instructions
        for source in (module, lanes):
            monkeypatch.setattr(source, "_host_has", lambda feature: False)
    random = np.random.default_rng(together)
    blocks, shift = 3, 2
    stored = random.integers(0, 256, (10, blocks * BLOCK_BYTES), dtype=np.uint8)
    tables = random.integers(0, 255 // together + 1, (together, LEVELS), dtype=np.uint8)
    numbers = random.choice(10, together, replace=False)
    sums = added(together, stored.reshape(-1), numbers * stored.shape[1], tables.reshape(-1), shift, blocks)
    expected = sum(tables[c][levels_of(stored[number])].astype(np.uint16) for c, number in enumerate(numbers))
    assert sums[BLOCK:-BLOCK].tolist() == (np.asarray(expected) << shift).tolist()
    assert not sums[:BLOCK].any() and not sums[-BLOCK:].any()  # nothing is written before or after


def test_a_sum_of_255_does_not_overflow() -> None:
    stored = np.full((8, BLOCK_BYTES), 0xFF, np.uint8)  # the highest level in every row
    tables = np.zeros((8, LEVELS), np.uint8)
    tables[:, LEVELS - 1] = [31, 32, 32, 32, 32, 32, 32, 32]
    sums = added(8, stored.reshape(-1), np.arange(8) * BLOCK_BYTES, tables.reshape(-1), 8, 1)
    assert (sums[BLOCK:-BLOCK] == 255 << 8).all()

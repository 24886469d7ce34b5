"""Columns added several at a time are what numpy adds up one by one."""

from typing import Any

import numba
import numpy as np
import pytest
from numpy.typing import NDArray

from trilens.kernels import columns as module
from trilens.kernels import lanes
from trilens.kernels.columns import BLOCK, BLOCK_BYTES, LEVELS, adder

Bytes = NDArray[np.uint8]


def levels_of(column: Bytes) -> Bytes:
    """The level of each row: of a block of 32 bytes first those in the lower bits."""
    blocks = column.reshape(-1, BLOCK_BYTES)
    return np.concatenate([blocks & 15, blocks >> 4], axis=1).reshape(-1)


def added(together: int, columns: Bytes, starts: NDArray[np.int64], tables: Bytes, shift: int, blocks: int) -> NDArray[Any]:
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
    if portable:  # as on a processor that has no instruction for looking up bytes
        for place in (module, lanes):
            monkeypatch.setattr(place, "_host_has", lambda feature: False)
    random = np.random.default_rng(together)
    blocks, shift = 3, 2
    stored = random.integers(0, 256, (10, blocks * BLOCK_BYTES), dtype=np.uint8)
    tables = random.integers(0, 255 // together + 1, (together, LEVELS), dtype=np.uint8)
    chosen = random.choice(10, together, replace=False)
    found = added(together, stored.reshape(-1), chosen * stored.shape[1], tables.reshape(-1), shift, blocks)
    expected = sum(tables[c][levels_of(stored[column])].astype(np.uint16) for c, column in enumerate(chosen))
    assert found[BLOCK:-BLOCK].tolist() == (np.asarray(expected) << shift).tolist()
    assert not found[:BLOCK].any() and not found[-BLOCK:].any()  # nothing is written before or after


def test_a_full_byte_is_not_too_much() -> None:
    stored = np.full((8, BLOCK_BYTES), 0xFF, np.uint8)  # the highest level in every row
    tables = np.zeros((8, LEVELS), np.uint8)
    tables[:, LEVELS - 1] = [31, 32, 32, 32, 32, 32, 32, 32]
    found = added(8, stored.reshape(-1), np.arange(8) * BLOCK_BYTES, tables.reshape(-1), 8, 1)
    assert (found[BLOCK:-BLOCK] == 255 << 8).all()

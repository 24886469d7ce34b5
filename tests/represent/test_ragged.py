from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trilens.represent.ragged import concat_offsets, take_ragged

ROWS = st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=8)


def flat(rows: list[list[int]]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    offsets = np.cumsum([0, *(len(row) for row in rows)], dtype=np.int64)
    return offsets, np.array([item for row in rows for item in row], np.int64)


@given(ROWS, st.data())
def test_rows_are_taken_as_from_a_list(rows: list[list[int]], data: st.DataObject) -> None:
    wanted = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=10)) if rows else []
    offsets, items = flat(rows)
    taken_offsets, positions = take_ragged(offsets, np.array(wanted, np.int64))
    expected_offsets, expected_items = flat([rows[row] for row in wanted])
    assert taken_offsets.tolist() == expected_offsets.tolist()
    assert items[positions].tolist() == expected_items.tolist()


@given(st.lists(ROWS, min_size=1, max_size=4))
def test_offsets_of_parts_are_concatenated(parts: list[list[list[int]]]) -> None:
    expected, _ = flat([row for part in parts for row in part])
    assert concat_offsets([flat(part)[0] for part in parts]).tolist() == expected.tolist()

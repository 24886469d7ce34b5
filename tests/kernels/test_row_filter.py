import numpy as np

from trilens.kernels.row_filter import RowFilter


def test_a_mask_is_active_and_none_is_not() -> None:
    mask = np.array([True, False])
    assert RowFilter.of(mask).allowed is mask and RowFilter.of(mask).active
    assert len(RowFilter.of(None).allowed) == 0 and not RowFilter.of(None).active

"""`RowFilter`: the rows of a segment that a search may return."""

from typing import NamedTuple

import numpy as np

from trilens.kernels.array_types import Mask


class RowFilter(NamedTuple):
    """Rows that `allowed` marks; all rows unless `active`."""

    allowed: Mask
    active: bool

    @staticmethod
    def of(mask: Mask | None) -> "RowFilter":
        """A filter by `mask`; None allows all rows."""
        return ALL_ROWS if mask is None else RowFilter(mask, True)


ALL_ROWS = RowFilter(np.empty(0, np.bool_), False)

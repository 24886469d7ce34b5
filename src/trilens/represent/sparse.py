"""`Sparse`: weighted terms per text, as compressed rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trilens.errors import BadInput
from trilens.represent.arrays import open_array, save_arrays
from trilens.represent.ragged import concat_offsets, take_ragged


@dataclass(frozen=True, eq=False, slots=True)
class Sparse:
    """Text i has the terms `terms[indptr[i]:indptr[i + 1]]`, each once, ascending, with the `weights` beside them."""

    indptr: NDArray[np.int64]
    terms: NDArray[np.int32]
    weights: NDArray[np.float32]
    dim: int

    def __post_init__(self) -> None:
        if len(self.terms) != len(self.weights) or self.indptr[-1] != len(self.terms):
            raise BadInput(
                f"sparse arrays disagree: {len(self.terms)} terms, {len(self.weights)} weights, indptr ends at "
                f"{self.indptr[-1]}; expected the same number"
            )

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def take(self, rows: NDArray[np.integer]) -> "Sparse":
        """The texts at `rows`, in that order."""
        indptr, picked = take_ragged(self.indptr, rows)
        return Sparse(indptr, self.terms[picked], self.weights[picked], self.dim)

    @staticmethod
    def concat(parts: Sequence["Sparse"]) -> "Sparse":
        """All texts of `parts`, one part after the other; all must share one vocabulary."""
        dims = {part.dim for part in parts}
        if len(dims) != 1:
            raise BadInput(f"cannot join sparse texts over vocabularies of {sorted(dims)} terms; expected one size")
        return Sparse(
            concat_offsets([part.indptr for part in parts]),
            np.concatenate([part.terms for part in parts]),
            np.concatenate([part.weights for part in parts]),
            dims.pop(),
        )

    def save(self, folder: Path) -> None:
        """Write the arrays into `folder`."""
        save_arrays(folder, indptr=self.indptr, terms=self.terms, weights=self.weights, dim=np.array(self.dim))

    @staticmethod
    def open(folder: Path) -> "Sparse":
        """Map what `save` wrote."""
        indptr, terms, weights = (open_array(folder, name) for name in ("indptr", "terms", "weights"))
        return Sparse(indptr, terms, weights, int(open_array(folder, "dim")))


def saturated(counts: NDArray[np.float32], repeats: float) -> NDArray[np.float32]:
    """What terms that stand so often in a text count for: 1 if once, more if repeated, and always less than 1 + `repeats`."""
    return np.asarray(counts * (1 + repeats) / (counts + repeats), np.float32)

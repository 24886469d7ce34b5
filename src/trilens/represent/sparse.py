"""`Sparse`: weighted terms per text, in compressed sparse row format."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from trilens.errors import BadInput
from trilens.kernels.array_types import Float32s, Int32s, Int64s, Integers
from trilens.represent.arrays import save_arrays
from trilens.represent.ragged import concat_offsets, take_ragged
from trilens.represent.stored import StoredArrays


@dataclass(frozen=True, eq=False, slots=True)
class Sparse:
    """Text i has the terms and weights `indptr[i]:indptr[i + 1]`; its terms are distinct and ascend."""

    indptr: Int64s
    terms: Int32s
    weights: Float32s
    dim: int

    def __post_init__(self) -> None:
        if len(self.terms) != len(self.weights) or self.indptr[-1] != len(self.terms):
            raise BadInput(
                f"sparse arrays disagree: {len(self.terms)} terms, {len(self.weights)} weights, indptr ends at "
                f"{self.indptr[-1]}; expected the same number"
            )

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def take(self, rows: Integers) -> "Sparse":
        """The texts at `rows`, in that order."""
        indptr, positions = take_ragged(self.indptr, rows)
        return Sparse(indptr, self.terms[positions], self.weights[positions], self.dim)

    @staticmethod
    def concat(parts: Sequence["Sparse"]) -> "Sparse":
        """The texts of all parts, in order; all parts must have the same vocabulary."""
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
        """Memory-map what `save` wrote."""
        arrays = StoredArrays(folder)
        dim = arrays.number("dim", np.int64, 0, np.iinfo(np.int32).max)
        terms = arrays.integers("terms", 0, dim - 1)
        return Sparse(arrays.pointers("indptr", len(terms)), terms, arrays.open("weights", np.float32, (len(terms),)), dim)


def saturated(counts: Float32s, repeats: float) -> Float32s:
    """Saturated term counts: 1 for a count of 1, growing with the count towards 1 + `repeats`."""
    return np.asarray(counts * (1 + repeats) / (counts + repeats), np.float32)

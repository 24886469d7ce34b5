"""`Dense`: one vector per text."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from trilens.errors import BadInput
from trilens.kernels.array_types import Float32s, Integers
from trilens.represent.arrays import save_arrays
from trilens.represent.stored import StoredArrays


@dataclass(frozen=True, eq=False, slots=True)
class Dense:
    """Vectors of texts: (texts, dimensions)."""

    vectors: Float32s

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2 or self.vectors.dtype != np.float32:
            raise BadInput(f"dense vectors are {self.vectors.dtype}{self.vectors.shape}; expected float32 (texts, dims)")

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def dim(self) -> int:
        """Dimensions of each vector."""
        return int(self.vectors.shape[1])

    def take(self, rows: Integers) -> "Dense":
        """The texts at `rows`, in that order."""
        return Dense(self.vectors[rows])

    @staticmethod
    def concat(parts: Sequence["Dense"]) -> "Dense":
        """The texts of all parts, in order."""
        return Dense(np.concatenate([part.vectors for part in parts]))

    def save(self, folder: Path) -> None:
        """Write the arrays into `folder`."""
        save_arrays(folder, vectors=self.vectors)

    @staticmethod
    def open(folder: Path) -> "Dense":
        """Memory-map what `save` wrote."""
        return Dense(StoredArrays(folder).open("vectors", np.float32, (None, None)))

"""`Multi`: one vector per token of each text."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from trilens.errors import BadInput
from trilens.kernels.array_types import Float32s, Float64s, Int32s, Int64s, Integers
from trilens.represent.arrays import save_arrays
from trilens.represent.ragged import concat_offsets, take_ragged
from trilens.represent.stored import StoredArrays


@dataclass(frozen=True, eq=False, slots=True)
class Multi:
    """Text i has the rows `offsets[i]:offsets[i + 1]` of `vectors` (tokens, dimensions) and of the token ids `tokens`."""

    offsets: Int64s
    vectors: Float32s
    tokens: Int32s

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2 or len(self.tokens) != len(self.vectors) or self.offsets[-1] != len(self.vectors):
            raise BadInput(
                f"token arrays disagree: vectors {self.vectors.shape}, {len(self.tokens)} token ids, offsets end at "
                f"{self.offsets[-1]}; expected one id per vector"
            )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def dim(self) -> int:
        """Dimensions of each token vector."""
        return int(self.vectors.shape[1])

    def sizes(self) -> Float64s:
        """The summed vector lengths of each text: the number of its tokens if all vectors have length 1."""
        owners = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        return np.asarray(np.bincount(owners, np.linalg.norm(self.vectors, axis=1), minlength=len(self)), np.float64)

    def take(self, rows: Integers) -> "Multi":
        """The texts at `rows`, in that order."""
        offsets, positions = take_ragged(self.offsets, rows)
        return Multi(offsets, self.vectors[positions], self.tokens[positions])

    @staticmethod
    def concat(parts: Sequence["Multi"]) -> "Multi":
        """The texts of all parts, in order."""
        return Multi(
            concat_offsets([part.offsets for part in parts]),
            np.concatenate([part.vectors for part in parts]),
            np.concatenate([part.tokens for part in parts]),
        )

    def save(self, folder: Path) -> None:
        """Write the arrays into `folder`."""
        save_arrays(folder, offsets=self.offsets, vectors=self.vectors, tokens=self.tokens)

    @staticmethod
    def open(folder: Path) -> "Multi":
        """Memory-map what `save` wrote."""
        arrays = StoredArrays(folder)
        vectors = arrays.open("vectors", np.float32, (None, None))
        return Multi(arrays.pointers("offsets", len(vectors)), vectors, arrays.open("tokens", np.int32, (len(vectors),)))

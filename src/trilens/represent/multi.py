"""`Multi`: one vector per token of each text."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trilens.errors import BadInput
from trilens.represent.arrays import open_array, save_arrays
from trilens.represent.ragged import concat_offsets, take_ragged


@dataclass(frozen=True, eq=False, slots=True)
class Multi:
    """Text i has the rows `offsets[i]:offsets[i + 1]` of `vectors` (tokens, dimensions), made by the token ids `tokens`."""

    offsets: NDArray[np.int64]
    vectors: NDArray[np.float32]
    tokens: NDArray[np.int32]

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

    def sizes(self) -> NDArray[np.float64]:
        """The lengths of each text's vectors, summed: how many they are if all have length 1, else what they count for."""
        owners = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        return np.asarray(np.bincount(owners, np.linalg.norm(self.vectors, axis=1), minlength=len(self)), np.float64)

    def take(self, rows: NDArray[np.integer]) -> "Multi":
        """The texts at `rows`, in that order."""
        offsets, picked = take_ragged(self.offsets, rows)
        return Multi(offsets, self.vectors[picked], self.tokens[picked])

    @staticmethod
    def concat(parts: Sequence["Multi"]) -> "Multi":
        """All texts of `parts`, one part after the other."""
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
        """Map what `save` wrote."""
        return Multi(*(open_array(folder, name) for name in ("offsets", "vectors", "tokens")))

"""`Counts`: how often each word stands in each text, over the vocabulary of just these texts."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trilens.represent.sparse import Sparse
from trilens.represent.vocabulary import Vocabulary


@dataclass(frozen=True, eq=False, slots=True)
class Counts:
    """Term t of `sparse` is word t of `vocabulary`; weights are counts; `lengths` is the number of words per text."""

    sparse: Sparse
    vocabulary: Vocabulary
    lengths: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.sparse)

    def take(self, rows: NDArray[np.integer]) -> "Counts":
        """Some of the texts, over the same vocabulary."""
        return Counts(self.sparse.take(rows), self.vocabulary, self.lengths[rows])

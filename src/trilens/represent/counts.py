"""`Counts`: term counts of a batch of texts, with the vocabulary of that batch."""

from dataclasses import dataclass

from trilens.kernels.array_types import Int32s, Integers
from trilens.represent.sparse import Sparse
from trilens.represent.vocabulary import Vocabulary


@dataclass(frozen=True, eq=False, slots=True)
class Counts:
    """Term t of `sparse` is word t of `vocabulary`, and its weights are counts; `lengths` is the number of words per text."""

    sparse: Sparse
    vocabulary: Vocabulary
    lengths: Int32s

    def __len__(self) -> int:
        return len(self.sparse)

    def take(self, rows: Integers) -> "Counts":
        """The texts at `rows`, in that order, with the same vocabulary."""
        return Counts(self.sparse.take(rows), self.vocabulary, self.lengths[rows])

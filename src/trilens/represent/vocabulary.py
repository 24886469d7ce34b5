"""`Vocabulary`: different words in ascending order, as two arrays, so that opening one costs nothing."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trilens.kernels.vocabulary import find_words, merge_words
from trilens.represent.arrays import open_array, save_arrays


def pack(words: Iterable[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Words as UTF-8 bytes laid end to end, and the offsets that cut them."""
    encoded = [word.encode() for word in words]
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(word) for word in encoded], out=offsets[1:])
    return np.frombuffer(b"".join(encoded), np.uint8), offsets


@dataclass(frozen=True, eq=False, slots=True)
class Vocabulary:
    """Word i is `letters[offsets[i]:offsets[i + 1]]` in UTF-8; words ascend by their bytes."""

    letters: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    @staticmethod
    def of(words: Sequence[str]) -> "Vocabulary":
        """From words that differ and ascend by their UTF-8 bytes (which is the order of `sorted`)."""
        return Vocabulary(*pack(words))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def word(self, index: int) -> str:
        """The word at `index`."""
        return bytes(self.letters[self.offsets[index] : self.offsets[index + 1]]).decode()

    def find(self, words: "Vocabulary") -> NDArray[np.int64]:
        """Index here of each word of another vocabulary, -1 where it is not here."""
        return find_words(self.letters, self.offsets, words.letters, words.offsets)

    def keep(self, mask: NDArray[np.bool_]) -> "Vocabulary":
        """Only the words that `mask` marks."""
        lengths = np.diff(self.offsets)
        offsets = np.zeros(int(mask.sum()) + 1, np.int64)
        np.cumsum(lengths[mask], out=offsets[1:])
        return Vocabulary(self.letters[np.repeat(mask, lengths)], offsets)

    @staticmethod
    def merge(parts: Sequence["Vocabulary"]) -> tuple["Vocabulary", list[NDArray[np.int64]]]:
        """The union, and for each part the index in the union of each of its words."""
        union, places = parts[0], [np.arange(len(parts[0]))]
        for part in parts[1:]:
            letters, offsets, old, added = merge_words(union.letters, union.offsets, part.letters, part.offsets)
            union, places = Vocabulary(letters, offsets), [old[place] for place in places] + [added]
        return union, places

    def save(self, folder: Path) -> None:
        """Write the arrays into `folder`."""
        save_arrays(folder, letters=self.letters, word_offsets=self.offsets)

    @staticmethod
    def open(folder: Path) -> "Vocabulary":
        """Map what `save` wrote."""
        return Vocabulary(open_array(folder, "letters"), open_array(folder, "word_offsets"))

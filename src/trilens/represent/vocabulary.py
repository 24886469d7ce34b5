"""`Vocabulary`: distinct words in ascending order, in two arrays that can be memory-mapped."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from trilens.kernels.array_types import Int64s, Mask, UInt8s
from trilens.kernels.vocabulary import find_words, merge_words
from trilens.represent.arrays import save_arrays
from trilens.represent.stored import StoredArrays


def pack(words: Iterable[str]) -> tuple[UInt8s, Int64s]:
    """The concatenated UTF-8 bytes of words, and their offsets."""
    encoded = [word.encode() for word in words]
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(word) for word in encoded], out=offsets[1:])
    return np.frombuffer(b"".join(encoded), np.uint8), offsets


@dataclass(frozen=True, eq=False, slots=True)
class Vocabulary:
    """Word i is `letters[offsets[i]:offsets[i + 1]]` in UTF-8; words ascend by their bytes."""

    letters: UInt8s
    offsets: Int64s

    @staticmethod
    def of(words: Sequence[str]) -> "Vocabulary":
        """From distinct words in ascending order of their UTF-8 bytes, which is the order of `sorted`."""
        return Vocabulary(*pack(words))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def word(self, index: int) -> str:
        """The word at `index`, with replacement characters if its file is damaged."""
        return bytes(self.letters[self.offsets[index] : self.offsets[index + 1]]).decode(errors="replace")

    def words(self) -> list[str]:
        """All words."""
        return list(map(self.word, range(len(self))))

    def find(self, words: "Vocabulary") -> Int64s:
        """The index of each word of another vocabulary in this one; -1 if it is absent."""
        return find_words(self.letters, self.offsets, words.letters, words.offsets)

    def keep(self, mask: Mask) -> "Vocabulary":
        """The words that `mask` marks."""
        lengths = np.diff(self.offsets)
        offsets = np.zeros(int(mask.sum()) + 1, np.int64)
        np.cumsum(lengths[mask], out=offsets[1:])
        return Vocabulary(self.letters[np.repeat(mask, lengths)], offsets)

    @staticmethod
    def merge(parts: Sequence["Vocabulary"]) -> tuple["Vocabulary", list[Int64s]]:
        """The union, and for each part the indices of its words in the union."""
        union, indices = parts[0], [np.arange(len(parts[0]))]
        for part in parts[1:]:
            letters, offsets, merged, added = merge_words(union.letters, union.offsets, part.letters, part.offsets)
            union, indices = Vocabulary(letters, offsets), [merged[earlier] for earlier in indices] + [added]
        return union, indices

    def save(self, folder: Path) -> None:
        """Write the arrays into `folder`."""
        save_arrays(folder, letters=self.letters, word_offsets=self.offsets)

    @staticmethod
    def open(folder: Path) -> "Vocabulary":
        """Memory-map what `save` wrote."""
        arrays = StoredArrays(folder)
        letters = arrays.open("letters", np.uint8, (None,))
        return Vocabulary(letters, arrays.pointers("word_offsets", len(letters)))

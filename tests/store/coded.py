"""A lens that cannot be read without what it shares: rows are lists of numbers, and shared parts say which word each is.

A batch adds a shared part with its words that no older one has, if there are any. Scores are counts of common words, so they
are the same whatever was shared when: a wrong one means a lost, doubled or misplaced shared part.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trilens.encode.encoder import Encoded, Progress
from trilens.index.bm25 import Bm25Lens
from trilens.index.lens import Mask
from trilens.index.topk import TopK
from trilens.represent import Multi
from trilens.represent.arrays import open_array, save_arrays
from trilens.represent.ragged import concat_offsets, take_ragged
from trilens.store.lenses import Lenses

Ints = NDArray[np.int32]


def word_id(word: str) -> int:
    """A number for a word."""
    return int.from_bytes(blake2b(word.encode(), digest_size=4).digest(), "little") >> 1


class WordEncoder:
    """One token per word; the vectors are empty."""

    fingerprint = "words"

    def __init__(self) -> None:
        self.encoded = 0  # texts so far

    def encode_docs(self, texts: Sequence[str], progress: Progress | None = None) -> Encoded:
        words = [text.split() for text in texts]
        self.encoded += len(texts)
        tokens = np.array([word_id(word) for some in words for word in some], np.int32)
        offsets = np.cumsum([0, *(len(some) for some in words)])
        if progress:
            progress(len(texts))
        return Encoded(multi=Multi(offsets, np.zeros((len(tokens), 0), np.float32), tokens))

    def encode_queries(self, texts: Sequence[str]) -> Encoded:
        return self.encode_docs(texts)


@dataclass(frozen=True, eq=False)
class CodedPart:
    """Row i holds the words with the numbers `codes[offsets[i]:offsets[i + 1]]`."""

    offsets: NDArray[np.int64]
    codes: Ints


class CodedLens:
    """See above."""

    name = "coded"

    def __init__(self) -> None:
        self.encoder = WordEncoder()

    def share(self, encoded: Encoded, shared: Sequence[Ints], folder: Path) -> bool:
        assert encoded.multi is not None
        folder.mkdir(parents=True)  # a lens that began to write and then found nothing to keep leaves no trace
        unknown = np.setdiff1d(encoded.multi.tokens, np.concatenate([np.empty(0, np.int32), *shared]))
        save_arrays(folder, words=unknown)
        return len(unknown) > 0

    def open_shared(self, folder: Path) -> Ints:
        return open_array(folder, "words")

    def build(self, encoded: Encoded, folder: Path, shared: Sequence[Ints]) -> None:
        assert encoded.multi is not None
        numbers = {word: number for number, word in enumerate(np.concatenate([np.empty(0, np.int32), *shared]).tolist())}
        codes = np.array([numbers[word] for word in encoded.multi.tokens.tolist()], np.int32)
        save_arrays(folder, offsets=encoded.multi.offsets, codes=codes)

    def merge(self, parts: Sequence[CodedPart], keep: Sequence[Mask], folder: Path, shared: Sequence[Ints]) -> None:
        taken = [take_ragged(part.offsets, np.flatnonzero(mask)) for part, mask in zip(parts, keep, strict=True)]
        codes = [part.codes[picked] for part, (_, picked) in zip(parts, taken, strict=True)]
        assert all(some.max(initial=-1) < sum(map(len, shared)) for some in codes)
        save_arrays(folder, offsets=concat_offsets([offsets for offsets, _ in taken]), codes=np.concatenate(codes))

    def open(self, folder: Path) -> CodedPart:
        return CodedPart(open_array(folder, "offsets"), open_array(folder, "codes"))

    def searcher(self, parts: Sequence[CodedPart], live: Sequence[Mask | None], shared: Sequence[Ints]) -> "CodedSearcher":
        return CodedSearcher(parts, live, np.concatenate([np.empty(0, np.int32), *shared]))

    def figures(self, parts: Sequence[CodedPart], shared: Sequence[Ints]) -> dict[str, Any]:
        return {"words": sum(map(len, shared)), "longest": max((len(part.codes) for part in parts), default=0)}


class CodedSearcher:
    """Counts the different words that query and row have in common."""

    def __init__(self, parts: Sequence[CodedPart], live: Sequence[Mask | None], words: Ints) -> None:
        self._rows = [
            set(words[part.codes[start:end]].tolist())
            for part in parts
            for start, end in zip(part.offsets[:-1], part.offsets[1:], strict=True)
        ]
        masks = [
            np.ones(len(part.offsets) - 1, np.bool_) if mask is None else mask for part, mask in zip(parts, live, strict=True)
        ]
        self._live = np.concatenate([np.empty(0, np.bool_), *masks])

    def search(
        self, queries: Encoded, k: int, allowed: Mask | None = None, exact: bool = False, params: Any | None = None
    ) -> TopK:
        assert queries.multi is not None
        mask = self._live if allowed is None else allowed
        rows, scores = np.full((len(queries.multi), k), -1), np.full((len(queries.multi), k), -np.inf, np.float32)
        for query in range(len(queries.multi)):
            words = set(queries.multi.take(np.array([query])).tokens.tolist())
            common = [(-len(words & row), at) for at, row in enumerate(self._rows) if mask[at] and words & row]
            for place, (score, at) in enumerate(sorted(common)[:k]):
                rows[query, place], scores[query, place] = at, -score
        return TopK(rows, scores)


class CodedLenses(Lenses):
    """The lens beside another one."""

    def __init__(self) -> None:
        self.coded = CodedLens()
        self._lenses = {"bm25": Bm25Lens(), "coded": self.coded}

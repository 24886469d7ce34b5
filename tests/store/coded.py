"""A lens that cannot be read without its shared parts: rows are lists of numbers, and shared parts map numbers to words.

A batch adds a shared part with the words that no older part has, if there are any. Scores are counts of common words,
whichever shared part holds them: a wrong score means a lost, duplicated or misplaced shared part.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trilens.encode.encoder import Encoded, Progress
from trilens.index.topk import TopK
from trilens.kernels.array_types import Mask
from trilens.lenses.lens import ExplainTarget, Lens, Searcher
from trilens.lenses.parts import Part, ScoreParts
from trilens.represent import Multi
from trilens.represent.arrays import open_array, save_arrays
from trilens.represent.ragged import concat_offsets, take_ragged
from trilens.store.config import CollectionConfig
from trilens.store.lens_set import LensSet

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

    def __len__(self) -> int:
        return len(self.offsets) - 1


class CodedLens(Lens):
    """See above."""

    name = "coded"
    shares = True

    def __init__(self) -> None:
        self.encoder: WordEncoder = WordEncoder()

    def share(self, encoded: Encoded, shared: Sequence[Ints], folder: Path) -> bool:
        assert encoded.multi is not None
        folder.mkdir(parents=True)  # a lens that began to write and then found nothing to keep leaves no trace
        unknown = np.setdiff1d(encoded.multi.tokens, np.concatenate([np.empty(0, np.int32), *shared]))
        save_arrays(folder, words=unknown)
        return len(unknown) > 0

    def open_shared(self, folder: Path) -> Ints:
        return open_array(folder, "words")

    def build(self, encoded: Encoded, folder: Path, shared: Sequence[Ints] = ()) -> None:
        assert encoded.multi is not None
        numbers = {word: number for number, word in enumerate(np.concatenate([np.empty(0, np.int32), *shared]).tolist())}
        codes = np.array([numbers[word] for word in encoded.multi.tokens.tolist()], np.int32)
        save_arrays(folder, offsets=encoded.multi.offsets, codes=codes)

    def merge(self, parts: Sequence[CodedPart], keep: Sequence[Mask], folder: Path, shared: Sequence[Ints] = ()) -> None:
        taken = [take_ragged(part.offsets, np.flatnonzero(mask)) for part, mask in zip(parts, keep, strict=True)]
        codes = [part.codes[picked] for part, (_, picked) in zip(parts, taken, strict=True)]
        assert all(some.max(initial=-1) < sum(map(len, shared)) for some in codes)
        save_arrays(folder, offsets=concat_offsets([offsets for offsets, _ in taken]), codes=np.concatenate(codes))

    def open(self, folder: Path) -> CodedPart:
        return CodedPart(open_array(folder, "offsets"), open_array(folder, "codes"))

    def searcher(self, parts: Sequence[CodedPart], live: Sequence[Mask | None], shared: Sequence[Ints] = ()) -> "CodedSearcher":
        return CodedSearcher(parts, live, np.concatenate([np.empty(0, np.int32), *shared]))

    def figures(self, parts: Sequence[CodedPart], shared: Sequence[Ints] = ()) -> dict[str, Any]:
        return {"words": sum(map(len, shared)), "longest": max((len(part.codes) for part in parts), default=0)}


class CodedSearcher(Searcher):
    """Counts the different words that query and row have in common."""

    def __init__(self, parts: Sequence[CodedPart], live: Sequence[Mask | None], words: Ints) -> None:
        super().__init__(parts, live)
        self._rows = [
            set(words[part.codes[start:end]].tolist())
            for part in parts
            for start, end in zip(part.offsets[:-1], part.offsets[1:], strict=True)
        ]
        masks = [np.ones(len(part), np.bool_) if mask is None else mask for part, mask in zip(parts, live, strict=True)]
        self._live_rows = np.concatenate([np.empty(0, np.bool_), *masks])

    def search(self, queries: Encoded, k: int, allowed: Mask | None = None, exact: bool = False, params: Any = None) -> TopK:
        assert queries.multi is not None
        mask = self._live_rows if allowed is None else allowed
        rows, scores = np.full((len(queries.multi), k), -1), np.full((len(queries.multi), k), -np.inf, np.float32)
        for query in range(len(queries.multi)):
            words = self._query_words(queries, query)
            common = [(-len(words & row), number) for number, row in enumerate(self._rows) if mask[number] and words & row]
            for place, (score, number) in enumerate(sorted(common)[:k]):
                rows[query, place], scores[query, place] = number, -score
        return TopK(rows, scores)

    def score(
        self, queries: Encoded, rows: NDArray[np.int64], params: Any = None, allowed: Mask | None = None
    ) -> NDArray[np.float32]:
        scores = np.full(rows.shape, -np.inf, np.float32)
        for query, numbers in enumerate(rows.tolist()):
            words = self._query_words(queries, query)
            for place, number in enumerate(numbers):
                if number >= 0:
                    scores[query, place] = len(words & self._rows[number])
        return scores

    def explain(self, target: ExplainTarget) -> ScoreParts:
        return ScoreParts([Part("common words", target.score or 0.0, "own")])

    def _query_words(self, queries: Encoded, query: int) -> set[int]:
        assert queries.multi is not None
        return set(queries.multi.take(np.array([query])).tokens.tolist())


class CodedLenses(LensSet):
    """The lens beside bm25."""

    def __init__(self) -> None:
        super().__init__(CollectionConfig(lenses=("bm25",)))
        self.coded = CodedLens()
        self._lenses["coded"] = self.coded

"""`Examples`: training examples as index arrays over numbered passages; every text is stored once."""

from dataclasses import dataclass, replace
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from trilens.errors import BadInput
from trilens.kernels.array_types import Float32s, Int16s, Int32s, Int64s
from trilens.text.document import Document
from trilens.train.data.packed_texts import PackedTexts
from trilens.train.data.passages import Passages, PassagesBuilder
from trilens.train.ragged_lists import RaggedLists


@dataclass(frozen=True, eq=False, slots=True)
class Columns:
    """One entry per example. `teacher` lists are empty where the data has no scores; `sources` are numbers of data sources."""

    queries: Int32s
    query_ids: Int32s
    sources: Int16s
    positives: RaggedLists
    negatives: RaggedLists
    answers: RaggedLists
    teacher: RaggedLists

    def take(self, rows: NDArray[np.integer]) -> "Columns":
        """The selected examples, in the order of `rows`."""
        lists = (self.positives, self.negatives, self.answers, self.teacher)
        return Columns(self.queries[rows], self.query_ids[rows], self.sources[rows], *(column.take(rows) for column in lists))


class Examples:
    """Training examples; examples and passages are identified by number."""

    def __init__(
        self, passages: Passages, queries: PackedTexts, query_ids: PackedTexts, answers: PackedTexts, columns: Columns
    ) -> None:
        self.passages = passages
        self._queries = queries
        self._query_ids = query_ids
        self._answers = answers
        self.columns = columns

    def __len__(self) -> int:
        return len(self.columns.queries)

    @property
    def passage_count(self) -> int:
        """Number of passages, including those that no example refers to."""
        return len(self.passages)

    def query(self, example: int) -> str:
        """The query text."""
        return self._queries[int(self.columns.queries[example])]

    def query_id(self, example: int) -> str:
        """The query id in the source file, "" if it has none."""
        return self._query_ids[int(self.columns.query_ids[example])]

    def positives(self, example: int) -> Int64s:
        """Numbers of the relevant passages; at least one."""
        return self.columns.positives[example].astype(np.int64)

    def negatives(self, example: int) -> Int64s:
        """Numbers of the hard negatives in the data; possibly none."""
        return self.columns.negatives[example].astype(np.int64)

    def teacher(self, example: int) -> Float32s | None:
        """Teacher scores of the positives, then of the negatives; None if the data has none."""
        scores = self.columns.teacher[example]
        return scores if len(scores) else None

    def answers(self, example: int) -> list[str]:
        """Answer strings; possibly none."""
        return [self._answers[number] for number in self.columns.answers[example].tolist()]

    def passage(self, number: int) -> str:
        """Title and text joined as for indexing."""
        return self.passages.texts[number]

    def passage_id(self, number: int) -> str:
        """The unique id of the passage."""
        return self.passages.ids[number]

    def document(self, number: int) -> Document:
        """A passage with title and text separated."""
        return self.passages.document(number)

    def twins(self, example: int) -> Int64s:
        """Values of `passages.same` of the positives: a passage with one of them is a copy of a positive, not a negative."""
        return np.unique(self.passages.same[self.columns.positives[example]]).astype(np.int64)

    def groups(self) -> RaggedLists:
        """Keys of each example: its query text and its positive texts. Examples that share a key must not share a batch."""
        positives = self.columns.positives
        keys = np.empty(len(self) + len(positives.values), np.int64)
        offsets = positives.offsets + np.arange(len(positives.offsets))
        is_query = np.zeros(len(keys), np.bool_)
        is_query[offsets[:-1]] = True
        keys[is_query] = self.columns.queries
        keys[~is_query] = len(self._queries) + self.passages.same[positives.values].astype(np.int64)
        return RaggedLists(offsets, keys)

    def take(self, rows: NDArray[np.integer]) -> "Examples":
        """The selected examples, over the same passages."""
        return Examples(self.passages, self._queries, self._query_ids, self._answers, self.columns.take(rows))

    def narrowed(self) -> "Examples":
        """The same examples, restricted to the passages they refer to."""
        columns = self.columns
        used = np.unique(np.concatenate([columns.positives.values, columns.negatives.values]))
        builder = PassagesBuilder()
        for number in used.tolist():
            document = self.document(number)
            builder.add(document.doc_id, document.title, document.text)
        positives, negatives = (
            RaggedLists(old.offsets, np.searchsorted(used, old.values).astype(np.int32))
            for old in (columns.positives, columns.negatives)
        )
        renumbered = replace(columns, positives=positives, negatives=negatives)
        return Examples(builder.passages(), self._queries, self._query_ids, self._answers, renumbered)

    def hold_out(self, count: int, seed: int, apart: bool = True) -> tuple["Examples", "Examples"]:
        """Split into a rest and `count` random examples whose queries do not occur in the rest.

        With `apart`, their positives do not occur in the rest either: examples that share a positive are dropped from it.
        """
        rest, held_out = split(self, count, seed, apart)
        return self.take(rest), self.take(held_out)

    def fingerprint(self) -> str:
        """Digest of queries, positives, answers and the number of passages."""
        digest = blake2b(str(len(self.passages)).encode(), digest_size=16)
        for example in range(len(self)):
            names = [self.passage_id(number) for number in self.positives(example).tolist()]
            digest.update("\0".join([self.query(example), *names, *self.answers(example)]).encode() + b"\n")
        return digest.hexdigest()


def split(examples: Examples, count: int, seed: int, apart: bool) -> tuple[Int64s, Int64s]:
    """The numbers of the remaining and of the held-out examples, both ascending."""
    if not 0 < count < len(examples):
        raise BadInput(f"{count} examples are to be held out of {len(examples)}; expected at least 1, and some to remain")
    order = np.random.default_rng(seed).permutation(len(examples))
    _, first = np.unique(examples.columns.queries[order], return_index=True)
    held_out = np.sort(order[np.sort(first)[:count]])  # distinct queries, so that none counts twice
    groups = examples.groups()
    if not apart:
        groups = RaggedLists(np.arange(len(examples) + 1), groups.values[groups.offsets[:-1]])
    keys = groups.take(held_out).values
    shared = np.logical_or.reduceat(np.isin(groups.values, keys), groups.offsets[:-1])
    rest = np.flatnonzero(~shared)
    if len(held_out) < count or not len(rest):
        raise BadInput(
            f"{count} examples cannot be held out of {len(examples)}: {len(held_out)} have distinct queries, and "
            f"{len(rest)} would remain for training; hold out fewer, or let held-out and training examples share passages"
        )
    return rest, held_out

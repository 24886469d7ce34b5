"""`Examples`: training examples over numbered passages. All texts are held once, the examples are whole numbers."""

from dataclasses import dataclass, replace
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from trilens.errors import BadInput
from trilens.text.document import Document
from trilens.train.data.passages import Passages, PassagesMaker
from trilens.train.data.texts import Texts
from trilens.train.lists import Lists

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True)
class Columns:
    """One entry per example. `teacher` lists are empty where the data has no scores; `source` numbers what it was read from."""

    queries: NDArray[np.int32]
    query_ids: NDArray[np.int32]
    sources: NDArray[np.int16]
    positives: Lists
    negatives: Lists
    answers: Lists
    teacher: Lists

    def take(self, rows: NDArray[np.integer]) -> "Columns":
        """The examples at `rows`, in that order."""
        lists = (self.positives, self.negatives, self.answers, self.teacher)
        return Columns(self.queries[rows], self.query_ids[rows], self.sources[rows], *(column.take(rows) for column in lists))


class Examples:
    """What training draws from. Examples and passages are named by number."""

    def __init__(self, passages: Passages, queries: Texts, query_ids: Texts, answers: Texts, columns: Columns) -> None:
        self.passages = passages
        self._queries = queries
        self._query_ids = query_ids
        self._answers = answers
        self.columns = columns

    def __len__(self) -> int:
        return len(self.columns.queries)

    @property
    def passage_count(self) -> int:
        """How many passages there are, whether an example names them or not."""
        return len(self.passages)

    def query(self, example: int) -> str:
        """The text of the query."""
        return self._queries[int(self.columns.queries[example])]

    def query_id(self, example: int) -> str:
        """The id of the query in its file, "" if it has none."""
        return self._query_ids[int(self.columns.query_ids[example])]

    def positives(self, example: int) -> Ints:
        """Numbers of the passages that answer the query; at least one."""
        return self.columns.positives[example].astype(np.int64)

    def negatives(self, example: int) -> Ints:
        """Numbers of the hard negatives that the data gives; may be none."""
        return self.columns.negatives[example].astype(np.int64)

    def teacher(self, example: int) -> NDArray[np.float32] | None:
        """Scores of the positives, then of the given negatives; None if the data has none."""
        scores = self.columns.teacher[example]
        return scores if len(scores) else None

    def answers(self, example: int) -> list[str]:
        """Answer strings; may be none."""
        return [self._answers[number] for number in self.columns.answers[example].tolist()]

    def passage(self, number: int) -> str:
        """Title and text as lenses see them."""
        return self.passages.texts[number]

    def passage_id(self, number: int) -> str:
        """The passage's own id, which no other has."""
        return self.passages.ids[number]

    def document(self, number: int) -> Document:
        """A passage with its title apart."""
        return self.passages.document(number)

    def twins(self, example: int) -> Ints:
        """What the passages of the positives are in `passages.same`: no passage with one of these numbers is a negative."""
        return np.unique(self.passages.same[self.columns.positives[example]]).astype(np.int64)

    def groups(self) -> Lists:
        """For each example a key per query text and per text of a positive; two that share a key must not meet in a batch."""
        positives = self.columns.positives
        keys = np.empty(len(self) + len(positives.values), np.int64)
        offsets = positives.offsets + np.arange(len(positives.offsets))
        is_query = np.zeros(len(keys), np.bool_)
        is_query[offsets[:-1]] = True
        keys[is_query] = self.columns.queries
        keys[~is_query] = len(self._queries) + self.passages.same[positives.values].astype(np.int64)
        return Lists(offsets, keys)

    def take(self, rows: NDArray[np.integer]) -> "Examples":
        """The examples at `rows`, over the same passages."""
        return Examples(self.passages, self._queries, self._query_ids, self._answers, self.columns.take(rows))

    def narrowed(self) -> "Examples":
        """The same examples over those passages alone that they name."""
        columns = self.columns
        named = np.unique(np.concatenate([columns.positives.values, columns.negatives.values]))
        maker = PassagesMaker()
        for number in named.tolist():
            document = self.document(number)
            maker.add(document.doc_id, document.title, document.text)
        positives, negatives = (
            Lists(old.offsets, np.searchsorted(named, old.values).astype(np.int32))
            for old in (columns.positives, columns.negatives)
        )
        kept = replace(columns, positives=positives, negatives=negatives)
        return Examples(maker.passages(), self._queries, self._query_ids, self._answers, kept)

    def hold_out(self, count: int, seed: int, apart: bool = True) -> tuple["Examples", "Examples"]:
        """The rest, and `count` examples drawn at random whose queries the rest does not have.

        `apart`: nor does the rest have their positives, so examples that ask other things of the same passages leave it too.
        """
        rest, held = split(self, count, seed, apart)
        return self.take(rest), self.take(held)

    def fingerprint(self) -> str:
        """Tells these examples from others: queries, positives, answers and the number of passages."""
        digest = blake2b(str(len(self.passages)).encode(), digest_size=16)
        for example in range(len(self)):
            names = [self.passage_id(number) for number in self.positives(example).tolist()]
            digest.update("\0".join([self.query(example), *names, *self.answers(example)]).encode() + b"\n")
        return digest.hexdigest()


def split(examples: Examples, count: int, seed: int, apart: bool) -> tuple[Ints, Ints]:
    """Which examples stay, and which are held out, both ascending."""
    if not 0 < count < len(examples):
        raise BadInput(f"{count} examples are to be held out of {len(examples)}; expected at least 1, and some that remain")
    order = np.random.default_rng(seed).permutation(len(examples))
    _, first = np.unique(examples.columns.queries[order], return_index=True)
    held = np.sort(order[np.sort(first)[:count]])  # a query that comes twice would count twice
    groups = examples.groups()
    if not apart:
        groups = Lists(np.arange(len(examples) + 1), groups.values[groups.offsets[:-1]])
    keys = groups.take(held).values
    shared = np.logical_or.reduceat(np.isin(groups.values, keys), groups.offsets[:-1])
    rest = np.flatnonzero(~shared)
    if len(held) < count or not len(rest):
        raise BadInput(
            f"{count} examples cannot be held out of {len(examples)}: {len(held)} have different queries, and then "
            f"{len(rest)} remain for training; expected some: hold out fewer, or let them share passages"
        )
    return rest, held

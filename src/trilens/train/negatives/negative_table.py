"""`NegativeTable`: candidate negatives of every example; `refresh` searches them with the model in training (ANCE)."""

import json
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from trilens.datasets.answers import AnswerKind, AnswerMatcher
from trilens.encode.encoder import Encoder, Progress
from trilens.errors import BadInput
from trilens.index.topk import TopK
from trilens.kernels.array_types import Float32s, Int64s
from trilens.represent.arrays import save_arrays
from trilens.store.folders import checksum, force
from trilens.text.files import shown
from trilens.train.data.examples import Examples
from trilens.train.negatives.corpus_index import corpus_searcher
from trilens.train.negatives.mine import corpus_collection
from trilens.train.negatives.random_negatives import random_negatives
from trilens.train.negatives.score_rules import ScoreRules
from trilens.train.ragged_lists import RaggedLists, RaggedListsBuilder

STATE = "table.json"
ARRAYS = ("offsets", "candidates", "scores")
QUERIES = 256  # per search
NO_RULES = ScoreRules()


@dataclass(frozen=True, eq=False, slots=True)
class NegativeTable:
    """Candidate negatives and their scores per example, best first; random candidates score -inf.

    `made_by` is the fingerprint of the encoder that retrieved them.
    """

    candidates: RaggedLists
    scores: RaggedLists
    seed: int
    made_by: str

    def __len__(self) -> int:
        return len(self.candidates)

    def draw(self, epoch: int, example: int, count: int) -> Int64s:
        """Draw `count` candidates of an example, determined by seed, epoch and example; repeated if there are fewer.

        Empty if the example has no candidates.
        """
        candidates = self.candidates[example]
        if not len(candidates):
            return np.empty(0, np.int64)
        order = np.random.default_rng([self.seed, epoch, example]).permutation(len(candidates))
        return candidates[np.resize(order, count)].astype(np.int64)

    def save(self, folder: Path) -> None:
        """Write the table with checksums; a table already in the folder stays readable until the write is complete."""
        fresh, old = folder.with_name(f"{folder.name}.new"), _old(folder)
        shutil.rmtree(fresh, ignore_errors=True)
        values = {"offsets": self.candidates.offsets, "candidates": self.candidates.values, "scores": self.scores.values}
        save_arrays(fresh, **values)
        sums = {name: checksum(fresh / f"{name}.npy") for name in ARRAYS}
        state = {"seed": self.seed, "made_by": self.made_by, "checksums": sums}
        (fresh / STATE).write_text(json.dumps(state), encoding="utf-8")
        for path in [*sorted(fresh.iterdir()), fresh]:
            force(path)
        if folder.exists():
            shutil.rmtree(old, ignore_errors=True)
            folder.rename(old)
        fresh.rename(folder)
        force(folder.parent)
        shutil.rmtree(old, ignore_errors=True)

    @staticmethod
    def load(folder: Path) -> "NegativeTable":
        """Read and verify a saved table."""
        if not folder.exists() and _old(folder).exists():  # the process was killed between two renames
            folder = _old(folder)
        try:
            state: dict[str, Any] = json.loads((folder / STATE).read_text(encoding="utf-8"))
            for name in ARRAYS:
                if checksum(folder / f"{name}.npy") != state["checksums"][name]:
                    raise BadInput(f"{shown(folder / name)}.npy is damaged: its checksum differs; restore it, or mine again")
            offsets, candidates, scores = (np.load(folder / f"{name}.npy", allow_pickle=False) for name in ARRAYS)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BadInput(f"{shown(folder)} holds no table of negatives ({error}); restore it, or mine again") from error
        return NegativeTable(RaggedLists(offsets, candidates), RaggedLists(offsets, scores), state["seed"], state["made_by"])

    @staticmethod
    def of_given(examples: Examples, seed: int = 0, least: int = 0) -> "NegativeTable":
        """A table of the negatives in the data, with their teacher scores if the data has them.

        Examples with fewer than `least` negatives are filled up with random passages.
        """
        rows = ((examples.negatives(example), _given_scores(examples, example)) for example in range(len(examples)))
        return _table(examples, rows, seed, "given", least)


def refresh(
    examples: Examples,
    encoder: Encoder,
    lens: str = "dense",
    depth: int = 100,
    *,
    first: int = 1,
    least: int = 8,
    answers: AnswerKind | None = None,
    rules: ScoreRules = NO_RULES,
    seed: int = 0,
    progress: Progress | None = None,
) -> NegativeTable:
    """Search all passages with the encoder's current weights; candidates of each query are the ranks `first` to `depth`.

    Excluded are positives, passages with the text of a positive, with `answers` passages that contain an answer, and scores
    that `rules` do not allow. A positive that was not retrieved counts with the score of the last hit. Examples with fewer
    than `least` candidates are filled up with random passages. `progress` counts passages, then queries.
    """
    if not 1 <= first <= depth:
        raise BadInput(f"ranks are {first} to {depth}; expected 1 <= first <= depth")
    with corpus_searcher(examples, encoder, lens, progress) as searcher:

        def candidates() -> Iterable[tuple[Int64s, Float32s]]:
            for start in range(0, len(examples), QUERIES):
                numbers = range(start, min(start + QUERIES, len(examples)))
                queries = encoder.encode_queries([examples.query(example) for example in numbers])
                top = searcher.search(queries, depth)
                yield from (_allowed(examples, example, top, row, first, answers, rules) for row, example in enumerate(numbers))
                if progress:
                    progress(len(numbers))

        return _table(examples, candidates(), seed, encoder.fingerprint, least)


def mined_table(
    examples: Examples,
    lens: str,
    model: str | None,
    depth: int,
    *,
    first: int,
    least: int,
    answers: AnswerKind | None,
    seed: int,
) -> NegativeTable:
    """Search all passages with a lens of a collection; candidates of each query are the ranks `first` to `depth`, as in
    `refresh`."""
    with corpus_collection(examples, lens, model) as collection:

        def candidates() -> Iterable[tuple[Int64s, Float32s]]:
            for start in range(0, len(examples), QUERIES):
                numbers = range(start, min(start + QUERIES, len(examples)))
                results = collection.search([examples.query(example) for example in numbers], depth, lenses=[lens])
                for example, hits in zip(numbers, results, strict=True):
                    rows = np.array([[examples.passages.number(hit.doc_id) for hit in hits]], np.int64)
                    top = TopK(rows, np.array([[hit.score for hit in hits]], np.float32))
                    yield _allowed(examples, example, top, 0, first, answers, NO_RULES)

        return _table(examples, candidates(), seed, lens, least)


def _allowed(
    examples: Examples, example: int, top: TopK, query: int, first: int, answers: AnswerKind | None, rules: ScoreRules
) -> tuple[Int64s, Float32s]:
    filled = top.rows[query] >= 0
    rows, scores = top.rows[query][filled], top.scores[query][filled]
    positive = np.isin(examples.passages.same[rows], examples.twins(example))
    allowed = ~positive
    allowed[: first - 1] = False
    if rules and len(rows):
        allowed &= rules.allows(scores, scores[positive] if positive.any() else scores[-1:])
    if answers:
        matcher = AnswerMatcher(examples.answers(example), answers)
        for hit in np.flatnonzero(allowed) if matcher else ():
            allowed[hit] = not matcher.matches(examples.passage(int(rows[hit])))
    return rows[allowed], scores[allowed]


def _table(examples: Examples, rows: Iterable[tuple[Int64s, Float32s]], seed: int, made_by: str, least: int) -> NegativeTable:
    candidates, scores = RaggedListsBuilder(), RaggedListsBuilder("f")
    for example, (passages, passage_scores) in enumerate(rows):
        lacking = least - len(passages)
        if lacking > 0:
            others = random_negatives(examples, example, lacking, passages, np.random.default_rng([seed, example]))
            passages = np.concatenate([passages, others])
            passage_scores = np.concatenate([passage_scores, np.full(len(others), -np.inf, np.float32)])
        candidates.add(passages.tolist())
        scores.add(passage_scores.tolist())
    return NegativeTable(candidates.lists(), scores.lists(), seed, made_by)


def _old(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.old")


def _given_scores(examples: Examples, example: int) -> Float32s:
    teacher = examples.teacher(example)
    negatives = len(examples.negatives(example))
    return np.full(negatives, np.nan, np.float32) if teacher is None else teacher[len(teacher) - negatives :]

"""`NegativeTable`: candidates for every example, replaced as a whole when the model in training has changed (ANCE)."""

import json
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trilens.encode.encoder import Encoder, Progress
from trilens.errors import BadInput
from trilens.index.topk import TopK
from trilens.represent.arrays import save_arrays
from trilens.store.folders import checksum, force
from trilens.text.answers import AnswerKind, AnswerMatcher
from trilens.text.files import shown
from trilens.train.data.examples import Examples
from trilens.train.lists import Lists, ListsMaker
from trilens.train.negatives.corpus_index import corpus_searcher
from trilens.train.negatives.others import random_others
from trilens.train.negatives.rules import ScoreRules

Ints = NDArray[np.int64]
STATE = "table.json"
ARRAYS = ("offsets", "candidates", "scores")
QUERIES = 256  # asked at a time
NO_RULES = ScoreRules()


@dataclass(frozen=True, eq=False, slots=True)
class NegativeTable:
    """`candidates` and `scores` of each example, best first; the score of a candidate drawn at random is -inf.

    `made_by` is the fingerprint of the encoder that found them.
    """

    candidates: Lists
    scores: Lists
    seed: int
    made_by: str

    def __len__(self) -> int:
        return len(self.candidates)

    def draw(self, epoch: int, example: int, count: int) -> Ints:
        """`count` candidates of an example, which seed, epoch and example decide; some come twice if there are fewer.

        None if the example has none at all.
        """
        found = self.candidates[example]
        if not len(found):
            return np.empty(0, np.int64)
        order = np.random.default_rng([self.seed, epoch, example]).permutation(len(found))
        return found[np.resize(order, count)].astype(np.int64)

    def save(self, folder: Path) -> None:
        """Write the table with its checksums; one that is in the folder stays readable until this one is complete."""
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
        """What `save` wrote, checked."""
        if not folder.exists() and _old(folder).exists():  # a kill between two names
            folder = _old(folder)
        try:
            state: dict[str, Any] = json.loads((folder / STATE).read_text(encoding="utf-8"))
            for name in ARRAYS:
                if checksum(folder / f"{name}.npy") != state["checksums"][name]:
                    raise BadInput(f"{shown(folder / name)}.npy is damaged: its checksum is another; restore it, or mine again")
            offsets, candidates, scores = (np.load(folder / f"{name}.npy", allow_pickle=False) for name in ARRAYS)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BadInput(f"{shown(folder)} holds no table of negatives ({error}); restore it, or mine again") from error
        return NegativeTable(Lists(offsets, candidates), Lists(offsets, scores), state["seed"], state["made_by"])

    @staticmethod
    def of_given(examples: Examples, seed: int = 0, least: int = 0) -> "NegativeTable":
        """The negatives that the data gives, with their teacher's scores where there are some.

        Examples with fewer than `least` get others, drawn at random.
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
    """Encode all passages with the encoder as it is, and take for each query what it ranks from `first` to `depth`.

    Left out are positives, passages with the same text, with `answers` those that hold an answer, and what the rules on
    the lens's own scores do not allow; a positive that is not among the best counts with the score of the last one found.
    Examples with fewer than `least` candidates get others, drawn at random. `progress` counts passages, then queries.
    """
    if not 1 <= first <= depth:
        raise BadInput(f"ranks are {first} to {depth}; expected the first, from 1 on, before the last")
    with corpus_searcher(examples, encoder, lens, progress) as searcher:

        def found() -> Iterable[tuple[Ints, NDArray[np.float32]]]:
            for start in range(0, len(examples), QUERIES):
                numbers = range(start, min(start + QUERIES, len(examples)))
                queries = encoder.encode_queries([examples.query(example) for example in numbers])
                top = searcher.search(queries, depth)
                yield from (_allowed(examples, example, top, at, first, answers, rules) for at, example in enumerate(numbers))
                if progress:
                    progress(len(numbers))

        return _table(examples, found(), seed, encoder.fingerprint, least)


def _allowed(
    examples: Examples, example: int, top: TopK, at: int, first: int, answers: AnswerKind | None, rules: ScoreRules
) -> tuple[Ints, NDArray[np.float32]]:
    held = top.rows[at] >= 0
    rows, scores = top.rows[at][held], top.scores[at][held]
    positive = np.isin(examples.passages.same[rows], examples.twins(example))
    good = ~positive
    good[: first - 1] = False
    if rules and len(rows):
        good &= rules.allows(scores, scores[positive] if positive.any() else scores[-1:])
    if answers:
        matcher = AnswerMatcher(examples.answers(example), answers)
        for place in np.flatnonzero(good) if matcher else ():
            good[place] = not matcher.matches(examples.passage(int(rows[place])))
    return rows[good], scores[good]


def _table(
    examples: Examples, rows: Iterable[tuple[Ints, NDArray[np.float32]]], seed: int, made_by: str, least: int
) -> NegativeTable:
    candidates, scores = ListsMaker(), ListsMaker("f")
    for example, (found, marks) in enumerate(rows):
        wanting = least - len(found)
        if wanting > 0:
            others = random_others(examples, example, wanting, found, np.random.default_rng([seed, example]))
            found = np.concatenate([found, others])
            marks = np.concatenate([marks, np.full(len(others), -np.inf, np.float32)])
        candidates.add(found.tolist())
        scores.add(marks.tolist())
    return NegativeTable(candidates.lists(), scores.lists(), seed, made_by)


def _old(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.old")


def _given_scores(examples: Examples, example: int) -> NDArray[np.float32]:
    teacher = examples.teacher(example)
    negatives = len(examples.negatives(example))
    return np.full(negatives, np.nan, np.float32) if teacher is None else teacher[len(teacher) - negatives :]

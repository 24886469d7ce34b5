"""Mining of hard negatives: highly ranked passages that do not answer the query, written to a file of training examples."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from trilens.collection import Collection
from trilens.datasets.answers import AnswerKind, AnswerMatcher
from trilens.errors import BadInput, first_error
from trilens.kernels.array_types import Float32s
from trilens.search.hits import Hit
from trilens.text.document import Document
from trilens.text.passages import passage_text
from trilens.train.data.examples import Examples
from trilens.train.negatives.journal import Journal
from trilens.train.negatives.near_duplicates import overlap
from trilens.train.negatives.score_rules import ScoreRules
from trilens.train.negatives.scorers import Scorer

CHUNK = 64  # examples per write: an interrupted run loses at most this many

Progress = Callable[[float], None]
"""Called with the number of examples or documents finished since the last call."""


class MiningConfig(BaseModel):
    """Mining parameters.

    lens       lens of the collection to search
    first, last  range of ranks; the top ranks are the most likely to be unlabelled positives
    negatives  negatives per example
    sampling   take the best of those ranks, or random ones
    answers    drop passages that contain an answer string, or match it as a regular expression
    near       drop passages that share at least this fraction of word trigrams with a positive; None keeps them
    rules      bounds on the scores of a scorer
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    lens: str = "bm25"
    first: int = Field(default=1, ge=1)
    last: int = Field(default=100, ge=1)
    negatives: int = Field(default=8, ge=1)
    sampling: Literal["top", "random"] = "top"
    answers: AnswerKind | None = None
    near: float | None = Field(default=0.8, gt=0, le=1)
    rules: ScoreRules = ScoreRules()
    seed: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _ranks_ascend(self) -> "MiningConfig":
        if self.last < self.first:
            raise ValueError(f"ranks are {self.first} to {self.last}; expected first <= last")
        return self

    @staticmethod
    def of(**options: Any) -> "MiningConfig":
        """Validate the options; errors are reported in one line."""
        try:
            return MiningConfig(**options)
        except ValidationError as error:
            raise BadInput(first_error(error, known=MiningConfig.model_fields)) from error


@dataclass(frozen=True, slots=True)
class MiningReport:
    """Result counts: `short` examples have fewer negatives than requested; `dropped` counts rejected candidates by reason."""

    examples: int
    negatives: int
    short: int
    dropped: dict[str, int]


@dataclass
class _Search:
    """Search state of one example: its candidates and the negatives selected so far."""

    example: int
    query: str
    positives: list[Document]
    candidates: Iterator[Hit]
    selected: list[Hit] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    positive_scores: Float32s | None = None
    exhausted: bool = False


def mine(
    examples: Examples,
    collection: Collection,
    config: MiningConfig,
    out: Path,
    *,
    scorer: Scorer | None = None,
    texts: bool = True,
    progress: Progress = lambda count: None,
) -> MiningReport:
    """Write every example with mined negatives as JSONL in DPR's format; an interrupted run is resumed by the same call.

    The scores of `scorer` are stored as `teacher_scores`. Without `texts`, passages are stored by id only, to be read with
    the corpus.
    """
    if config.rules and scorer is None:
        raise BadInput("score rules are given without a scorer; choose a cross-encoder or an encoder as scorer")
    if config.lens not in collection.lenses:
        raise BadInput(f"the collection has no lens {config.lens!r}; expected one of {', '.join(collection.lenses)}")
    identity = {
        "config": config.model_dump(mode="json"),
        "examples": examples.fingerprint(),
        "documents": len(collection),
        "model": collection.config.model_fingerprint,
        "scorer": None if scorer is None else scorer.name,
        "texts": texts,
    }
    miner = _Miner(examples, collection, config, scorer, texts)
    with closing(Journal(out, identity)) as journal:
        progress(journal.done)
        while journal.done < len(examples):
            chunk = range(journal.done, min(journal.done + CHUNK, len(examples)))
            lines, counts = miner.lines(chunk)
            journal.append(lines, counts)
            progress(len(chunk))
        journal.finish()
        counts = journal.counts
    dropped = {name.removeprefix("dropped "): count for name, count in counts.items() if name.startswith("dropped ")}
    return MiningReport(len(examples), counts.get("negatives", 0), counts.get("short", 0), dropped)


@contextmanager
def corpus_collection(
    examples: Examples,
    lens: str,
    model: str | None = None,
    threads: int | None = None,
    progress: Progress = lambda count: None,
) -> Iterator[Collection]:
    """The passages of the examples as a collection with one lens, in a temporary folder."""
    options: dict[str, Any] = {"lenses": [lens]} | ({"model": model} if model else {})
    with TemporaryDirectory(prefix="trilens-mining-") as folder:
        collection = Collection.create(Path(folder) / "corpus.trilens", threads=threads, **options)
        with closing(collection):
            collection.ingest((examples.document(number) for number in range(examples.passage_count)), progress)
            yield collection


class _Miner:
    """Mines the negatives of chunks of examples."""

    def __init__(
        self, examples: Examples, collection: Collection, config: MiningConfig, scorer: Scorer | None, texts: bool
    ) -> None:
        self._examples = examples
        self._collection = collection
        self._config = config
        self._scorer = scorer
        self._texts = texts
        self._counts: Counter[str] = Counter()

    def lines(self, chunk: Sequence[int]) -> tuple[list[str], dict[str, int]]:
        """One JSON line per example, and the counts."""
        self._counts = Counter()
        queries = [self._examples.query(example) for example in chunk]
        results = self._collection.search(queries, self._config.last, lenses=[self._config.lens])
        searches = [self._search(example, hits) for example, hits in zip(chunk, results, strict=True)]
        if self._scorer is None:
            for search in searches:
                search.selected = list(islice(search.candidates, self._config.negatives))
        else:
            self._choose_by_score(searches, self._scorer)
        self._counts["negatives"] += sum(len(search.selected) for search in searches)
        self._counts["short"] += sum(len(search.selected) < self._config.negatives for search in searches)
        return [self._line(search) for search in searches], dict(self._counts)

    def _search(self, example: int, hits: list[Hit]) -> _Search:
        positives = [self._examples.document(number) for number in self._examples.positives(example).tolist()]
        ranked = hits[self._config.first - 1 :]
        if self._config.sampling == "random":
            order = np.random.default_rng([self._config.seed, example]).permutation(len(ranked))
            ranked = [ranked[index] for index in order]
        query = self._examples.query(example)
        return _Search(example, query, positives, self._candidates(example, query, positives, ranked))

    def _candidates(self, example: int, query: str, positives: list[Document], ranked: list[Hit]) -> Iterator[Hit]:
        """Yield the hits that may be negatives; lazily, because most are not needed."""
        kind = self._config.answers
        matcher = AnswerMatcher(self._examples.answers(example), kind) if kind else AnswerMatcher([])
        positive_ids = {document.doc_id for document in positives}
        positive_texts = [full_text(document) for document in positives]
        for hit in ranked:
            text = full_text(hit.document)
            if hit.doc_id in positive_ids or text in positive_texts:
                self._counts["dropped positive"] += 1
            elif matcher and matcher.matches(text):
                self._counts["dropped answer"] += 1
            elif self._is_near(text, positive_texts, query):
                self._counts["dropped near"] += 1
            else:
                yield hit

    def _is_near(self, text: str, positives: list[str], query: str) -> bool:
        if text.strip() == query.strip():
            return True
        near = self._config.near
        return near is not None and any(overlap(text, positive) >= near for positive in positives)

    def _choose_by_score(self, searches: list[_Search], scorer: Scorer) -> None:
        """Score as many candidates as are missing, drop those that violate the rules, and repeat with the next ones."""
        scored = scorer.score(
            [search.query for search in searches], [[full_text(d) for d in search.positives] for search in searches]
        )
        for search, scores in zip(searches, scored, strict=True):
            search.positive_scores = scores
        while waiting := [search for search in searches if self._missing(search) and not search.exhausted]:
            drawn = [list(islice(search.candidates, self._missing(search))) for search in waiting]
            passages = [[full_text(hit.document) for hit in hits] for hits in drawn]
            scored = scorer.score([search.query for search in waiting], passages)
            for search, hits, scores in zip(waiting, drawn, scored, strict=True):
                search.exhausted = not hits
                self._keep_allowed(search, hits, scores)

    def _keep_allowed(self, search: _Search, hits: list[Hit], scores: Float32s) -> None:
        assert search.positive_scores is not None
        for hit, score, allowed in zip(
            hits, scores.tolist(), self._config.rules.allows(scores, search.positive_scores).tolist(), strict=True
        ):
            if allowed and np.isfinite(score):
                search.selected.append(hit)
                search.scores.append(score)
            else:
                self._counts["dropped score"] += 1

    def _missing(self, search: _Search) -> int:
        return self._config.negatives - len(search.selected)

    def _line(self, search: _Search) -> str:
        line: dict[str, Any] = {"id": name} if (name := self._examples.query_id(search.example)) else {}
        line |= {
            "question": search.query,
            "answers": self._examples.answers(search.example),
            "positive_ctxs": [self._context(document) for document in search.positives],
            "negative_ctxs": [],
            "hard_negative_ctxs": [
                {**self._context(hit.document), "score": round(hit.score, 6), "rank": hit.rank} for hit in search.selected
            ],
        }
        if search.positive_scores is not None:
            line["teacher_scores"] = [round(score, 6) for score in [*search.positive_scores.tolist(), *search.scores]]
        return json.dumps(line, ensure_ascii=False)

    def _context(self, document: Document) -> dict[str, Any]:
        """A passage by id alone if the corpus of the examples contains it; the collection may hold other documents."""
        if not self._texts and self._examples.passages.number(document.doc_id) is not None:
            return {"passage_id": document.doc_id}
        return {"passage_id": document.doc_id, "title": document.title, "text": document.text}


def full_text(document: Document) -> str:
    """Title and text joined as for indexing."""
    return passage_text(document, 0, len(document.text))

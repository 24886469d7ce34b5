"""`synthesize`: questions for passages, written by a language model and checked by a search, as a file of training examples.

With long documents the question is about one random passage and its positive is the whole document, as MultiLongDoc was made
(Chen et al. 2024, BGE-M3). A question is kept if a search for it returns its passage among the first results (Promptagator,
Dai et al. 2022): others are too vague, or about something else.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

from pydantic import Field

from trilens.collection import Collection
from trilens.errors import BadInput, ServiceFailed
from trilens.frozen import Frozen
from trilens.language.model import LanguageModel, ask
from trilens.train.negatives.journal import Journal
from trilens.train.synthesis.questions import prompt_for, questions_in
from trilens.train.synthesis.sample import DrawnPassage, DrawnPassages, Unit

CHARACTERS_PER_TOKEN = 4
TRIAL = 20  # passages; a model that has no question for any of them has none for the others

Progress = Callable[[float], None]
"""Called with the number of passages finished since the last call."""


class SynthesisConfig(Frozen):
    """What is asked, and which questions are kept.

    of          the positive of a question: its passage, or the whole of its document, which has several
    questions   per passage
    limit       number of random passages; None: all
    found_in    keep a question if the first results of a search for it have its passage; 0 keeps all
    lenses      lenses of that search; None: as the collection is searched by default
    max_tokens  longest question
    max_characters  longest part of a passage that is shown to the model
    """

    of: Unit = "passages"
    questions: int = Field(default=1, ge=1, le=20)
    limit: int | None = Field(default=None, ge=1)
    found_in: int = Field(default=10, ge=0)
    lenses: tuple[str, ...] | None = None
    max_tokens: int = Field(default=64, ge=1)
    max_characters: int = Field(default=4000, ge=1)
    seed: int = Field(default=0, ge=0)

    @property
    def longest_answer(self) -> int:
        """In tokens."""
        return self.questions * self.max_tokens


@dataclass(frozen=True, slots=True)
class Estimate:
    """What the rest of a job costs: requests, and tokens at four characters each; `tokens_out` is the most that can come."""

    requests: int
    tokens_in: int
    tokens_out: int


@dataclass(frozen=True, slots=True)
class SynthesisReport:
    """Result counts. `silent` passages got no question; questions that the search did not confirm are `not_found`."""

    passages: int
    questions: int
    kept: int
    not_found: int
    silent: int


class Synthesis:
    """One job: the same collection, model and configuration continue it after an interruption."""

    def __init__(self, collection: Collection, model: LanguageModel, config: SynthesisConfig) -> None:
        if unknown := [name for name in config.lenses or () if name not in collection.lenses]:
            raise BadInput(f"the collection has no lens {unknown[0]!r}; expected some of {', '.join(collection.lenses)}")
        self._collection, self._model, self._config = collection, model, config
        self._sample = DrawnPassages(collection.snapshot, config.of, config.limit, config.seed)

    def __len__(self) -> int:
        return len(self._sample)

    def journal(self, out: Path) -> Journal:
        """The file of the job, with what an interrupted run has done."""
        identity = {
            "config": self._config.model_dump(mode="json"),
            "model": [self._model.address, self._model.model],
            "passages": self._sample.digest(),
        }
        return Journal(out, identity)

    def estimate(self, done: int = 0) -> Estimate:
        """What the passages after the first `done` cost."""
        shown = self._sample.characters(done).clip(max=self._config.max_characters)
        prompt = len(prompt_for("", self._config.questions))
        tokens = int(shown.sum() + prompt * len(shown)) // CHARACTERS_PER_TOKEN
        return Estimate(len(shown), tokens, len(shown) * self._config.longest_answer)

    def run(
        self, journal: Journal, parallel: int = 4, patience: float = 600.0, progress: Progress = lambda count: None
    ) -> SynthesisReport:
        """Ask for the rest of the passages, `parallel` at a time, and write the examples.

        Every answer is written before the next one is looked at, so nothing is lost but the answers that are under way.
        """
        done = journal.counts.get("passages", 0)
        progress(done)
        if done < len(self):
            self._model.require_reachable()

        def answered(number: int) -> tuple[int, str]:
            text = self._sample[number].text[: self._config.max_characters]
            prompt = prompt_for(text, self._config.questions)
            return number, ask(self._model, prompt, self._config.longest_answer, patience)

        try:
            for number, answer in in_order(answered, range(done, len(self)), parallel):
                self._write(journal, number, answer)
                progress(1)
        except ServiceFailed as error:
            finished = journal.counts.get("passages", 0)
            raise ServiceFailed(f"{error}; {finished:,} passages are done, and the same command goes on") from error
        counts = journal.counts
        journal.finish()
        return SynthesisReport(*(counts.get(name, 0) for name in ("passages", "questions", "kept", "not found", "silent")))

    def _write(self, journal: Journal, number: int, answer: str) -> None:
        passage = self._sample[number]
        questions = questions_in(answer, self._config.questions)
        kept = [question for question, found in zip(questions, self._found(questions, passage), strict=True) if found]
        counts = Counter(
            {
                "passages": 1,
                "questions": len(questions),
                "kept": len(kept),
                "not found": len(questions) - len(kept),
                "silent": not questions,
            }
        )
        journal.append([self._line(question, passage) for question in kept], counts)
        if journal.counts["silent"] == journal.counts["passages"] == TRIAL:
            raise ServiceFailed(
                f"{self._model.address} wrote no question for {TRIAL} passages, but {answer[:80]!r}; try another model"
            )

    def _found(self, questions: Sequence[str], passage: DrawnPassage) -> list[bool]:
        """Whether a search for each question returns its passage, or its document."""
        config = self._config
        if not config.found_in or not questions:
            return [True] * len(questions)
        lenses = None if config.lenses is None else list(config.lenses)
        answers = self._collection.search(questions, config.found_in, lenses=lenses)
        whole = config.of == "documents"
        return [
            any(
                hit.doc_id == passage.document.doc_id and (whole or (hit.start < passage.end and passage.start < hit.end))
                for hit in hits
            )
            for hits in answers
        ]

    def _line(self, question: str, passage: DrawnPassage) -> str:
        """The example in DPR's format."""
        document, start, end = passage.document, passage.start, passage.end
        if self._config.of == "documents":
            start, end = 0, len(document.text)
        part = "" if (start, end) == (0, len(document.text)) else f":{start}-{end}"
        positive = {"passage_id": f"{document.doc_id}{part}", "title": document.title, "text": document.text[start:end]}
        line = {"question": question, "answers": [], "positive_ctxs": [positive], "negative_ctxs": [], "hard_negative_ctxs": []}
        return json.dumps(line, ensure_ascii=False)


def synthesize(
    collection: Collection, model: LanguageModel, config: SynthesisConfig, out: Path, **options: Any
) -> SynthesisReport:
    """Write questions for the passages of a collection as training examples; an interrupted run is resumed by the same call.

    `options` are those of `Synthesis.run`.
    """
    job = Synthesis(collection, model, config)
    with closing(job.journal(out)) as journal:
        return job.run(journal, **options)


def in_order(work: Callable[[int], Any], numbers: Iterable[int], parallel: int) -> Iterator[Any]:
    """The results of the work on each number, in order, with at most `parallel` at a time.

    The threads do not keep the process alive: an interrupt ends it without waiting for a slow service.
    """
    running: list[Future[Any]] = []
    for number in numbers:
        future: Future[Any] = Future()
        Thread(target=_fulfil, args=(future, work, number), daemon=True).start()
        running.append(future)
        if len(running) >= parallel:
            yield running.pop(0).result()
    for future in running:
        yield future.result()


def _fulfil(future: "Future[Any]", work: Callable[[int], Any], number: int) -> None:
    try:
        future.set_result(work(number))
    except BaseException as error:  # noqa: BLE001  # raised where the result is taken
        future.set_exception(error)

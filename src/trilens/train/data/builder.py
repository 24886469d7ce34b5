"""`ExamplesBuilder`: validates raw examples, numbers their texts, and counts everything it leaves out."""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path

import numpy as np

from trilens.errors import BadInput
from trilens.read.decode import Place
from trilens.text.document import Document
from trilens.text.files import shown
from trilens.train.data.examples import Columns, Examples
from trilens.train.data.packed_texts import PackedTextsBuilder, UniqueTextsBuilder
from trilens.train.data.passages import PassagesBuilder
from trilens.train.data.raw_example import InlinePassage, Item, RawExample, Reference
from trilens.train.ragged_lists import RaggedListsBuilder

MOST_MESSAGES = 20


@dataclass
class SourceReport:
    """Counts of one source: examples kept, and everything left out."""

    source: str
    kept: int = 0
    skipped: int = 0  # unusable examples
    repeated_negatives: int = 0  # negatives that are also positives of the query, or listed twice
    messages: list[str] = field(default_factory=list)  # reasons for the first skipped examples

    def skip(self, error: BadInput) -> None:
        """Count a skipped example."""
        self.skipped += 1
        if len(self.messages) < MOST_MESSAGES:
            self.messages.append(str(error))


Corpus = dict[str, int]
"""Passage numbers of a corpus by passage id."""


class ExamplesBuilder:
    """Collects the examples of one source after another."""

    def __init__(self) -> None:
        self.reports: list[SourceReport] = []
        self._corpora: dict[Path, Corpus] = {}
        self._passages = PassagesBuilder()
        self._queries, self._query_ids, self._answers = UniqueTextsBuilder(), PackedTextsBuilder(), UniqueTextsBuilder()
        self._query_numbers, self._sources = array("i"), array("h")
        self._positives, self._negatives = RaggedListsBuilder(), RaggedListsBuilder()
        self._answer_numbers = RaggedListsBuilder()
        self._teacher = RaggedListsBuilder("f")

    def corpus(self, path: Path, documents: Iterable[tuple[Place, Document]]) -> Corpus:
        """Add the passages of a corpus file; a file that several sources share is read once."""
        key = path.resolve()
        if key in self._corpora:
            return self._corpora[key]
        numbers: Corpus = {}
        for place, document in documents:
            if document.doc_id in numbers:
                raise BadInput(f"{place}: the id {document.doc_id[:80]!r} occurs twice; expected unique ids")
            if document.title.strip() or document.text.strip():  # an example that refers to an empty passage is an error
                numbers[document.doc_id] = self._passages.add(document.doc_id, document.title, document.text)
        if not numbers:
            raise BadInput(f"{shown(path)} holds no passage with a text; expected at least one")
        self._corpora[key] = numbers
        return numbers

    def source(self, name: str, items: Iterable[Item], corpus: Corpus | None = None, skip_bad: bool = False) -> SourceReport:
        """Add all examples of a source. An unusable example is an error, or counted if `skip_bad`."""
        report = SourceReport(name)
        self.reports.append(report)
        for item in items:
            try:
                if isinstance(item, BadInput):
                    raise item
                self._add(*item, corpus or {}, report)
            except BadInput as error:
                if not skip_bad:
                    raise
                report.skip(error)
        if not report.kept:
            first = f", the first because {report.messages[0]}" if report.messages else ""
            raise BadInput(f"{name} holds no usable example; {report.skipped} were skipped{first}")
        return report

    def examples(self) -> Examples:
        """All examples added."""
        count = len(self._query_numbers)
        columns = Columns(
            np.array(self._query_numbers, np.int32),
            np.arange(count, dtype=np.int32),
            np.array(self._sources, np.int16),
            self._positives.lists(),
            self._negatives.lists(),
            self._answer_numbers.lists(),
            self._teacher.lists(),
        )
        texts = (self._queries.texts(), self._query_ids.texts(), self._answers.texts())
        return Examples(self._passages.passages(), *texts, columns)

    def _add(self, place: Place, example: RawExample, corpus: Corpus, report: SourceReport) -> None:
        try:
            _require_usable(example)
            given_positives = self._numbers(example.positives, corpus)
            given_negatives = self._numbers(example.negatives, corpus)
            query = self._queries.add(example.query)
            answers = [self._answers.add(answer) for answer in example.answers if answer.strip()]
            query_id = example.query_id.encode("utf-8", "backslashreplace").decode()
        except BadInput as error:
            raise BadInput(f"{place}: {error}") from error
        positives = list(dict.fromkeys(given_positives))
        teacher = list(example.teacher or ())
        kept = [
            index
            for index, number in enumerate(given_negatives)
            if number not in positives and number not in given_negatives[:index]
        ]
        report.repeated_negatives += len(given_negatives) - len(kept)
        if teacher:
            positive_scores = [teacher[given_positives.index(number)] for number in positives]
            teacher = positive_scores + [teacher[len(given_positives) + index] for index in kept]
        self._query_numbers.append(query)
        self._query_ids.add(query_id)
        self._sources.append(len(self.reports) - 1)
        self._positives.add(positives)
        self._negatives.add(given_negatives[index] for index in kept)
        self._answer_numbers.add(answers)
        self._teacher.add(teacher)
        report.kept += 1

    def _numbers(self, references: Sequence[Reference], corpus: Corpus) -> list[int]:
        return [self._number(reference, corpus) for reference in references]

    def _number(self, reference: Reference, corpus: Corpus) -> int:
        if isinstance(reference, InlinePassage):
            return self._passages.find_or_add(*reference)
        number = corpus.get(reference)
        if number is None:
            reason = "the corpus has no non-empty passage with this id" if corpus else "no corpus is given"
            raise BadInput(f"the passage {reference[:80]!r} is given by id, but {reason}; give the corpus that contains it")
        return number


def _require_usable(example: RawExample) -> None:
    if not example.query.strip():
        raise BadInput("the query is empty; expected a text: remove the example, or skip bad examples")
    if not example.positives:
        raise BadInput(f"the query {example.query[:60]!r} has no positive; expected at least one passage that answers it")
    if example.teacher is not None:
        expected = len(example.positives) + len(example.negatives)
        if len(example.teacher) != expected or not all(map(isfinite, example.teacher)):
            raise BadInput(
                f"there are {len(example.teacher)} teacher scores for {expected} passages; expected one finite number each: "
                "of the positives, then of the negatives"
            )

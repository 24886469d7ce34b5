"""From examples as files hold them to `Examples`: numbers for texts, checks, and a count of all that was left out."""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path

import numpy as np

from trilens.errors import BadInput
from trilens.text.decode import Place
from trilens.text.document import Document
from trilens.text.files import shown
from trilens.train.data.example import Example, InlinePassage, Item, Reference
from trilens.train.data.examples import Columns, Examples
from trilens.train.data.passages import PassagesMaker
from trilens.train.data.texts import OnceMaker, TextsMaker
from trilens.train.lists import ListsMaker

MOST_MESSAGES = 20


@dataclass
class Report:
    """What became of a source: nothing is left out without being counted here."""

    source: str
    kept: int = 0
    skipped: int = 0  # examples that cannot be used
    repeated_negatives: int = 0  # that are positives of the same query, or came twice
    messages: list[str] = field(default_factory=list)  # why the first of them were skipped

    def skip(self, error: BadInput) -> None:
        """Count an example that is left out."""
        self.skipped += 1
        if len(self.messages) < MOST_MESSAGES:
            self.messages.append(str(error))


Corpus = dict[str, int]
"""The number of each passage of a corpus by its id."""


class ExamplesBuilder:
    """Takes the examples of one source after the other."""

    def __init__(self) -> None:
        self.reports: list[Report] = []
        self._corpora: dict[Path, Corpus] = {}
        self._passages = PassagesMaker()
        self._queries, self._query_ids, self._answers = OnceMaker(), TextsMaker(), OnceMaker()
        self._query_numbers, self._sources = array("i"), array("h")
        self._positives, self._negatives, self._answer_numbers = ListsMaker(), ListsMaker(), ListsMaker()
        self._teacher = ListsMaker("f")

    def corpus(self, path: Path, documents: Iterable[tuple[Place, Document]]) -> Corpus:
        """The passages of a corpus file; one that several sources name is read once."""
        key = path.resolve()
        if key in self._corpora:
            return self._corpora[key]
        numbers: Corpus = {}
        for place, document in documents:
            if document.doc_id in numbers:
                raise BadInput(f"{place}: the id {document.doc_id[:80]!r} was read before; expected every id once")
            if document.title.strip() or document.text.strip():  # examples that name an empty one are refused
                numbers[document.doc_id] = self._passages.add(document.doc_id, document.title, document.text)
        if not numbers:
            raise BadInput(f"{shown(path)} holds no passage with a text; expected at least one")
        self._corpora[key] = numbers
        return numbers

    def source(self, name: str, items: Iterable[Item], corpus: Corpus | None = None, skip_bad: bool = False) -> Report:
        """Add all examples of a source. The first that cannot be used is an error, unless they are to be skipped."""
        report = Report(name)
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
            first = f", such as {report.messages[0]}" if report.messages else ""
            raise BadInput(f"{name} holds no example that can be used; {report.skipped} were skipped{first}")
        return report

    def examples(self) -> Examples:
        """Everything that was added."""
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

    def _add(self, place: Place, example: Example, corpus: Corpus, report: Report) -> None:
        try:
            _require_sound(example)
            named = self._numbers(example.positives, corpus)
            given = self._numbers(example.negatives, corpus)
            query = self._queries.add(example.query)
            answers = [self._answers.add(answer) for answer in example.answers if answer.strip()]
            query_id = example.query_id.encode("utf-8", "backslashreplace").decode()
        except BadInput as error:
            raise BadInput(f"{place}: {error}") from error
        positives = list(dict.fromkeys(named))
        teacher = list(example.teacher or ())
        kept = [at for at, number in enumerate(given) if number not in positives and number not in given[:at]]
        report.repeated_negatives += len(given) - len(kept)
        if teacher:
            teacher = [teacher[named.index(number)] for number in positives] + [teacher[len(named) + at] for at in kept]
        self._query_numbers.append(query)
        self._query_ids.add(query_id)
        self._sources.append(len(self.reports) - 1)
        self._positives.add(positives)
        self._negatives.add(given[at] for at in kept)
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
            where = "the corpus has no passage with a text and this id" if corpus else "no corpus is given"
            raise BadInput(f"the passage {reference[:80]!r} is named by its id, but {where}; give the corpus that it is of")
        return number


def _require_sound(example: Example) -> None:
    if not example.query.strip():
        raise BadInput("the query is empty; expected some text: remove the example, or skip bad examples")
    if not example.positives:
        raise BadInput(f"the query {example.query[:60]!r} has no positive; expected at least one passage that answers it")
    if example.teacher is not None:
        expected = len(example.positives) + len(example.negatives)
        if len(example.teacher) != expected or not all(map(isfinite, example.teacher)):
            raise BadInput(
                f"there are {len(example.teacher)} teacher scores for {expected} passages; expected one finite number each: "
                "of the positives, then of the negatives"
            )

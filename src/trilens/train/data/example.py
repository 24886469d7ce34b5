"""One training example on its way from a file: texts and ids as they stand there, not yet numbered."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from trilens.errors import BadInput
from trilens.text.decode import Place


class InlinePassage(NamedTuple):
    """A passage that stands in the example itself."""

    passage_id: str | None
    title: str
    text: str


Reference = str | InlinePassage
"""A passage by its id in the corpus, or the passage itself."""


@dataclass(frozen=True, slots=True)
class Example:
    """`teacher` has the scores of the positives, then those of the negatives; None if the data has none."""

    query: str
    positives: Sequence[Reference]
    negatives: Sequence[Reference] = ()
    answers: Sequence[str] = ()
    teacher: Sequence[float] | None = None
    query_id: str = ""


Item = tuple[Place, Example] | BadInput
"""Errors travel as values: a generator that raises cannot go on."""

Items = Iterator[Item]

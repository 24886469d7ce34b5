"""`RawExample`: a training example as read from a file, with texts and ids not yet numbered."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from trilens.errors import BadInput
from trilens.read.decode import Place


class InlinePassage(NamedTuple):
    """A passage whose text is part of the example."""

    passage_id: str | None
    title: str
    text: str


Reference = str | InlinePassage
"""A passage id of the corpus, or the passage itself."""


@dataclass(frozen=True, slots=True)
class RawExample:
    """One training example; `teacher` holds the scores of the positives, then of the negatives, None if the data has none."""

    query: str
    positives: Sequence[Reference]
    negatives: Sequence[Reference] = ()
    answers: Sequence[str] = ()
    teacher: Sequence[float] | None = None
    query_id: str = ""


Item = tuple[Place, RawExample] | BadInput
"""Errors are yielded, not raised: a generator cannot continue after raising."""

Items = Iterator[Item]

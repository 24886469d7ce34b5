"""Reader of tables with one column for the query and others for passages, as in sentence-transformers datasets.

Default column names: the query is `anchor`, `query` or `question`; the positive is `positive`, `pos`, `answer` or `passage`;
negatives are `negative`, `neg`, `negative_1`, `negative_2` … A cell may hold a list of texts. Unlabelled pairs use the same
reader with other column names: title and body.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trilens.errors import BadInput
from trilens.read.decode import Place
from trilens.read.records import ID_FIELDS, Fields, Record
from trilens.read.values import a_string, an_id, an_object, kind_of, scores
from trilens.train.data.raw_example import InlinePassage, Item, Items, RawExample
from trilens.train.data.record_files import read_records

QUERIES = ("anchor", "query", "question")
POSITIVES = ("positive", "pos", "answer", "passage")
NEGATIVE = re.compile(r"(?:negative|neg)(?:_\d+)?")


@dataclass(frozen=True, slots=True)
class ColumnNames(Fields):
    """Names of the columns to read; None selects the default names."""

    query: str | None = None
    positive: str | None = None
    negatives: Sequence[str] | None = None
    scores: str | None = None

    def find(self, names: Iterable[str], place: Place) -> tuple[str, str, str | None]:
        """The query column and the positive column, which every row must have; there is no title column."""
        present = list(names)
        return _choose("query", self.query, QUERIES, present), _choose("positive", self.positive, POSITIVES, present), None

    def find_negatives(self, names: Iterable[str]) -> list[str]:
        """The negative columns, in order."""
        if self.negatives is not None:
            return list(self.negatives)
        return sorted((name for name in names if NEGATIVE.fullmatch(name)), key=lambda name: (len(name), name))


def read_columns(path: Path, names: ColumnNames) -> Items:
    """Read the examples of a table."""
    return (_item(record, names) for record in read_records(path, names))


def _item(record: Record | BadInput, names: ColumnNames) -> Item:
    if isinstance(record, BadInput):
        return record
    place, value = record
    try:
        return place, _example(an_object(value), names, place)
    except BadInput as error:
        return BadInput(f"{place}: {error}")


def _example(value: dict[str, Any], names: ColumnNames, place: Place) -> RawExample:
    query, positive, _ = names.find(value, place)
    negatives = [text for name in names.find_negatives(value) for text in _texts(value, name)]
    own_id = next((an_id(value[name], "the id") for name in ID_FIELDS if value.get(name) not in (None, "")), None)
    positives = _texts(value, positive)
    return RawExample(
        query=a_string(value, query),
        positives=[InlinePassage(own_id if len(positives) == 1 else None, "", text) for text in positives],
        negatives=[InlinePassage(None, "", text) for text in negatives],
        teacher=None if names.scores is None else scores(value, names.scores),
        query_id=own_id or "",
    )


def _texts(value: dict[str, Any], name: str) -> list[str]:
    """The texts of a cell; a missing or null cell holds none."""
    cell = value.get(name)
    texts = [cell] if isinstance(cell, str) else [] if cell is None else cell
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise BadInput(f"the column {name!r} is {kind_of(cell)}; expected a text or a list of texts")
    return texts


def _choose(role: str, name_given: str | None, defaults: tuple[str, ...], present: list[str]) -> str:
    candidates = defaults if name_given is None else (name_given,)
    for name in candidates:
        if name in present:
            return name
    columns = ", ".join(repr(name[:40]) for name in present[:12]) or "none"
    expected = " or ".join(map(repr, candidates))
    raise BadInput(f"no column for the {role}; expected {expected}, found {columns}: name it with `{role}`")

"""Judgements: which documents are relevant to a query, from three columns as in BEIR or the four of TREC."""

import re
from collections.abc import Iterator
from pathlib import Path

from trilens.errors import BadInput
from trilens.text.decode import Place, TextLines, open_bytes
from trilens.text.files import shown

Qrels = dict[str, dict[str, int]]
"""query id → doc id → how relevant; 0 and less mean that it was judged and is not."""

WHOLE = re.compile(r"[+-]?[0-9]{1,9}")
HIGHEST = 1_000_000  # tools that compute measures count grades in arrays of so many places
GRADE_NAMES = ("score", "grade", "relevance", "rel", "label", "judgment", "judgement")  # what a line of names ends in


def read_qrels(path: Path) -> Qrels:
    """The judgements of a file, in its order."""
    found: Qrels = {}
    for place, query_id, doc_id, grade in _judgements(path):
        of_query = found.setdefault(query_id, {})
        if of_query.setdefault(doc_id, grade) != grade:
            raise BadInput(
                f"{place}: {query_id!r} and {doc_id!r} were judged {of_query[doc_id]} before and {grade} here; "
                "expected one judgement: remove one"
            )
    if not found:
        raise BadInput(f"{shown(path)} holds no judgement; expected lines of query-id, corpus-id, score")
    return found


def _judgements(path: Path) -> Iterator[tuple[Place, str, str, int]]:
    with open_bytes(path) as stream:
        lines = TextLines(stream, shown(path))
        width = 0
        for line in lines:
            columns = _columns(line)
            named = lines.number == 1 and columns[-1:] and columns[-1].lower() in GRADE_NAMES
            if not line.strip() or named:
                continue
            place = Place(shown(path), lines.number)
            grade = _grade(columns[-1])
            if len(columns) not in (3, 4) or grade is None or not columns[0] or not columns[-2]:
                raise BadInput(
                    f"{place}: the line is {line.strip()[:80]!r}; expected query-id, corpus-id and a whole number of at most "
                    f"{HIGHEST:,} with tabs between them, or the four TREC columns: repair the line"
                )
            width = width or len(columns)
            if len(columns) != width:
                raise BadInput(
                    f"{place}: the line has {len(columns)} columns, those before it {width}; expected as many everywhere"
                )
            yield place, columns[0], columns[-2], grade


def _columns(line: str) -> list[str]:
    """Ids may hold spaces where tabs part the columns; TREC files part them with spaces."""
    return [column.strip() for column in line.split("\t")] if "\t" in line else line.split()


def _grade(text: str) -> int | None:
    grade = int(text) if WHOLE.fullmatch(text) else None
    return grade if grade is not None and abs(grade) <= HIGHEST else None

"""Relevance judgements (qrels) in the three columns of BEIR or the four of TREC."""

import re
from collections.abc import Iterator
from pathlib import Path

from trilens.errors import BadInput
from trilens.read.decode import Place, TextLines, open_bytes
from trilens.text.files import shown

Qrels = dict[str, dict[str, int]]
"""Query id → document id → relevance grade; 0 and less mean judged and not relevant."""

WHOLE = re.compile(r"[+-]?[0-9]{1,9}")
HIGHEST = 1_000_000  # evaluation tools allocate arrays with one element per grade
GRADE_NAMES = ("score", "grade", "relevance", "rel", "label", "judgment", "judgement")  # last column of a header


def read_qrels(path: Path) -> Qrels:
    """Read the judgements of a file, in file order."""
    qrels: Qrels = {}
    for place, query_id, doc_id, grade in _judgements(path):
        grades = qrels.setdefault(query_id, {})
        if grades.setdefault(doc_id, grade) != grade:
            raise BadInput(
                f"{place}: {query_id!r} and {doc_id!r} were judged {grades[doc_id]} before and {grade} here; "
                "expected one judgement: remove one of them"
            )
    if not qrels:
        raise BadInput(f"{shown(path)} holds no judgement; expected lines of query-id, corpus-id, score")
    return qrels


def _judgements(path: Path) -> Iterator[tuple[Place, str, str, int]]:
    with open_bytes(path) as stream:
        lines = TextLines(stream, shown(path))
        width = 0
        for line in lines:
            columns = _columns(line)
            is_header = lines.number == 1 and columns[-1:] and columns[-1].lower() in GRADE_NAMES
            if not line.strip() or is_header:
                continue
            place = Place(shown(path), lines.number)
            grade = _grade(columns[-1])
            if len(columns) not in (3, 4) or grade is None or not columns[0] or not columns[-2]:
                raise BadInput(
                    f"{place}: the line is {line.strip()[:80]!r}; expected query-id, corpus-id and an integer of at most "
                    f"{HIGHEST:,}, separated by tabs, or the four TREC columns: repair the line"
                )
            width = width or len(columns)
            if len(columns) != width:
                raise BadInput(
                    f"{place}: the line has {len(columns)} columns, the lines before it {width}; expected the same number"
                )
            yield place, columns[0], columns[-2], grade


def _columns(line: str) -> list[str]:
    """Split at tabs if there are any, since ids may contain spaces; else at spaces, as in TREC files."""
    return [column.strip() for column in line.split("\t")] if "\t" in line else line.split()


def _grade(text: str) -> int | None:
    grade = int(text) if WHOLE.fullmatch(text) else None
    return grade if grade is not None and abs(grade) <= HIGHEST else None

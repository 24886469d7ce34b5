"""A run: for each query the documents found and their scores; the form that all evaluation tools share."""

import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from trilens.errors import BadInput
from trilens.text.decode import Place, TextLines, open_bytes
from trilens.text.files import shown

Run = dict[str, dict[str, float]]
"""query id → doc_id → score"""


def strictly(ranking: Iterable[tuple[str, float]]) -> dict[str, float]:
    """A ranking, best first, with scores that are all different in 32 bits.

    A search breaks ties in its way and evaluation tools in theirs, after they have rounded the scores. What was returned
    counts, so a score that is not below the one before it becomes the next number below that.
    """
    found: dict[str, float] = {}
    last = np.float32(np.inf)
    for doc_id, score in ranking:
        last = min(np.float32(score), np.nextafter(last, np.float32(-np.inf)))
        found[doc_id] = float(last)
    return found


def write_trec(run: Run, path: Path, tag: str) -> None:
    """The six columns of TREC: query, Q0, document, rank, score, tag. Nine digits give every 32-bit score back as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for query, found in run.items():
            ranking = sorted(found.items(), key=lambda item: -item[1])
            for rank, (doc_id, score) in enumerate(ranking, start=1):
                for name in (query, doc_id):
                    if not name or any(character.isspace() for character in name):
                        raise BadInput(f"id {name!r} cannot be written to a TREC run; expected no spaces in ids")
                file.write(f"{query} Q0 {doc_id} {rank} {score:.9g} {tag}\n")


def read_trec(path: Path) -> Run:
    """A run as any system writes it, by its scores: as in trec_eval, the column of ranks does not count."""
    run: Run = {}
    with open_bytes(path) as stream:
        lines = TextLines(stream, shown(path))
        for line in lines:
            if not line.strip():
                continue
            place = Place(shown(path), lines.number)
            query, doc_id, score = _columns(line, place)
            if doc_id in run.setdefault(query, {}):
                raise BadInput(f"{place}: query {query!r} has the document {doc_id!r} a second time; expected it once")
            run[query][doc_id] = score
    if not run:
        raise BadInput(f"{shown(path)} holds no line of a run; expected lines of query, Q0, document, rank, score, tag")
    return run


def _columns(line: str, place: Place) -> tuple[str, str, float]:
    columns = line.split()
    if len(columns) != 6:
        raise BadInput(
            f"{place}: the line is {line.strip()[:80]!r}, {len(columns)} columns; expected the six of a TREC run: "
            "query, Q0, document, rank, score, tag"
        )
    try:
        score = float(columns[4])
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise BadInput(f"{place}: the score is {columns[4]!r}; expected a finite number")
    return columns[0], columns[2], score

"""A run: for each query the documents found and their scores; the form that all evaluation tools share."""

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from trilens.errors import BadInput
from trilens.text.decode import Place, TextLines, open_bytes
from trilens.text.files import shown

Run = dict[str, dict[str, float]]
"""query id → doc_id → score"""

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
LARGEST = float(np.finfo(np.float32).max)


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
    require_plain_ids([*run, *(doc_id for found in run.values() for doc_id in found)])
    make_folder(path.parent)
    part = path.with_name(f"{path.name}.part")  # so that a run that is there is whole
    with part.open("w", encoding="utf-8") as file:
        for query, found in run.items():
            ranking = sorted(found.items(), key=lambda item: -item[1])
            for rank, (doc_id, score) in enumerate(ranking, start=1):
                file.write(f"{query} Q0 {doc_id} {rank} {score:.9g} {tag}\n")
    part.replace(path)


def make_folder(folder: Path) -> None:
    """The folder that runs go into."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"runs cannot be written to {folder} ({error.strerror}); expected a folder, or one to make") from error


def require_plain_ids(names: Iterable[str]) -> None:
    """Refuse ids that the columns of a TREC run cannot hold."""
    for name in names:
        if not name or any(character.isspace() for character in name):
            raise BadInput(f"id {name!r} cannot be written to a TREC run; expected ids without spaces: rename it in the data")


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
    if not NUMBER.fullmatch(columns[4]) or abs(float(columns[4])) > LARGEST:
        raise BadInput(f"{place}: the score is {columns[4]!r}; expected a number of at most {LARGEST:.2g}, as 32 bits hold it")
    return columns[0], columns[2], float(columns[4])

"""Runs: the ranked documents of each query with their scores, and the TREC run file format."""

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from trilens.errors import BadInput
from trilens.read.decode import Place, TextLines, open_bytes
from trilens.text.files import shown

Run = dict[str, dict[str, float]]
"""query id → doc_id → score"""

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
LARGEST = float(np.finfo(np.float32).max)


def strictly_decreasing(ranking: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Break ties: make the scores of a ranking strictly decreasing in float32, keeping its order.

    Evaluation tools round scores to float32 and then break ties by their own rules. To preserve the returned order, a score
    that is not below its predecessor becomes the next smaller float32.
    """
    scores: dict[str, float] = {}
    previous = np.float32(np.inf)
    for doc_id, score in ranking:
        previous = min(np.float32(score), np.nextafter(previous, np.float32(-np.inf)))
        scores[doc_id] = float(previous)
    return scores


def write_trec(run: Run, path: Path, tag: str) -> None:
    """Write a TREC run file: query, Q0, document, rank, score, tag. Nine significant digits round-trip every float32 score."""
    require_plain_ids([*run, *(doc_id for scores in run.values() for doc_id in scores)])
    make_folder(path.parent)
    part = path.with_name(f"{path.name}.part")  # renamed when complete, so that an existing run file is never partial
    with part.open("w", encoding="utf-8") as file:
        for query_id, scores in run.items():
            ranking = sorted(scores.items(), key=lambda item: -item[1])
            for rank, (doc_id, score) in enumerate(ranking, start=1):
                file.write(f"{query_id} Q0 {doc_id} {rank} {score:.9g} {tag}\n")
    part.replace(path)


def make_folder(folder: Path) -> None:
    """Create the folder that run files are written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(
            f"runs cannot be written to {folder} ({error.strerror}); expected a folder that exists or can be created"
        ) from error


def require_plain_ids(ids: Iterable[str]) -> None:
    """Refuse ids that the whitespace-separated columns of a TREC run cannot hold."""
    for name in ids:
        if not name or any(character.isspace() for character in name):
            raise BadInput(f"id {name!r} cannot be written to a TREC run; expected ids without spaces: rename it in the data")


def read_trec(path: Path) -> Run:
    """Read a TREC run file. Documents are ranked by score; like trec_eval, the rank column is ignored."""
    run: Run = {}
    with open_bytes(path) as stream:
        lines = TextLines(stream, shown(path))
        for line in lines:
            if not line.strip():
                continue
            place = Place(shown(path), lines.number)
            query_id, doc_id, score = _columns(line, place)
            if doc_id in run.setdefault(query_id, {}):
                raise BadInput(
                    f"{place}: query {query_id!r} has the document {doc_id!r} a second time; expected each document once"
                )
            run[query_id][doc_id] = score
    if not run:
        raise BadInput(f"{shown(path)} is an empty run; expected lines of query, Q0, document, rank, score, tag")
    return run


def _columns(line: str, place: Place) -> tuple[str, str, float]:
    columns = line.split()
    if len(columns) != 6:
        raise BadInput(
            f"{place}: the line is {line.strip()[:80]!r}, {len(columns)} columns; expected the six of a TREC run: "
            "query, Q0, document, rank, score, tag"
        )
    if not NUMBER.fullmatch(columns[4]) or abs(float(columns[4])) > LARGEST:
        raise BadInput(f"{place}: the score is {columns[4]!r}; expected a number within the range of float32, ±{LARGEST:.2g}")
    return columns[0], columns[2], float(columns[4])

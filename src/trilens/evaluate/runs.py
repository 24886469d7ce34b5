"""A run: for each query the documents found and their scores; the form that all evaluation tools share."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from trilens.errors import BadInput

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

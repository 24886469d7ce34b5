"""A run: for each query the documents found and their scores; the form that all evaluation tools share."""

from pathlib import Path

from trilens.errors import BadInput

Run = dict[str, dict[str, float]]
"""query id → doc_id → score"""


def write_trec(run: Run, path: Path, tag: str) -> None:
    """The six columns of TREC: query, Q0, document, rank, score, tag."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for query, found in run.items():
            ranking = sorted(found.items(), key=lambda item: -item[1])
            for rank, (doc_id, score) in enumerate(ranking, start=1):
                for name in (query, doc_id):
                    if not name or any(character.isspace() for character in name):
                        raise BadInput(f"id {name!r} cannot be written to a TREC run; expected no spaces in ids")
                file.write(f"{query} Q0 {doc_id} {rank} {score:.6f} {tag}\n")

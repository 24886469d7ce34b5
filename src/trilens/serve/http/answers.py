"""Answers to queries as they are sent: the JSON of `messages.Answer`, made by the thread that searched."""

from collections.abc import Sequence
from typing import Any

from pydantic_core import to_json

from trilens.search.hits import Hit


def answer_json(query: str, commit: int, hits: Sequence[Hit]) -> bytes:
    """The hits of one query, and the commit that was searched."""
    return to_json({"query": query, "commit": commit, "hits": [_hit(hit) for hit in hits]}, inf_nan_mode="null")


def answers_json(collection: str, took_ms: float, answers: Sequence[bytes]) -> bytes:
    """The answers to all queries of a request: the JSON of `messages.Answers`."""
    head = to_json({"collection": collection, "took_ms": took_ms}).removesuffix(b"}")
    return b"".join((head, b',"answers":[', b",".join(answers), b"]}"))


def _hit(hit: Hit) -> dict[str, Any]:
    return {
        "doc_id": hit.doc_id,
        "rank": hit.rank,
        "score": hit.score,
        "by_lens": {
            name: {"score": seen.score, "rank": seen.rank, "contribution": seen.contribution}
            for name, seen in hit.by_lens.items()
        },
        "title": hit.document.title,
        "text": hit.passage,
        "passage": {"start": hit.start, "end": hit.end},
        "metadata": dict(hit.document.metadata),
    }

"""Serialises search results as the JSON of `messages.Answers`, without building the models.

Each search thread serialises its own hits, so that the event loop only concatenates bytes.
"""

from collections.abc import Sequence

from pydantic_core import to_json

from trilens.search.hits import HITS, HITS_WITH_DOCUMENTS, Hit


def answer_json(query: str, commit: int, hits: Sequence[Hit], document_texts: bool = False) -> bytes:
    """The JSON of `messages.Answer`: the hits of one query and the commit that was searched."""
    adapter = HITS_WITH_DOCUMENTS if document_texts else HITS
    head = to_json({"query": query, "commit": commit}).removesuffix(b"}")
    return b"".join((head, b',"hits":', adapter.dump_json(list(hits)), b"}"))


def answers_json(collection: str, took_ms: float, answers: Sequence[bytes]) -> bytes:
    """The JSON of `messages.Answers` from the serialised answers to all queries of a request."""
    head = to_json({"collection": collection, "took_ms": took_ms}).removesuffix(b"}")
    return b"".join((head, b',"answers":[', b",".join(answers), b"]}"))

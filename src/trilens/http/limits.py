"""Limits on requests, so that one client cannot starve the others."""

from dataclasses import dataclass, fields

from trilens.errors import BadInput


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one request, and the permitted HyDE endpoints.

    explained   documents per explain request
    seconds     time of a request, from its arrival to its response
    waiting     queries in the queue of a collection; further requests are refused
    hyde_urls   language models that searches may call
    """

    body_bytes: int = 8 << 20
    k: int = 1_000
    queries: int = 100
    query_characters: int = 10_000
    texts: int = 100
    documents: int = 1_000
    explained: int = 50
    seconds: float = 30.0
    waiting: int = 2_000
    hyde_urls: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for field in fields(self):
            if isinstance(getattr(self, field.name), int | float) and getattr(self, field.name) <= 0:
                raise BadInput(f"limit {field.name} is {getattr(self, field.name)}; expected more than 0")

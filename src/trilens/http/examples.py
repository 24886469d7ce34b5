"""Example queries of a collection: titles and short sentences of its own documents."""

import re
from collections.abc import Iterator

from trilens.store.snapshot import Snapshot
from trilens.text.document import Document

EXAMPLES = 4
TRIES_PER_EXAMPLE = 6
SHORTEST, LONGEST = 8, 70  # characters
LEADING_CHARACTERS = 2_000  # in which a sentence is looked for
SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
NOT_PROSE = re.compile(r"[=*_()\[\]{}<>|\\/`#@$]|^import |^from \S+ import ")  # of code, markup and addresses


def example_queries(snapshot: Snapshot) -> list[str]:
    """Up to `EXAMPLES` queries from documents that are evenly spread over the collection; the same for the same commit."""
    last_key = max((segment.record.last_key for segment in snapshot.segments), default=0)
    tries = EXAMPLES * TRIES_PER_EXAMPLE
    found: dict[str, str] = {}
    # Each round visits places all over the collection; the rounds are shifted against each other.
    for place in sorted(range(tries), key=lambda place: (place % TRIES_PER_EXAMPLE, place)):
        for _, document in snapshot.page(last_key * place // tries, 1):
            query = _query(document)
            if query:
                found.setdefault(query.casefold(), query)
        if len(found) == EXAMPLES:
            break
    return list(found.values())


def _query(document: Document) -> str | None:
    """The title or else the first short sentence of a document; None without one."""
    return next(filter(_is_query, _candidates(document)), None)


def _candidates(document: Document) -> Iterator[str]:
    for text in (document.title, *SENTENCE_END.split(document.text[:LEADING_CHARACTERS])):
        yield " ".join(text.split()).strip("\"'").rstrip(".!。！:")


def _is_query(text: str) -> bool:
    """Whether a text is prose, short, and has several words or is in a script that may be written without spaces."""
    return SHORTEST <= len(text) <= LONGEST and (" " in text or not text.isascii()) and not NOT_PROSE.search(text)

"""The texts that ranges and untrained heads are fitted to, and how a model reads them."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from trilens.encode.folder import ModelConfig
from trilens.encode.reading import Reading
from trilens.encode.tokens import Tokens
from trilens.errors import BadInput
from trilens.text.decode import open_bytes
from trilens.text.files import shown
from trilens.text.jsonlines import read_jsonl
from trilens.text.python_docs import standard_library

MOST_TEXTS = 500
DOCSTRINGS = 240
LONGEST = 256  # tokens: longer texts have no other kinds of states, but cost far more
QUERY_WORDS, QUERY_EVERY = 12, 4


@dataclass(frozen=True)
class Given:
    """A text as the model is given it; only the first `seen` tokens are attended to."""

    ids: list[int]
    seen: int


class CalibrationTexts:
    """The texts, read when they are first needed."""

    def __init__(self, file: Path | None) -> None:
        if file is not None and not file.is_file():
            raise BadInput(f"{shown(file)} does not exist; expected a file of JSON lines with a text each")
        self._file = file

    @cached_property
    def all(self) -> list[str]:
        """See `read_texts`."""
        return read_texts(self._file)


def read_texts(file: Path | None) -> list[str]:
    """The texts of a file of JSON lines with a "text" each; without a file, docstrings of Python's standard library.

    A long file is thinned evenly.
    """
    if file is None:
        return thin([f"{doc.title}\n{doc.text}" for doc in standard_library()], DOCSTRINGS)
    texts = []
    with open_bytes(file) as stream:
        for found in read_jsonl(stream, shown(file)):
            if isinstance(found, BadInput):
                raise found
            place, record = found
            if not isinstance(record, dict) or not isinstance(record.get("text"), str):
                raise BadInput(f"{place}: no text; expected an object with a string called 'text'")
            texts.append(record["text"])
    if not texts:
        raise BadInput(f"{shown(file)} holds no text; expected some hundred")
    return thin(texts, MOST_TEXTS)


def thin(texts: list[str], most: int) -> list[str]:
    """At most so many of the texts, evenly spaced."""
    return texts if len(texts) <= most else [texts[at * len(texts) // most] for at in range(most)]


def read_docs(tokens: Tokens, config: ModelConfig, texts: list[str]) -> list[Given]:
    """The texts as documents, cut to a moderate length."""
    cut = config.model_copy(update={"max_doc_tokens": min(LONGEST, config.max_doc_tokens)})
    rows = Reading(tokens, cut, "doc", False).read(texts)
    return [Given(ids, seen) for ids, seen in zip(rows.ids, rows.seen, strict=True)]


def read_queries(tokens: Tokens, config: ModelConfig, texts: list[str]) -> list[Given]:
    """The beginnings of some texts as queries, for a model that reads these otherwise; for all others none."""
    multi = config.multi
    marked = multi is not None and (multi.query_marker != multi.doc_marker or multi.query_tokens is not None)
    if config.query_prefix == config.doc_prefix and not marked:
        return []
    queries = [" ".join(text.split()[:QUERY_WORDS]) for text in texts[::QUERY_EVERY]]
    rows = Reading(tokens, config, "query", True).read(queries)
    return [Given(ids, seen) for ids, seen in zip(rows.ids, rows.seen, strict=True)]

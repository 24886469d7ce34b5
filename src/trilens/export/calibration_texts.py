"""Calibration texts: what quantisation ranges and untrained heads are fitted to, and how a model tokenises them."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from trilens.encode.folder import ModelConfig
from trilens.encode.pair_reading import Pair, PairReading
from trilens.encode.reading import Reading
from trilens.encode.tokens import Tokens
from trilens.errors import BadInput
from trilens.read.decode import open_bytes
from trilens.read.jsonlines import read_jsonl
from trilens.read.python_docs import standard_library
from trilens.text.files import shown

MOST_TEXTS = 500
DOCSTRINGS = 240
LONGEST = 256  # tokens: longer texts have no other kinds of states, but cost far more
QUERY_WORDS, QUERY_EVERY = 12, 4


@dataclass(frozen=True)
class TokenisedText:
    """The token ids of a text, of which the first `attended` are attended to; `types` if the model reads token types."""

    ids: list[int]
    attended: int
    types: list[int] | None = None


class CalibrationTexts:
    """The texts, read on first use."""

    def __init__(self, file: Path | None) -> None:
        if file is not None and not file.is_file():
            raise BadInput(f"{shown(file)} does not exist; expected a JSONL file with a text per line")
        self._file = file

    @cached_property
    def all(self) -> list[str]:
        """See `read_texts`."""
        return read_texts(self._file)


def read_texts(file: Path | None) -> list[str]:
    """The "text" fields of a JSONL file; without a file, docstrings of Python's standard library.

    A long file is sampled evenly.
    """
    if file is None:
        return thin([f"{doc.title}\n{doc.text}" for doc in standard_library()], DOCSTRINGS)
    texts = []
    with open_bytes(file) as stream:
        for item in read_jsonl(stream, shown(file)):
            if isinstance(item, BadInput):
                raise item
            place, record = item
            if not isinstance(record, dict) or not isinstance(record.get("text"), str):
                raise BadInput(f"{place}: no text; expected an object with a string field 'text'")
            texts.append(record["text"])
    if not texts:
        raise BadInput(f"{shown(file)} holds no text; expected a few hundred")
    return thin(texts, MOST_TEXTS)


def thin(texts: list[str], most: int) -> list[str]:
    """At most `most` evenly spaced texts."""
    return texts if len(texts) <= most else [texts[index * len(texts) // most] for index in range(most)]


def read_docs(tokens: Tokens, config: ModelConfig, texts: list[str]) -> list[TokenisedText]:
    """The texts tokenised as documents, truncated to a moderate length."""
    truncated = config.model_copy(update={"max_doc_tokens": min(LONGEST, config.max_doc_tokens)})
    rows = Reading(tokens, truncated, "doc", False).read(texts)
    return [TokenisedText(ids, attended) for ids, attended in zip(rows.ids, rows.attended, strict=True)]


def read_queries(tokens: Tokens, config: ModelConfig, texts: list[str]) -> list[TokenisedText]:
    """The first words of some texts tokenised as queries, if the model tokenises queries differently; otherwise none."""
    multi = config.multi
    marked = multi is not None and (multi.query_marker != multi.doc_marker or multi.query_tokens is not None)
    if config.query_prefix == config.doc_prefix and not marked:
        return []
    queries = [" ".join(text.split()[:QUERY_WORDS]) for text in texts[::QUERY_EVERY]]
    rows = Reading(tokens, config, "query", True).read(queries)
    return [TokenisedText(ids, attended) for ids, attended in zip(rows.ids, rows.attended, strict=True)]


def sample_pairs(texts: list[str]) -> list[Pair]:
    """The first words of each text as a query for it, or in every other pair for the next text: high and low scores."""
    queries = [" ".join(text.split()[:QUERY_WORDS]) for text in texts]
    return [(query, texts[(place + place % 2) % len(texts)]) for place, query in enumerate(queries)]


def read_pairs(reading: PairReading, pairs: list[Pair], types: bool) -> list[TokenisedText]:
    """The pairs tokenised for a cross-encoder; `types`: with token types."""
    inputs = reading.read(pairs)
    return [TokenisedText(ids, len(ids), kinds if types else None) for ids, kinds in zip(inputs.ids, inputs.types, strict=True)]

"""`BagEncoder`: the bags of tokens of a model folder's vocabulary, without running the model."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from trilens.encode.encoder import Encoded, Progress
from trilens.encode.folder import ModelFolder
from trilens.encode.reading import Reading, Side, require_texts
from trilens.encode.terms import Terms
from trilens.encode.tokens import Tokens
from trilens.represent import Sparse

# Texts tokenised at a time: the ids of a window are held as lists, which take ten times the room of an array.
WINDOW_TEXTS = 8192


class BagEncoder:
    """Gives the `bag` that the model of the same folder gives, at the cost of tokenising."""

    def __init__(self, path: Path) -> None:
        self.folder = ModelFolder.open(path)

    @property
    def fingerprint(self) -> str:
        """That of the model, since its queries are what the bags are searched with."""
        return self.folder.fingerprint

    @property
    def dim(self) -> int:
        """Size of the vocabulary that the bags are over."""
        return self._terms.dim

    def encode_docs(self, texts: Sequence[str], progress: Progress | None = None) -> Encoded:
        """Bags of passages, in the order given."""
        return self._encode(texts, "doc", progress)

    def encode_queries(self, texts: Sequence[str]) -> Encoded:
        """Bags of queries, in the order given."""
        return self._encode(texts, "query", None)

    def term_texts(self, terms: Sequence[int]) -> list[str]:
        """The terms of a bag in words; see `Terms.texts`."""
        return self._terms.texts(terms)

    def _encode(self, texts: Sequence[str], side: Side, progress: Progress | None) -> Encoded:
        require_texts(texts)
        reading, terms = self._readings[side], self._terms
        parts, truncated = [], 0
        for start in range(0, max(1, len(texts)), WINDOW_TEXTS):
            rows = reading.read(list(texts[start : start + WINDOW_TEXTS]))
            parts.append(terms.bag(reading.own(rows)))
            truncated += rows.truncated
            if progress:
                progress(len(rows.ids))
        return Encoded(bag=Sparse.concat(parts), truncated=truncated)

    @cached_property
    def _tokens(self) -> Tokens:
        return Tokens(self.folder.tokenizer)

    @cached_property
    def _terms(self) -> Terms:
        return Terms(self._tokens, self.folder.config)

    @cached_property
    def _readings(self) -> dict[Side, Reading]:
        config, tokens = self.folder.config, self._tokens
        return {"query": Reading(tokens, config, "query", False), "doc": Reading(tokens, config, "doc", False)}

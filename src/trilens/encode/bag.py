"""`BagEncoder`: bags of tokens over the vocabulary of a model folder, without running the model."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from trilens.encode.encoder import Encoded, Progress
from trilens.encode.folder import ModelFolder
from trilens.encode.reading import Reading, Side, require_texts
from trilens.encode.terms import TermSpace
from trilens.encode.tokens import Tokens
from trilens.represent import Sparse

# Texts tokenised at a time. Bounds memory: token ids are Python lists, ten times the size of an array.
WINDOW_TEXTS = 8192


class BagEncoder:
    """Computes the same `bag` as the model of the folder, at the cost of tokenisation only."""

    def __init__(self, path: Path) -> None:
        self.folder = ModelFolder.open(path)

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the model: bags are searched with query weights of the model."""
        return self.folder.fingerprint

    @property
    def dim(self) -> int:
        """Number of terms."""
        return self._terms.dim

    def encode_docs(self, texts: Sequence[str], progress: Progress | None = None) -> Encoded:
        """Bags of passages, in input order."""
        return self._encode(texts, "doc", progress)

    def encode_queries(self, texts: Sequence[str]) -> Encoded:
        """Bags of queries, in input order."""
        return self._encode(texts, "query", None)

    def term_texts(self, terms: Sequence[int]) -> list[str]:
        """The words of the terms; see `TermSpace.texts`."""
        return self._terms.texts(terms)

    def _encode(self, texts: Sequence[str], side: Side, progress: Progress | None) -> Encoded:
        require_texts(texts)
        reading, terms = self._readings[side], self._terms
        parts, truncated = [], 0
        for start in range(0, max(1, len(texts)), WINDOW_TEXTS):
            inputs = reading.read(list(texts[start : start + WINDOW_TEXTS]))
            parts.append(terms.bag(reading.own(inputs)))
            truncated += inputs.truncated
            if progress:
                progress(len(inputs.ids))
        return Encoded(bag=Sparse.concat(parts), truncated=truncated)

    @cached_property
    def _tokens(self) -> Tokens:
        return Tokens(self.folder.tokenizer)

    @cached_property
    def _terms(self) -> TermSpace:
        return TermSpace(self._tokens, self.folder.config)

    @cached_property
    def _readings(self) -> dict[Side, Reading]:
        config, tokens = self.folder.config, self._tokens
        return {"query": Reading(tokens, config, "query", False), "doc": Reading(tokens, config, "doc", False)}

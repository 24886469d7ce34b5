"""`PassageSplitter`: splits the documents of a collection into passages, by its words and by the tokens of its model."""

from functools import cached_property

from trilens.encode.model import ModelEncoder
from trilens.store.config import PassageConfig
from trilens.text.document import Document
from trilens.text.passages import TokenLimit, passage_text, split_passages

LEAST_SHARE = 4  # a long title leaves a passage this fraction of its tokens, even if the passage is then truncated


class PassageSplitter:
    """Returns the spans of the passages of a document. The tokenizer is loaded at first use."""

    def __init__(self, config: PassageConfig, model: ModelEncoder) -> None:
        self._config = config
        self._model = model

    def __call__(self, document: Document) -> list[tuple[int, int]]:
        """The spans; each has room for the title and the special tokens of the model input."""
        return split_passages(document.text, self._config.words, self._config.overlap, self._limit(document))

    def _limit(self, document: Document) -> TokenLimit | None:
        config = self._config
        if not config.tokens:
            return None
        beside = self._lengths([passage_text(document, 0, 0)])[0] if document.title else self._added
        tokens = max(config.tokens - beside, config.tokens // LEAST_SHARE)
        return TokenLimit(tokens, tokens * config.overlap // config.words, self._count)

    def _count(self, texts: list[str]) -> list[int]:
        return [length - self._added for length in self._lengths(texts)]

    def _lengths(self, texts: list[str]) -> list[int]:
        return self._model.lengths.doc_lengths(texts)

    @cached_property
    def _added(self) -> int:
        """Tokens that the model input adds to every text."""
        return self._lengths([""])[0]

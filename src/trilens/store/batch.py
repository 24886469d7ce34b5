"""Buffered documents, split into passages, that await encoding."""

import numpy as np

from trilens.store.catalog import Catalog
from trilens.store.config import PassageConfig
from trilens.store.segment import PassageRows
from trilens.text.document import Document
from trilens.text.passages import passage_text, split_passages

SEED = 1234


class DocumentBatch:
    """Documents by key. Keys must be added in ascending order."""

    def __init__(self, config: PassageConfig) -> None:
        self._config = config
        self._documents: dict[int, Document] = {}
        self._spans: dict[int, list[tuple[int, int]]] = {}
        self.characters = 0
        self.passages = 0

    def __len__(self) -> int:
        return len(self._documents)

    def __contains__(self, key: int) -> bool:
        return key in self._documents

    def put(self, key: int, document: Document) -> None:
        """Add a document and split it into passages."""
        self._documents[key] = document
        self._spans[key] = split_passages(document.text, self._config.words, self._config.overlap)
        self.characters += len(document.text)
        self.passages += len(self._spans[key])

    def drop(self, key: int) -> None:
        """Remove a document."""
        self.characters -= len(self._documents.pop(key).text)
        self.passages -= len(self._spans.pop(key))

    def rows(self) -> PassageRows:
        """The rows of the segment that the batch becomes."""
        keys, starts, ends = zip(*self._passages(), strict=True)
        return PassageRows(np.array(keys, np.int64), np.array(starts, np.int32), np.array(ends, np.int32))

    def texts(self) -> list[str]:
        """The text of each row, as the lenses encode it."""
        return [passage_text(self._documents[key], start, end) for key, start, end in self._passages()]

    def _passages(self) -> list[tuple[int, int, int]]:
        return [(key, start, end) for key, spans in self._spans.items() for start, end in spans]


def draw_sample(catalog: Catalog, config: PassageConfig, most_passages: int, most_characters: int) -> list[str]:
    """Random passages from the whole collection; none if all documents fit into one batch, which needs no sample."""
    random = np.random.default_rng(SEED)
    sample = DocumentBatch(config)
    for key in random.permutation(catalog.keys()).tolist():
        sample.put(key, catalog.documents([key])[key])
        if sample.passages >= most_passages or sample.characters >= most_characters:
            break
    else:
        return []
    texts = sample.texts()
    if len(texts) <= most_passages:
        return texts
    return [texts[row] for row in random.choice(len(texts), most_passages, replace=False)]

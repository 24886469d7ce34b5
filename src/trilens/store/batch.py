"""A batch: documents on their way to the encoders, cut into passages."""

import numpy as np

from trilens.store.catalog import Catalog
from trilens.store.config import PassageConfig
from trilens.store.segment import Rows
from trilens.text.document import Document
from trilens.text.passages import passage_text, split_passages

SEED = 1234


class Batch:
    """Documents by key, put in ascending order."""

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
        """Add a document."""
        self._documents[key] = document
        self._spans[key] = split_passages(document.text, self._config.words, self._config.overlap)
        self.characters += len(document.text)
        self.passages += len(self._spans[key])

    def drop(self, key: int) -> None:
        """Leave a document out after all."""
        self.characters -= len(self._documents.pop(key).text)
        self.passages -= len(self._spans.pop(key))

    def rows(self) -> Rows:
        """Which passage of which document each row is."""
        keys, starts, ends = zip(*self._places(), strict=True)
        return Rows(np.array(keys, np.int64), np.array(starts, np.int32), np.array(ends, np.int32))

    def texts(self) -> list[str]:
        """What the lenses see of each row."""
        return [passage_text(self._documents[key], start, end) for key, start, end in self._places()]

    def _places(self) -> list[tuple[int, int, int]]:
        return [(key, start, end) for key, spans in self._spans.items() for start, end in spans]


def draw_sample(catalog: Catalog, config: PassageConfig, most_passages: int, most_characters: int) -> list[str]:
    """Passages of documents from all over the collection; none if all of its documents make one batch anyway."""
    random = np.random.default_rng(SEED)
    drawn = Batch(config)
    for key in random.permutation(catalog.keys()).tolist():
        drawn.put(key, catalog.documents([key])[key])
        if drawn.passages >= most_passages or drawn.characters >= most_characters:
            break
    else:
        return []
    texts = drawn.texts()
    if len(texts) <= most_passages:
        return texts
    return [texts[at] for at in random.choice(len(texts), most_passages, replace=False)]

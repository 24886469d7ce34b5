"""Buffered documents, split into passages, that await encoding."""

from collections.abc import Callable

import numpy as np

from trilens.kernels.array_types import Int64s
from trilens.store.segment import PassageRows
from trilens.text.document import Document
from trilens.text.passages import passage_text

SEED = 1234

_Spans = list[tuple[int, int]]
_Entry = tuple[Document, _Spans]  # a document and the spans of its passages

Split = Callable[[Document], _Spans]
"""Returns the spans of the passages of a document."""


class DocumentBatch:
    """Documents by key. Keys must be added in ascending order."""

    def __init__(self, split: Split) -> None:
        self._split = split
        self._entries: dict[int, _Entry] = {}
        self._before: dict[int, _Entry] = {}  # entries as they were at the savepoint, if they have changed
        self._last_key = 0  # at the savepoint
        self.characters = 0
        self.passages = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: int) -> bool:
        return key in self._entries

    @property
    def documents(self) -> dict[int, Document]:
        """The documents by ascending key."""
        return {key: document for key, (document, _) in self._entries.items()}

    def put(self, key: int, document: Document) -> None:
        """Add a document and split it into passages."""
        self._put(key, (document, self._split(document)))

    def drop(self, key: int) -> None:
        """Remove a document."""
        self._keep_before(key)
        self._drop(key)

    def set_metadata(self, key: int, document: Document) -> None:
        """Replace a document by one with the same text."""
        self._keep_before(key)
        self._entries[key] = (document, self._entries[key][1])

    def set_savepoint(self) -> None:
        """Mark the state to which `undo` returns."""
        self._before.clear()
        self._last_key = next(reversed(self._entries), 0)

    def undo(self) -> None:
        """Discard the changes since the savepoint."""
        entries = {key: entry for key, entry in self._entries.items() if key <= self._last_key} | self._before
        for key in list(self._entries):
            self._drop(key)
        for key in sorted(entries):
            self._put(key, entries[key])
        self._before.clear()

    def rows(self) -> PassageRows:
        """The rows of the segment that the batch becomes."""
        keys, starts, ends = zip(*self._passages(), strict=True)
        return PassageRows(np.array(keys, np.int64), np.array(starts, np.int32), np.array(ends, np.int32))

    def texts(self) -> list[str]:
        """The text of each row, as the lenses encode it."""
        return [passage_text(self._entries[key][0], start, end) for key, start, end in self._passages()]

    def _passages(self) -> list[tuple[int, int, int]]:
        return [(key, start, end) for key, (_, spans) in self._entries.items() for start, end in spans]

    def _put(self, key: int, entry: _Entry) -> None:
        self._entries[key] = entry
        self.characters += len(entry[0].text)
        self.passages += len(entry[1])

    def _drop(self, key: int) -> None:
        document, spans = self._entries.pop(key)
        self.characters -= len(document.text)
        self.passages -= len(spans)

    def _keep_before(self, key: int) -> None:
        if key <= self._last_key:
            self._before.setdefault(key, self._entries[key])


def draw_sample(
    keys: Int64s, document: Callable[[int], Document], split: Split, most_passages: int, most_characters: int
) -> list[str]:
    """Random passages from the whole collection; none if all documents fit into one batch, which needs no sample."""
    random = np.random.default_rng(SEED)
    sample = DocumentBatch(split)
    for key in random.permutation(keys).tolist():
        sample.put(key, document(key))
        if sample.passages >= most_passages or sample.characters >= most_characters:
            break
    else:
        return []
    texts = sample.texts()
    if len(texts) <= most_passages:
        return texts
    return [texts[row] for row in random.choice(len(texts), most_passages, replace=False)]

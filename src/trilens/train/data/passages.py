"""`Passages`: all passages that can be positives or negatives, numbered, with unique ids."""

from array import array
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trilens.errors import BadInput
from trilens.kernels.array_types import Int32s
from trilens.text.document import Document
from trilens.text.passages import passage_text
from trilens.train.data.packed_texts import PackedTexts, PackedTextsBuilder, digest


@dataclass(frozen=True, eq=False)
class Passages:
    """Numbered passages; `same[i]` is the first passage with the title and text of passage i, i itself if there is none."""

    ids: PackedTexts
    texts: PackedTexts  # title and text joined, as for indexing
    title_lengths: Int32s  # in characters
    same: Int32s

    def __len__(self) -> int:
        return len(self.ids)

    def document(self, number: int) -> Document:
        """The passage with title and text separated."""
        text, title = self.texts[number], int(self.title_lengths[number])
        return Document(self.ids[number], text[title + 1 :] if title else text, text[:title])

    def number(self, passage_id: str) -> int | None:
        """The number of the passage with this id, None if there is none."""
        return self._numbers.get(passage_id)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {self.ids[number]: number for number in range(len(self))}


class PassagesBuilder:
    """Collects passages: those of a corpus are identified by id, inline passages by their text."""

    def __init__(self) -> None:
        self._ids = PackedTextsBuilder()
        self._texts = PackedTextsBuilder()
        self._title_lengths = array("i")
        self._same = array("i")
        self._first: dict[bytes, int] = {}
        self._taken: set[str] = set()

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, passage_id: str | None, title: str, text: str) -> int:
        """Add a passage, even if an equal one was added before; returns its number."""
        joined = joined_text(title, text)
        number = len(self._ids)
        # Text first: if it cannot be encoded, nothing has been added.
        self._texts.add(joined)
        self._ids.add(self._free_id(passage_id, number))
        self._title_lengths.append(len(title))
        self._same.append(self._first.setdefault(digest(joined), number))
        return number

    def find_or_add(self, passage_id: str | None, title: str, text: str) -> int:
        """The number of the passage with this title and text, added if necessary."""
        known = self._first.get(digest(joined_text(title, text)))
        return self.add(passage_id, title, text) if known is None else known

    def passages(self) -> Passages:
        """All passages added."""
        lengths, same = (np.array(column, np.int32) for column in (self._title_lengths, self._same))
        return Passages(self._ids.texts(), self._texts.texts(), lengths, same)

    def _free_id(self, given_id: str | None, number: int) -> str:
        """A unique id: where two corpora use the same id, the second gets a numeric suffix."""
        unique = given_id or f"passage-{number}"
        copy = 1
        while unique in self._taken:
            copy += 1
            unique = f"{given_id or f'passage-{number}'}#{copy}"
        self._taken.add(unique)
        return unique


def joined_text(title: str, text: str) -> str:
    """Title and text joined as for indexing, by the same rule as documents of a collection."""
    if not (title.strip() or text.strip()):
        raise BadInput("a passage is empty; expected a title or a text: remove it, or skip bad examples")
    return passage_text(Document("any", text, title), 0, len(text))

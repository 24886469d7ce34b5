"""`Passages`: everything that can be a positive or a negative, numbered, each with an id that no other has."""

from array import array
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from trilens.errors import BadInput
from trilens.text.document import Document
from trilens.text.passages import passage_text
from trilens.train.data.texts import Texts, TextsMaker, digest


@dataclass(frozen=True, eq=False)
class Passages:
    """`same` names for each passage the first one with the same title and text, which is itself where there is none before."""

    ids: Texts
    texts: Texts  # title and text joined, as lenses see them
    title_lengths: NDArray[np.int32]  # in characters
    same: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.ids)

    def document(self, number: int) -> Document:
        """The passage with its title apart."""
        text, title = self.texts[number], int(self.title_lengths[number])
        return Document(self.ids[number], text[title + 1 :] if title else text, text[:title])

    def number(self, passage_id: str) -> int | None:
        """The number of the passage with this id."""
        return self._numbers.get(passage_id)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {self.ids[number]: number for number in range(len(self))}


class PassagesMaker:
    """Collects passages: those of corpora by their id, those that stand in the examples themselves by their text."""

    def __init__(self) -> None:
        self._ids = TextsMaker()
        self._texts = TextsMaker()
        self._title_lengths = array("i")
        self._same = array("i")
        self._first: dict[bytes, int] = {}
        self._taken: set[str] = set()

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, passage_id: str | None, title: str, text: str) -> int:
        """A passage of its own, whatever was added before."""
        joined = joined_text(title, text)
        number = len(self._ids)
        # The text first: if it cannot be kept, nothing has happened.
        self._texts.add(joined)
        self._ids.add(self._free_id(passage_id, number))
        self._title_lengths.append(len(title))
        self._same.append(self._first.setdefault(digest(joined), number))
        return number

    def find_or_add(self, passage_id: str | None, title: str, text: str) -> int:
        """The passage with this title and text."""
        known = self._first.get(digest(joined_text(title, text)))
        return self.add(passage_id, title, text) if known is None else known

    def passages(self) -> Passages:
        """All of them."""
        lengths, same = (np.array(column, np.int32) for column in (self._title_lengths, self._same))
        return Passages(self._ids.texts(), self._texts.texts(), lengths, same)

    def _free_id(self, wanted: str | None, number: int) -> str:
        """Two corpora may use one id for two passages; the second gets a number behind it."""
        chosen = wanted or f"passage-{number}"
        copy = 1
        while chosen in self._taken:
            copy += 1
            chosen = f"{wanted or f'passage-{number}'}#{copy}"
        self._taken.add(chosen)
        return chosen


def joined_text(title: str, text: str) -> str:
    """Title and text as lenses see them; the same rule as for documents of a collection."""
    if not (title.strip() or text.strip()):
        raise BadInput("a passage is empty; expected a title or a text: remove it, or skip bad examples")
    return passage_text(Document("any", text, title), 0, len(text))

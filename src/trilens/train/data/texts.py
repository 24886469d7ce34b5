"""`Texts`: many strings in one buffer, because a million small objects cost more than what they say."""

from array import array
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from trilens.text.document import require_utf8


class Texts:
    """Text i is `letters[offsets[i]:offsets[i + 1]]` in UTF-8."""

    def __init__(self, letters: bytearray, offsets: NDArray[np.int64]) -> None:
        self._letters = letters
        self._offsets = offsets

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, number: int) -> str:
        if not 0 <= number < len(self):
            raise IndexError(f"text {number} of {len(self)}")
        return self._letters[self._offsets[number] : self._offsets[number + 1]].decode()

    @property
    def lengths(self) -> NDArray[np.int64]:
        """In bytes: a cheap stand-in for the number of tokens."""
        return np.diff(self._offsets)


class TextsMaker:
    """Collects texts."""

    def __init__(self) -> None:
        self._letters = bytearray()
        self._offsets = array("q", [0])

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def add(self, text: str) -> int:
        """The number of the text."""
        self._letters += encoded(text)
        self._offsets.append(len(self._letters))
        return len(self) - 1

    def texts(self) -> Texts:
        """All of them; nothing can be added afterwards."""
        return Texts(self._letters, np.frombuffer(self._offsets, np.int64))


class OnceMaker(TextsMaker):
    """Collects texts, each different one once."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[bytes, int] = {}

    def add(self, text: str) -> int:
        """The number of the text, or of the one like it that was added before."""
        key = digest(text)
        number = self._known.get(key)
        if number is None:
            number = self._known[key] = super().add(text)
        return number


def digest(text: str) -> bytes:
    """Stands for the text where only equality counts, so that the text itself need not be held twice."""
    return blake2b(encoded(text), digest_size=16).digest()


def encoded(text: str) -> bytes:
    """The text in UTF-8, which those with lone surrogates do not have."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        require_utf8("the text", text)
        raise

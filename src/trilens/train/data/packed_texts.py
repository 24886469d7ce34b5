"""`PackedTexts`: many strings in one UTF-8 buffer, without the overhead of one Python object per string."""

from array import array
from hashlib import blake2b

import numpy as np

from trilens.kernels.array_types import Int64s
from trilens.text.document import require_utf8


class PackedTexts:
    """Strings by number; string i is `buffer[offsets[i]:offsets[i + 1]]`."""

    def __init__(self, buffer: bytearray, offsets: Int64s) -> None:
        self._buffer = buffer
        self._offsets = offsets

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, number: int) -> str:
        if not 0 <= number < len(self):
            raise IndexError(f"text {number} of {len(self)}")
        return self._buffer[self._offsets[number] : self._offsets[number + 1]].decode()

    @property
    def lengths(self) -> Int64s:
        """Lengths in bytes, a cheap estimate of the number of tokens."""
        return np.diff(self._offsets)


class PackedTextsBuilder:
    """Collects texts into a `PackedTexts`."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._offsets = array("q", [0])

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def add(self, text: str) -> int:
        """Add a text; returns its number."""
        self._buffer += encoded(text)
        self._offsets.append(len(self._buffer))
        return len(self) - 1

    def texts(self) -> PackedTexts:
        """All texts; nothing can be added afterwards."""
        return PackedTexts(self._buffer, np.frombuffer(self._offsets, np.int64))


class UniqueTextsBuilder(PackedTextsBuilder):
    """Collects texts without duplicates."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[bytes, int] = {}

    def add(self, text: str) -> int:
        """Add a text unless an equal one was added before; returns its number."""
        key = digest(text)
        number = self._known.get(key)
        if number is None:
            number = self._known[key] = super().add(text)
        return number


def digest(text: str) -> bytes:
    """A digest that identifies the text, so that the text need not be stored twice."""
    return blake2b(encoded(text), digest_size=16).digest()


def encoded(text: str) -> bytes:
    """The text in UTF-8; lone surrogates are an error."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        require_utf8("the text", text)
        raise

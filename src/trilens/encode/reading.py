"""`Reading`: what a model is given of a text beside its words, which of its tokens get a vector, and which are its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trilens.encode.folder import ModelConfig
from trilens.encode.tokens import Place, Tokens
from trilens.errors import BadInput
from trilens.represent.ragged import offsets_of
from trilens.text.document import require_utf8

Side = Literal["query", "doc"]


@dataclass(frozen=True, slots=True)
class Rows:
    """The token ids of each text as the model is given them.

    The first `own[i]` tokens of text i are its own, with the special ones; the rest, if any, is filling. The first
    `seen[i]` are attended to: filling that is not seen looks at the others but they do not look at it.
    """

    ids: list[list[int]]
    own: list[int]
    seen: list[int]
    truncated: int


@dataclass(frozen=True, slots=True)
class Kept:
    """Which tokens get a vector: for all tokens of all texts in a row, cut by `starts`; and the ids of those that do.

    Text i keeps `offsets[i]:offsets[i + 1]` of `tokens`.
    """

    mask: NDArray[np.bool_]
    starts: NDArray[np.int64]
    offsets: NDArray[np.int64]
    tokens: NDArray[np.int32]

    def row(self, at: int) -> NDArray[np.bool_]:
        """The mask of one text."""
        return self.mask[self.starts[at] : self.starts[at + 1]]


@dataclass(frozen=True, slots=True)
class Own:
    """The tokens that stand for the text itself: `begins[i]:ends[i]` of `ids`, which has all tokens of all texts in a row.

    Text i as the model is given it starts at `starts[i]`. Special tokens may stand among its own, where someone wrote them.
    """

    ids: NDArray[np.int32]
    starts: NDArray[np.int64]
    begins: NDArray[np.int64]
    ends: NDArray[np.int64]


class ReadTokens(NamedTuple):
    """Tokens of one text: their ids, and where each stands in it; None for what stands for no part of the text."""

    ids: NDArray[np.int64]
    places: list[Place | None]


class Reading:
    """How queries, or documents, are put to a model."""

    def __init__(self, tokens: Tokens, config: ModelConfig, side: Side, fill: bool) -> None:
        """With `fill`, queries are filled up where the model wants that; without vectors of tokens it has no effect."""
        multi, query = config.multi, side == "query"
        self._tokens, self._multi = tokens, multi
        self._prefix = config.query_prefix if query else config.doc_prefix
        self._prefix_tokens = tokens.count(self._prefix.rstrip())  # a space belongs to the word that follows it
        self._max_tokens = config.max_query_tokens if query else config.max_doc_tokens
        self._marker: list[int] = []
        self._fill_to, self._filling = 0, 0
        self._skip_punctuation = multi is not None and multi.skip_punctuation and not query
        if multi is None:
            return
        if marker := multi.query_marker if query else multi.doc_marker:
            self._marker = [tokens.id_of(marker, f"multi.{side}_marker")]
        if query and multi.query_tokens and multi.mask_token and (fill or multi.attend_to_mask):
            self._fill_to, self._filling = multi.query_tokens, tokens.id_of(multi.mask_token, "multi.mask_token")

    def read(self, texts: list[str]) -> Rows:
        """The texts with prefix, special tokens, marker and filling, cut to what the model reads."""
        ids, truncated = self._tokens.encode([self._prefix + text for text in texts], self._max_tokens - len(self._marker))
        if self._marker:
            after = len(self._tokens.opening)
            ids = [row[:after] + self._marker + row[after:] for row in ids]
        own = seen = [len(row) for row in ids]
        if self._fill_to:
            ids = [row + [self._filling] * (self._fill_to - len(row)) for row in ids]
            if self._multi and self._multi.attend_to_mask:
                seen = [len(row) for row in ids]
        return Rows(ids, own, seen, truncated)

    def places(self, text: str) -> list[Place | None]:
        """Where in the text each token of `read` stands; None for what is put around it."""
        found = self._tokens.places(self._prefix + text, self._max_tokens - len(self._marker))
        if self._marker:
            after = len(self._tokens.opening)
            found = [*found[:after], None, *found[after:]]
        before = len(self._prefix)
        found = [place and Place(max(0, place.start - before), place.end - before, place.word) for place in found]
        found = [place if place and place.end > 0 else None for place in found]
        return found + [None] * (self._fill_to - len(found))

    def kept(self, rows: Rows) -> Kept:
        """The tokens that get a vector."""
        ids, starts = lay_end_to_end(rows.ids)
        mask = np.ones(len(ids), bool)
        if self._skip_punctuation:
            mask = ~self._tokens.punctuation[ids]
        self._skip_special(mask, starts, rows)
        kept_before = offsets_of(mask)
        return Kept(mask, starts, kept_before[starts], ids[mask])

    def own(self, rows: Rows) -> Own:
        """The tokens of the texts themselves, without prefix, marker, filling and what the tokenizer puts around them."""
        ids, starts = lay_end_to_end(rows.ids)
        begins = starts[:-1] + len(self._tokens.opening) + len(self._marker) + self._prefix_tokens
        ends = starts[:-1] + np.array(rows.own, np.int64) - len(self._tokens.closing)
        return Own(ids, starts, begins, np.maximum(begins, ends))

    def _skip_special(self, mask: NDArray[np.bool_], starts: NDArray[np.int64], rows: Rows) -> None:
        opening, closing = len(self._tokens.opening), len(self._tokens.closing)
        if self._marker:
            mask[starts[:-1] + opening] = True  # whatever token it is
        if self._multi and (self._multi.skip_special or self._multi.skip_first):
            for place in range(opening):
                mask[starts[:-1] + place] = False
        if self._multi and self._multi.skip_special:
            ends = starts[:-1] + np.array(rows.own, np.int64)
            for place in range(closing):
                mask[ends - 1 - place] = False


def require_texts(texts: Sequence[str]) -> None:
    """Refuse a bare string, which would be read as a batch of characters, and anything that is not text."""
    if isinstance(texts, str):
        raise BadInput(f"a single string was given ({texts[:40]!r}); expected a list of texts: put it in brackets")
    for at, text in enumerate(texts):
        if not isinstance(text, str):
            raise BadInput(f"text {at} is {type(text).__name__}; expected a string")
        require_utf8(f"text {at}", text)


def lay_end_to_end(rows: list[list[int]]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """All rows in one array, and where each of them starts."""
    starts = offsets_of(np.array([len(row) for row in rows], np.int64))
    return np.fromiter(chain.from_iterable(rows), np.int32, starts[-1]), starts

"""Model inputs: prefixes, markers, truncation and [MASK] augmentation, and which tokens keep a vector."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal, NamedTuple

import numpy as np

from trilens.encode.folder import ModelDescription
from trilens.encode.tokens import TokenPlace, Tokens
from trilens.errors import BadInput
from trilens.kernels.array_types import Int32s, Int64s, Mask
from trilens.represent.ragged import offsets_of
from trilens.text.document import require_utf8

Side = Literal["query", "doc"]


@dataclass(frozen=True, slots=True)
class ModelInputs:
    """Token ids of a batch of texts, as the model receives them.

    Text i has `lengths[i]` tokens, special tokens included, followed by mask tokens if queries are augmented. Its first
    `attended[i]` tokens have attention mask 1. Mask tokens beyond that attend to the others but are not attended to.
    `truncated` is the number of texts that were cut.
    """

    ids: list[list[int]]
    lengths: list[int]
    attended: list[int]
    truncated: int


@dataclass(frozen=True, slots=True)
class KeptTokens:
    """The tokens that keep a vector.

    `mask` covers the concatenated tokens of all texts; text i starts at `starts[i]`. `tokens` are the ids of the kept ones;
    those of text i are `offsets[i]:offsets[i + 1]`.
    """

    mask: Mask
    starts: Int64s
    offsets: Int64s
    tokens: Int32s

    def row(self, text: int) -> Mask:
        """The mask of one text."""
        return self.mask[self.starts[text] : self.starts[text + 1]]


@dataclass(frozen=True, slots=True)
class OwnTokens:
    """The tokens of the texts themselves: without prefix, marker, mask tokens and enclosing special tokens.

    `ids` are the concatenated model inputs of all texts; text i starts at `starts[i]`, and its own tokens are
    `begins[i]:ends[i]`. They can include special tokens that are spelled out in the text.
    """

    ids: Int32s
    starts: Int64s
    begins: Int64s
    ends: Int64s


class ReadTokens(NamedTuple):
    """Token ids of one text and their places in it; None for tokens that the model input adds."""

    ids: Int64s
    places: list[TokenPlace | None]


class Reading:
    """Turns queries, or documents, into model inputs."""

    def __init__(self, tokens: Tokens, config: ModelDescription, side: Side, fill: bool) -> None:
        """`fill` pads queries with mask tokens; mask tokens that the model attends to are added in any case."""
        multi, query = config.multi, side == "query"
        self._tokens, self._multi = tokens, multi
        self._prefix = config.query_prefix if query else config.doc_prefix
        self._prefix_tokens = tokens.count(self._prefix.rstrip())  # a trailing space belongs to the next word
        self._max_tokens = config.max_query_tokens if query else config.max_doc_tokens
        self._marker: list[int] = []
        self._fill_to, self._mask_id = 0, 0
        self._skip_punctuation = multi is not None and multi.skip_punctuation and not query
        if multi is None:
            return
        if marker := multi.query_marker if query else multi.doc_marker:
            self._marker = [tokens.id_of(marker, f"multi.{side}_marker")]
        if query and multi.query_tokens and multi.mask_token and (fill or multi.attend_to_mask):
            self._fill_to, self._mask_id = multi.query_tokens, tokens.id_of(multi.mask_token, "multi.mask_token")

    def read(self, texts: list[str]) -> ModelInputs:
        """Tokenise texts with prefix, special tokens, marker and mask tokens, truncated to the maximum length."""
        ids, truncated = self._tokens.encode([self._prefix + text for text in texts], self._max_tokens - len(self._marker))
        if self._marker:
            opening = len(self._tokens.opening)
            ids = [row[:opening] + self._marker + row[opening:] for row in ids]
        lengths = attended = [len(row) for row in ids]
        if self._fill_to:
            ids = [row + [self._mask_id] * (self._fill_to - len(row)) for row in ids]
            if self._multi and self._multi.attend_to_mask:
                attended = [len(row) for row in ids]
        return ModelInputs(ids, lengths, attended, truncated)

    def lengths(self, texts: list[str]) -> list[int]:
        """Number of tokens that `read` would return for each text without a maximum length and mask tokens."""
        return [tokens + len(self._marker) for tokens in self._tokens.counts([self._prefix + text for text in texts])]

    def places(self, text: str) -> list[TokenPlace | None]:
        """Place in the text of each token that `read` returns; None for tokens that it adds."""
        places = self._tokens.places(self._prefix + text, self._max_tokens - len(self._marker))
        if self._marker:
            opening = len(self._tokens.opening)
            places = [*places[:opening], None, *places[opening:]]
        before = len(self._prefix)
        places = [place and TokenPlace(max(0, place.start - before), place.end - before, place.word) for place in places]
        places = [place if place and place.end > 0 else None for place in places]
        return places + [None] * (self._fill_to - len(places))

    def kept(self, inputs: ModelInputs) -> KeptTokens:
        """The tokens that keep a vector."""
        ids, starts = concatenate(inputs.ids)
        mask = np.ones(len(ids), bool)
        if self._skip_punctuation:
            mask = ~self._tokens.punctuation[ids]
        self._skip_special(mask, starts, inputs)
        kept_before = offsets_of(mask)
        return KeptTokens(mask, starts, kept_before[starts], ids[mask])

    def own(self, inputs: ModelInputs) -> OwnTokens:
        """The tokens of the texts themselves."""
        ids, starts = concatenate(inputs.ids)
        begins = starts[:-1] + len(self._tokens.opening) + len(self._marker) + self._prefix_tokens
        ends = starts[:-1] + np.array(inputs.lengths, np.int64) - len(self._tokens.closing)
        return OwnTokens(ids, starts, begins, np.maximum(begins, ends))

    def _skip_special(self, mask: Mask, starts: Int64s, inputs: ModelInputs) -> None:
        opening, closing = len(self._tokens.opening), len(self._tokens.closing)
        if self._marker:
            mask[starts[:-1] + opening] = True  # kept even if the marker is a punctuation token
        if self._multi and (self._multi.skip_special or self._multi.skip_first):
            for position in range(opening):
                mask[starts[:-1] + position] = False
        if self._multi and self._multi.skip_special:
            ends = starts[:-1] + np.array(inputs.lengths, np.int64)
            for position in range(closing):
                mask[ends - 1 - position] = False


def require_texts(texts: Sequence[str]) -> None:
    """Raise unless `texts` is a sequence of valid strings; a single string would be read as a batch of characters."""
    if isinstance(texts, str):
        raise BadInput(f"a single string was given ({texts[:40]!r}); expected a list of texts: put it in brackets")
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise BadInput(f"text {number} is {type(text).__name__}; expected a string")
        require_utf8(f"text {number}", text)


def concatenate(rows: list[list[int]]) -> tuple[Int32s, Int64s]:
    """Concatenate rows of token ids; returns the ids and the start of each row."""
    starts = offsets_of(np.array([len(row) for row in rows], np.int64))
    return np.fromiter(chain.from_iterable(rows), np.int32, starts[-1]), starts

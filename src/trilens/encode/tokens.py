"""`Tokens`: the tokenizer of a model folder."""

import re
import string
import unicodedata
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import Stemmer

from trilens.errors import BadInput, BadModel
from trilens.kernels.array_types import Int32s, Mask

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# Words are tokenised independently, so a long text can be cut before tokenisation. This many characters per token are nearly
# always enough to fill the maximum length; otherwise the whole text is tokenised.
CHARS_PER_TOKEN = 24
CONTINUES = "##"


class TokenPlace(NamedTuple):
    """The characters `start:end` that a token covers, and the number of its word."""

    start: int
    end: int
    word: int


class PairForm(NamedTuple):
    """How a tokenizer joins two texts: the special tokens before, between and after them, and the types of all five parts."""

    opening: list[int]
    middle: list[int]
    closing: list[int]
    types: list[int]


class Tokens:
    """A tokenizer that truncates after tokenisation.

    Setting the truncation of a shared tokenizer fails while another thread uses it. Truncating here lets one tokenizer serve
    queries and documents of different maximum lengths.
    """

    def __init__(self, file: Path, content: str | None = None) -> None:
        """`content` replaces the content of the file."""
        from tokenizers import Tokenizer  # deferred: BM25 does not need it

        self.file = file
        try:
            self._tokenizer = Tokenizer.from_file(str(file)) if content is None else Tokenizer.from_str(content)
        except Exception as error:
            raise BadModel(f"{file} cannot be read ({error}); restore it or export the model again") from error
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        sample = self._tokenizer.encode("a")
        inner = [position for position, special in enumerate(sample.special_tokens_mask) if not special]
        self.opening: list[int] = sample.ids[: inner[0]]
        """Special tokens before each text, such as [CLS]."""
        self.closing: list[int] = sample.ids[inner[-1] + 1 :]
        """Special tokens after each text, such as [SEP]."""

    def encode(self, texts: list[str], max_tokens: int) -> tuple[list[list[int]], int]:
        """Token ids of each text, special tokens included, and the number of texts truncated to `max_tokens`."""
        max_chars = max_tokens * CHARS_PER_TOKEN
        ids = self._encode_batch([leading_text(text, max_chars) for text in texts])
        short = [row for row, text in enumerate(texts) if len(text) > max_chars and len(ids[row]) <= max_tokens]
        for row, whole in zip(short, self._encode_batch([texts[row] for row in short]), strict=True):
            ids[row] = whole
        long = [row for row, tokens in enumerate(ids) if len(tokens) > max_tokens]
        for row in long:
            ids[row] = ids[row][: max_tokens - len(self.closing)] + self.closing
        return ids, len(long)

    def places(self, text: str, max_tokens: int) -> list["TokenPlace | None"]:
        """Places of the tokens that `encode` returns; None for special tokens."""
        encoding = self._tokenizer.encode(text)
        columns = zip(encoding.offsets, encoding.word_ids, encoding.special_tokens_mask, strict=True)
        places = [None if special else TokenPlace(*span, -1 if word is None else word) for span, word, special in columns]
        if len(places) > max_tokens:
            places = places[: max_tokens - len(self.closing)] + [None] * len(self.closing)
        return places

    @cached_property
    def pair(self) -> PairForm:
        """The form of a pair of texts."""
        sample = self._tokenizer.encode("a", "a")
        of = sample.sequence_ids
        if 0 not in of or 1 not in of or of.index(1) == len(of) - of[::-1].index(0):
            raise BadModel(f"{self.file} does not join two texts; expected the tokenizer of a model that reads pairs")
        # The borders of the five parts; each part has tokens of one type.
        borders = [0, of.index(0), len(of) - of[::-1].index(0), of.index(1), len(of) - of[::-1].index(1), len(of)]
        parts = [sample.ids[start:end] for start, end in pairwise(borders)]
        types = [sample.type_ids[min(start, len(of) - 1)] for start in borders[:-1]]
        return PairForm(parts[0], parts[2], parts[4], types)

    def count(self, text: str) -> int:
        """Number of tokens of a text, without special tokens."""
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def counts(self, texts: list[str]) -> list[int]:
        """Number of tokens of each text, special tokens included; nothing is truncated."""
        return [len(encoding) for encoding in self._tokenizer.encode_batch_fast(texts)]

    def id_of(self, token: str, role: str) -> int:
        """The id of a token that the configuration field `role` names."""
        id_ = self._tokenizer.token_to_id(token)
        if id_ is None:
            raise BadModel(f"{self.file} has no token {token!r}, which {role} names; expected a token of its vocabulary")
        return int(id_)

    def texts(self, ids: Sequence[int]) -> list[str]:
        """Readable tokens: `▁word` becomes `word`; `##ing` keeps its mark, which says that it continues a word."""
        raw = [self._tokenizer.id_to_token(id_) if id_ >= 0 else None for id_ in map(int, ids)]
        if None in raw:
            wrong = int(ids[raw.index(None)])
            raise BadInput(f"there is no token {wrong} in {self.file}; expected ids of its {self.size:,} tokens")
        decoder = self._tokenizer.decoder
        return [(decoder.decode([token]).strip() if decoder else "") or token for token in raw if token is not None]

    def raw(self, id_: int) -> str:
        """The token as stored in the vocabulary."""
        return str(self._tokenizer.id_to_token(id_))

    @property
    def size(self) -> int:
        """Vocabulary size."""
        return int(self._tokenizer.get_vocab_size())

    @cached_property
    def special(self) -> Mask:
        """Mask over token ids: special tokens, which represent no part of a text."""
        mask = np.zeros(self.size, bool)
        mask[sorted(special_tokens(self._tokenizer))] = True
        return mask

    @cached_property
    def punctuation(self) -> Mask:
        """Mask over token ids: tokens that consist of punctuation only."""
        vocabulary: dict[str, int] = self._tokenizer.get_vocab()
        mask = np.zeros(max(vocabulary.values()) + 1, bool)
        ids = [id_ for token, id_ in vocabulary.items() if not re.search("[0-9A-Za-z]", token)]
        mask[ids] = [is_punctuation(text) for text in self.texts(ids)]  # the mark of `##,` is punctuation as well
        return mask

    def same_stems(self, language: str) -> Int32s:
        """For each token id, the first id with the same stem; continuation pieces are not stemmed."""
        stem, first = Stemmer.Stemmer(language).stemWord, dict[str, int]()
        raw = (self.raw(id_) for id_ in range(self.size))
        stems = (token if token.startswith(CONTINUES) else stem(token) for token in raw)
        return np.array([first.setdefault(token, id_) for id_, token in enumerate(stems)], np.int32)

    def _encode_batch(self, texts: list[str]) -> list[list[int]]:
        return [encoding.ids for encoding in self._tokenizer.encode_batch_fast(texts)]


def special_tokens(tokenizer: "Tokenizer") -> set[int]:
    """Ids of tokens that represent no part of a text: enclosing tokens, the unknown token and tokens declared special."""
    declared = {id_ for id_, token in tokenizer.get_added_tokens_decoder().items() if token.special}
    sample = tokenizer.encode("a")
    around = {id_ for id_, special in zip(sample.ids, sample.special_tokens_mask, strict=True) if special}
    unknown = tokenizer.token_to_id(getattr(tokenizer.model, "unk_token", None) or "")
    return declared | around | (set() if unknown is None else {unknown})


def leading_text(text: str, max_chars: int) -> str:
    """The start of a text, cut at whitespace; the whole text if it is short or has no whitespace before the limit."""
    if len(text) <= max_chars:
        return text
    parts = text[:max_chars].rsplit(None, 1)
    return parts[0] if len(parts) == 2 else text


def is_punctuation(text: str) -> bool:
    """Whether all characters are punctuation by BERT's definition: Unicode punctuation and ASCII symbols."""
    return bool(text) and all(char in string.punctuation or unicodedata.category(char)[0] == "P" for char in text)

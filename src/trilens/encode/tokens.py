"""`Tokens`: the tokenizer of a model folder, without padding or truncation."""

import re
import string
import unicodedata
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import Stemmer
from numpy.typing import NDArray

from trilens.errors import BadInput, BadModel

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# Words are tokenised independently, so the start of a long text has the same tokens alone as within the whole. This
# many characters per wanted token nearly always hold enough; a text of rarer kind is tokenised whole.
CHARS_PER_TOKEN = 24
CONTINUES = "##"


class Place(NamedTuple):
    """The characters `start:end` of a text that a token stands for; the tokens of one word share its number."""

    start: int
    end: int
    word: int


class Tokens:
    """A tokenizer without padding or truncation.

    Setting a length on a shared tokenizer fails while another thread uses it; so texts are cut here, after tokenising,
    and one tokenizer serves queries and documents of different lengths.
    """

    def __init__(self, file: Path, content: str | None = None) -> None:
        """`content` is what the file says, where it has been read or changed already."""
        from tokenizers import Tokenizer  # here, because a bm25 search does not need it

        self.file = file
        try:
            self._tokenizer = Tokenizer.from_file(str(file)) if content is None else Tokenizer.from_str(content)
        except Exception as error:
            raise BadModel(f"{file} cannot be read ({error}); restore it or make the folder again") from error
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        sample = self._tokenizer.encode("a")
        inner = [at for at, special in enumerate(sample.special_tokens_mask) if not special]
        self.opening: list[int] = sample.ids[: inner[0]]
        """Special tokens before each text, such as [CLS]."""
        self.closing: list[int] = sample.ids[inner[-1] + 1 :]
        """Special tokens after each text, such as [SEP]."""

    def encode(self, texts: list[str], max_tokens: int) -> tuple[list[list[int]], int]:
        """Ids of each text, special tokens included, and how many texts had to be cut to `max_tokens`."""
        ids = self._all([head(text, max_tokens * CHARS_PER_TOKEN) for text in texts])
        short = [at for at, text in enumerate(texts) if len(text) > max_tokens * CHARS_PER_TOKEN]
        short = [at for at in short if len(ids[at]) <= max_tokens]
        for at, whole in zip(short, self._all([texts[at] for at in short]), strict=True):
            ids[at] = whole
        long = [at for at, row in enumerate(ids) if len(row) > max_tokens]
        for at in long:
            ids[at] = ids[at][: max_tokens - len(self.closing)] + self.closing
        return ids, len(long)

    def places(self, text: str, max_tokens: int) -> list["Place | None"]:
        """Where in the text each of its tokens stands, as `encode` cuts them; None for special ones."""
        encoding = self._tokenizer.encode(text)
        columns = zip(encoding.offsets, encoding.word_ids, encoding.special_tokens_mask, strict=True)
        found = [None if special else Place(*span, -1 if word is None else word) for span, word, special in columns]
        if len(found) > max_tokens:
            found = found[: max_tokens - len(self.closing)] + [None] * len(self.closing)
        return found

    def count(self, text: str) -> int:
        """How many tokens a text has, without special ones."""
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def id_of(self, token: str, role: str) -> int:
        """The id of a token that the configuration names; `role` is the field that names it."""
        found = self._tokenizer.token_to_id(token)
        if found is None:
            raise BadModel(f"{self.file} has no token {token!r}, which {role} names; expected a token of its vocabulary")
        return int(found)

    def texts(self, ids: Sequence[int]) -> list[str]:
        """Each token as a reader knows it: `▁word` is `word`; `##ing` stays, as it says that it continues a word."""
        raw = [self._tokenizer.id_to_token(id_) if id_ >= 0 else None for id_ in map(int, ids)]
        if None in raw:
            wrong = int(ids[raw.index(None)])
            raise BadInput(f"there is no token {wrong} in {self.file}; expected ids of its {self.size:,} tokens")
        decoder = self._tokenizer.decoder
        return [(decoder.decode([token]).strip() if decoder else "") or token for token in raw if token is not None]

    def raw(self, id_: int) -> str:
        """The token as the vocabulary has it."""
        return str(self._tokenizer.id_to_token(id_))

    @property
    def size(self) -> int:
        """How many tokens the vocabulary has."""
        return int(self._tokenizer.get_vocab_size())

    @cached_property
    def special(self) -> NDArray[np.bool_]:
        """For each id, whether its token stands for no part of a text."""
        found = np.zeros(self.size, bool)
        found[sorted(special_tokens(self._tokenizer))] = True
        return found

    @cached_property
    def punctuation(self) -> NDArray[np.bool_]:
        """For each id, whether its token is nothing but punctuation."""
        vocabulary: dict[str, int] = self._tokenizer.get_vocab()
        found = np.zeros(max(vocabulary.values()) + 1, bool)
        ids = [id_ for token, id_ in vocabulary.items() if not re.search("[0-9A-Za-z]", token)]
        found[ids] = [is_punctuation(text) for text in self.texts(ids)]  # the mark of `##,` is punctuation as well
        return found

    def same_stems(self, language: str) -> NDArray[np.int32]:
        """For each id, the first one whose token has the same stem; pieces that continue a word stay apart."""
        stem, first = Stemmer.Stemmer(language).stemWord, dict[str, int]()
        raw = (self.raw(id_) for id_ in range(self.size))
        stems = (token if token.startswith(CONTINUES) else stem(token) for token in raw)
        return np.array([first.setdefault(token, id_) for id_, token in enumerate(stems)], np.int32)

    def _all(self, texts: list[str]) -> list[list[int]]:
        return [encoding.ids for encoding in self._tokenizer.encode_batch_fast(texts)]


def special_tokens(tokenizer: "Tokenizer") -> set[int]:
    """The ids of tokens that stand for no part of a text: those around it, the unknown one, and what is declared special."""
    declared = {id_ for id_, token in tokenizer.get_added_tokens_decoder().items() if token.special}
    sample = tokenizer.encode("a")
    around = {id_ for id_, special in zip(sample.ids, sample.special_tokens_mask, strict=True) if special}
    unknown = tokenizer.token_to_id(getattr(tokenizer.model, "unk_token", None) or "")
    return declared | around | (set() if unknown is None else {unknown})


def head(text: str, max_chars: int) -> str:
    """The start of a text, ending before a space; the whole text when it is short or has no space to end at."""
    if len(text) <= max_chars:
        return text
    parts = text[:max_chars].rsplit(None, 1)
    return parts[0] if len(parts) == 2 else text


def is_punctuation(text: str) -> bool:
    """Whether every character is punctuation as BERT's tokenizer splits it off: that of Unicode, and ASCII symbols."""
    return bool(text) and all(char in string.punctuation or unicodedata.category(char)[0] == "P" for char in text)

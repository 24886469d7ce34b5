"""From a text to the words that BM25 counts: Unicode words, lower-cased, without stop words, stemmed.

Chinese, Japanese, Korean, Thai, Lao, Khmer and Burmese are cut into pairs of neighbouring characters, whatever the
language setting, since they put no spaces between words (or, in Korean, glue particles to them).
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import Stemmer
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, field_validator

from trilens.errors import BadInput
from trilens.kernels.words import BIGRAM, JOINER, LETTER, MARK, SEPARATOR, next_word, number_words
from trilens.text.document import require_utf8
from trilens.text.stopwords import STOP_WORDS

NO_SPACES = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Burmese
    (0x1100, 0x11FF),  # Hangul letters
    (0x1780, 0x17FF),  # Khmer
    (0x3005, 0x3007),  # repetition mark and zero of Han
    (0x3040, 0x30FF),  # Hiragana, Katakana
    (0x3130, 0x318F),  # Hangul letters
    (0x3400, 0x4DBF),  # Han
    (0x4E00, 0x9FFF),  # Han
    (0xAC00, 0xD7AF),  # Hangul
    (0xF900, 0xFAFF),  # Han
    (0x20000, 0x323AF),  # Han
)
LAST_ASSIGNED_LETTER = 0x323AF
APOSTROPHES = "'’"
# A character and the marks on it: about what normalising joins into one.
_MARKS = "\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\u3099\u309a"
CLUSTER = re.compile(f"[^{_MARKS}][{_MARKS}]*|.", re.DOTALL)
CLASSES = {"L": LETTER, "N": LETTER, "M": MARK}
# Soft hyphens, joiners and variation selectors are about looks; a word is the same with and without them.
INVISIBLE = dict.fromkeys([0x00AD, 0x200C, 0x200D, 0x2060, 0xFEFF, *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)])


def known_language(language: str, *besides: str) -> str:
    """A language that words can be stemmed in; else a `ValueError` that lists them, after what is allowed `besides`."""
    known = sorted(Stemmer.algorithms())
    if language not in known:
        raise ValueError(f"language is {language!r}; expected one of {', '.join([*besides, *known])}")
    return language


class AnalysisConfig(BaseModel):
    """How texts are cut into words. `language` is a Snowball language such as "english", or "none"."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    language: str = "english"
    stop_words: bool = True
    stem: bool = True

    @field_validator("language")
    @classmethod
    def _known(cls, language: str) -> str:
        return language if language == "none" else known_language(language, "none")


ENGLISH = AnalysisConfig()


@cache
def character_classes(apostrophes_join: bool) -> NDArray[np.uint8]:
    """The class of each code point, as kernels/words.py wants it."""
    classes = np.zeros(0x110000, np.uint8)
    for point in range(LAST_ASSIGNED_LETTER + 1):
        classes[point] = CLASSES.get(unicodedata.category(chr(point))[0], SEPARATOR)
    for first, last in NO_SPACES:
        block = classes[first : last + 1]
        block[block != SEPARATOR] = BIGRAM
    if apostrophes_join:
        classes[[ord(mark) for mark in APOSTROPHES]] = JOINER
    return classes


class Analyzer:
    """Turns batches of texts into numbered words; stateless between calls, so any number of threads may share one."""

    def __init__(self, config: AnalysisConfig = ENGLISH) -> None:
        self.config = config
        self._stop_words = STOP_WORDS.get(config.language, frozenset()) if config.stop_words else frozenset()

    def words(self, texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64], list[str | None]]:
        """Words of all texts as numbers, where each text ends, and for each number its term, None if it is not indexed."""
        if isinstance(texts, str):
            raise BadInput("texts is one string; expected a list of them: put it into a list")
        pieces = [_normalise(text) for text in texts]
        ends = np.cumsum([len(piece) for piece in pieces], dtype=np.int64)
        joined = "".join(pieces)
        try:
            points = np.frombuffer(joined.encode("utf-32-le"), np.uint32)
        except UnicodeEncodeError:
            for text in texts:
                require_utf8(f"text {text[:40]!r}", text)
            raise
        # In English an apostrophe belongs to its word (and 's is taken off); in French or Italian it parts two words.
        classes = character_classes(self.config.language in ("english", "porter"))
        words, word_ends, starts, lengths = number_words(points, ends, classes)
        term_of = self._term_maker()
        spans = zip(starts.tolist(), lengths.tolist(), strict=True)
        return words, word_ends, [term_of(joined[start : start + length]) for start, length in spans]

    def terms(self, text: str) -> list[str]:
        """The indexed terms of one text in order: what a search for it would look up."""
        words, _, terms = self.words([text])
        return [term for word in words if (term := terms[word]) is not None]

    def places(self, text: str) -> list[tuple[str, int, int]]:
        """The indexed terms of a text in order, each with the characters of the text that it stands for: start and end."""
        normalised, starts, ends = _normalise_with_places(text)
        points = np.frombuffer(normalised.encode("utf-32-le"), np.uint32)
        classes = character_classes(self.config.language in ("english", "porter"))
        term_of = self._term_maker()
        found: list[tuple[str, int, int]] = []
        at = 0
        while True:
            start, length, at = next_word(points, classes, at, len(points))
            if length == 0:
                return found
            term = term_of(normalised[start : start + length])
            if term is not None:
                found.append((term, starts[start], ends[start + length - 1]))

    def _term_maker(self) -> Callable[[str], str | None]:
        # A stemmer keeps a cache and is not safe to share between threads: one per call costs microseconds.
        stop_words = self._stop_words
        language = self.config.language
        stem = Stemmer.Stemmer(language).stemWord if self.config.stem and language != "none" else str

        def term_of(word: str) -> str | None:
            word = word.replace("’", "'").removesuffix("'s")
            return None if word in stop_words else stem(word)

        return term_of


def _normalise_with_places(text: str) -> tuple[str, list[int], list[int]]:
    """A text as `_normalise` gives it, and for each character of that where in the text it comes from: start and end."""
    whole = _normalise(text)
    if len(whole) == len(text) + 1 and text.isascii():
        places = range(len(whole))
        return whole, list(places), [place + 1 for place in places]
    starts: list[int] = []
    ends: list[int] = []
    for cluster in re.finditer(r"\s|\S+", text):
        starts_here, ends_here = _places_of(cluster.group(), cluster.start())
        starts += starts_here
        ends += ends_here
    if len(starts) + 1 != len(whole):  # marks that join over a space: then every character stands for the whole text
        return whole, [0] * len(whole), [len(text)] * len(whole)
    return whole, [*starts, len(text)], [*ends, len(text)]


def _places_of(run: str, first: int) -> tuple[list[int], list[int]]:
    """Where the characters of a normalised run come from: character by character if they can be told, else all from all."""
    length = len(_normalise(run)) - 1
    clusters = [(found.start(), found.end()) for found in CLUSTER.finditer(run)]
    sizes = [len(_normalise(run[start:end])) - 1 for start, end in clusters]
    if sum(sizes) != length:
        return [first] * length, [first + len(run)] * length
    starts = [first + start for (start, _), size in zip(clusters, sizes, strict=True) for _ in range(size)]
    ends = [first + end for (_, end), size in zip(clusters, sizes, strict=True) for _ in range(size)]
    return starts, ends


def _normalise(text: str) -> str:
    """Lower case, compatibility forms folded (full-width letters, ligatures), a separator at the end."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).translate(INVISIBLE)
    return text.lower() + "\n"

"""Text analysis for BM25: Unicode tokenisation, lower-casing, stop words and stemming.

Chinese, Japanese, Korean, Thai, Lao, Khmer and Burmese become character bigrams in every language setting: these scripts
do not separate words by spaces, or, like Korean, attach particles to words.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import Stemmer
from pydantic import BaseModel, ConfigDict, field_validator

from trilens.errors import BadInput
from trilens.kernels.array_types import Int64s, UInt8s
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
# A character with its combining marks, which NFKC usually composes into one code point.
_MARKS = "\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\u3099\u309a"
CLUSTER = re.compile(f"[^{_MARKS}][{_MARKS}]*|.", re.DOTALL)
CLASSES = {"L": LETTER, "N": LETTER, "M": MARK}
# Soft hyphens, joiners and variation selectors affect rendering only, so they are removed.
INVISIBLE = dict.fromkeys([0x00AD, 0x200C, 0x200D, 0x2060, 0xFEFF, *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)])


def known_language(language: str, *other_values: str) -> str:
    """Return a language that has a stemmer; else raise a `ValueError` that lists `other_values` and all languages."""
    known = sorted(Stemmer.algorithms())
    if language not in known:
        raise ValueError(f"language is {language!r}; expected one of {', '.join([*other_values, *known])}")
    return language


class AnalysisConfig(BaseModel):
    """Settings of text analysis. `language` is a Snowball language such as "english", or "none"."""

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
def character_classes(apostrophes_join: bool) -> UInt8s:
    """The character class of each code point, for `kernels.words`."""
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
    """Turns batches of texts into term numbers. It keeps no state between calls, so threads can share it."""

    def __init__(self, config: AnalysisConfig = ENGLISH) -> None:
        self.config = config
        self._stop_words = STOP_WORDS.get(config.language, frozenset()) if config.stop_words else frozenset()

    def words(self, texts: Sequence[str]) -> tuple[Int64s, Int64s, list[str | None]]:
        """The word numbers of all texts, the end offset of each text, and the term of each number (None for stop words)."""
        if isinstance(texts, str):
            raise BadInput("texts is one string; expected a list of strings: put it into a list")
        normalised = [_normalise(text) for text in texts]
        ends = np.cumsum([len(text) for text in normalised], dtype=np.int64)
        joined = "".join(normalised)
        try:
            points = np.frombuffer(joined.encode("utf-32-le"), np.uint32)
        except UnicodeEncodeError:
            for text in texts:
                require_utf8(f"text {text[:40]!r}", text)
            raise
        # In English an apostrophe is part of a word (and 's is removed); in French or Italian it separates two words.
        classes = character_classes(self.config.language in ("english", "porter"))
        words, word_ends, starts, lengths = number_words(points, ends, classes)
        term_of = self._term_maker()
        spans = zip(starts.tolist(), lengths.tolist(), strict=True)
        return words, word_ends, [term_of(joined[start : start + length]) for start, length in spans]

    def terms(self, text: str) -> list[str]:
        """The indexed terms of a text, in order."""
        words, _, terms = self.words([text])
        return [term for word in words if (term := terms[word]) is not None]

    def places(self, text: str) -> list[tuple[str, int, int]]:
        """The indexed terms of a text in order, each with the start and end of its characters in the text."""
        normalised, starts, ends = _normalise_with_places(text)
        points = np.frombuffer(normalised.encode("utf-32-le"), np.uint32)
        classes = character_classes(self.config.language in ("english", "porter"))
        term_of = self._term_maker()
        places: list[tuple[str, int, int]] = []
        position = 0
        while True:
            start, length, position = next_word(points, classes, position, len(points))
            if length == 0:
                return places
            term = term_of(normalised[start : start + length])
            if term is not None:
                places.append((term, starts[start], ends[start + length - 1]))

    def _term_maker(self) -> Callable[[str], str | None]:
        # A stemmer has a cache and is not thread-safe; creating one per call costs microseconds.
        stop_words = self._stop_words
        language = self.config.language
        stem = Stemmer.Stemmer(language).stemWord if self.config.stem and language != "none" else str

        def term_of(word: str) -> str | None:
            word = word.replace("’", "'").removesuffix("'s")
            return None if word in stop_words else stem(word)

        return term_of


def _normalise_with_places(text: str) -> tuple[str, list[int], list[int]]:
    """The normalised text, and for each of its characters the start and end of its origin in the text."""
    normalised = _normalise(text)
    if len(normalised) == len(text) + 1 and text.isascii():
        positions = range(len(normalised))
        return normalised, list(positions), [position + 1 for position in positions]
    starts: list[int] = []
    ends: list[int] = []
    for run in re.finditer(r"\s|\S+", text):
        run_starts, run_ends = _places_of(run.group(), run.start())
        starts += run_starts
        ends += run_ends
    if len(starts) + 1 != len(normalised):  # marks that combine across a space: every character maps to the whole text
        return normalised, [0] * len(normalised), [len(text)] * len(normalised)
    return normalised, [*starts, len(text)], [*ends, len(text)]


def _places_of(run: str, offset: int) -> tuple[list[int], list[int]]:
    """The origin of each normalised character: its cluster if clusters normalise independently, else the whole run."""
    length = len(_normalise(run)) - 1
    clusters = [(match.start(), match.end()) for match in CLUSTER.finditer(run)]
    sizes = [len(_normalise(run[start:end])) - 1 for start, end in clusters]
    if sum(sizes) != length:
        return [offset] * length, [offset + len(run)] * length
    starts = [offset + start for (start, _), size in zip(clusters, sizes, strict=True) for _ in range(size)]
    ends = [offset + end for (_, end), size in zip(clusters, sizes, strict=True) for _ in range(size)]
    return starts, ends


def _normalise(text: str) -> str:
    """Lower-case, fold compatibility forms such as full-width letters and ligatures, and append a separator."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).translate(INVISIBLE)
    return text.lower() + "\n"

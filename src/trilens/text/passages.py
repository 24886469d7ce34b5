"""Split long texts into overlapping passages at sentence boundaries."""

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice, pairwise
from typing import NamedTuple

from trilens.errors import BadInput
from trilens.text.document import Document

# Scripts without spaces: each character counts as a word, together with its vowel signs and tone marks.
_SOLID = r"\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46\u0e81-\u0eb0\u0eb2\u0eb3\u0ec0-\u0ec6"  # Thai, Lao
_SOLID += r"\u1000-\u102a\u103f\u1050-\u1055\u1780-\u17b3"  # Myanmar, Khmer
_SOLID += r"\u3041-\u3096\u30a1-\u30fa\u3105-\u312f\u31f0-\u31ff"  # kana, bopomofo
_SOLID += r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Chinese characters
_SIGNS = r"\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u1056-\u1059\u17b4-\u17d3"
_SIGNS += r"\u3099\u309a\u30fc"
# Marks inside words that \w does not match: accents, Hebrew points, Arabic vowels, Indic vowel signs, joiners.
_MARKS = r"\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
_MARKS += r"\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06ed\u0900-\u0963\u0966-\u0df3\u200c\u200d"
# Letters of the commonest scripts: the regex engine matches plain ranges several times faster than categories such as \w.
_FAST = r"0-9A-Z_a-zÀ-ÖØ-öø-ʯΣ-ϵЀ-ҁҊ-ԯ\u0620-\u064a"
_LETTER = rf"[^\W{_SOLID}]"
_JOINED = rf"(?:{_LETTER}|[{_MARKS}])[{_FAST}]*"
WORD = re.compile(rf"[{_SOLID}][{_SIGNS}]*|(?:[{_FAST}]+|{_JOINED})(?:{_JOINED})*")

_SPACED_ENDS = ".!?…‽"
_SOLID_ENDS = "。！？｡．।॥؟۔։።፧။។៕།༎๚๛"
_CLOSERS = r"\"'”’»)\]」』）】》〉"
_THAI = r"\u0e01-\u0e4e"
# The pattern starts with a single character set, which the regex engine finds fast; lookbehinds then tell the cases apart.
BOUNDARY = re.compile(
    rf"[{_SPACED_ENDS}{_SOLID_ENDS}\n{_THAI}](?:"
    rf"(?<=[{_SPACED_ENDS}])[{_CLOSERS}]*\s+"
    rf"|(?<=[{_SOLID_ENDS}])(?![{_SOLID_ENDS}])(?<!．(?=\d))[{_CLOSERS}]*\s*"
    r"|(?<=\n)\s*\n\s*"
    rf"|(?<=[{_THAI}])[ \t]+(?=[{_THAI}])"
    r")"
)
_NEVER_LAST = """adm al approx capt cf dr e.g eds eq eqs esp fig figs gen gov hon i.e ibid lt messrs mr mrs ms mt para
pl pp pres prof rep rev sect sen sgt sp spp ssp st viz vol vols vs"""
NEVER_LAST = frozenset(_NEVER_LAST.split())
BEFORE_NUMBER = frozenset({"art", "ch", "chap", "col", "ed", "ex", "no", "nos", "op", "p", "sec", "secs", "tab"})
BEFORE_LOWER_CASE = frozenset({"a.m", "bros", "co", "corp", "dept", "est", "etc", "inc", "jr", "ltd", "p.m", "ph.d", "sr"})
LONGEST_ABBREVIATION = 12
USUAL_CHARACTERS = 4096
"""Up to this length, counting all words is faster than stopping at the limit."""


@dataclass(frozen=True, slots=True)
class TokenLimit:
    """A maximum number of tokens per passage. `count` returns the number of tokens of each text by itself."""

    tokens: int
    overlap: int
    count: Callable[[list[str]], list[int]]

    def holds(self, text: str) -> bool:
        """Whether a text is within the limit. No tokenizer makes more than one token of an ASCII character."""
        return (len(text) < self.tokens and text.isascii()) or self.count([text])[0] <= self.tokens


class _Measure(NamedTuple):
    """A length of passages: its value before each unit and at the end, its maximum, and the maximum of an overlap."""

    before: Sequence[int]
    most: int
    overlap: int


def split_passages(
    text: str, max_words: int = 150, overlap_words: int = 30, limit: TokenLimit | None = None
) -> list[tuple[int, int]]:
    """Character spans of passages of at most `max_words` words, and tokens if limited; `max_words` 0 disables splitting.

    Each passage repeats the last whole sentences of its predecessor that fit into the overlap, so that text at a boundary
    keeps its context. A sentence longer than a passage is split between words, and a word with too many tokens inside.
    """
    if max_words < 0 or overlap_words < 0:
        raise BadInput(f"max_words is {max_words} and overlap_words {overlap_words}; expected 0 or more")
    if 0 < max_words <= overlap_words:
        raise BadInput(f"overlap_words is {overlap_words}; expected less than max_words, which is {max_words}")
    if max_words == 0 or (_within(text, max_words) and (limit is None or limit.holds(text))):
        return [(0, len(text))]
    cuts, words = _units(text, max_words, overlap_words or max_words)
    if limit is None:
        return list(_passages(text, cuts, [_Measure(words, max_words, overlap_words)]))
    finer, tokens = _limited(text, cuts, limit)
    counts = (len(WORD.findall(text, start, end)) for start, end in pairwise(finer))
    by_words = _Measure([*accumulate(counts, initial=0)], max_words, overlap_words)
    by_tokens = _Measure([*accumulate(tokens, initial=0)], limit.tokens, limit.overlap)
    return list(_passages(text, finer, [by_words, by_tokens]))


def covers(text: str, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether passages are in order and leave out nothing of a text but white space."""
    reached = 0
    for (start, end), (next_start, next_end) in pairwise([(0, 0), *spans]):
        if not (start <= next_start <= next_end and end <= next_end) or text[reached:next_start].strip():
            return False
        reached = next_end
    return bool(spans) and reached <= len(text) and not text[reached:].strip()


def split_sentences(text: str, max_words: int) -> list[tuple[int, int]]:
    """Character spans of the sentences of a text, without surrounding space; longer ones are split between words."""
    cuts = _units(text, max_words, max_words)[0]
    spans = ((_without_leading_space(text, start, end), _without_space(text, start, end)) for start, end in pairwise(cuts))
    return [(start, end) for start, end in spans if start < end]


def count_words(text: str) -> int:
    """The number of Unicode words; each character of a script without spaces counts as one."""
    return sum(1 for _ in WORD.finditer(text))


def _within(text: str, max_words: int) -> bool:
    if len(text) <= max_words:
        return True
    if len(text) <= USUAL_CHARACTERS:
        return len(WORD.findall(text)) <= max_words
    return next(islice(WORD.finditer(text), max_words, None), None) is None


def _units(text: str, max_words: int, piece_words: int) -> tuple["array[int]", "array[int]"]:
    """Start offsets of sentences, with the number of words before each; both arrays end with the totals of the text.

    Sentences longer than a passage are split into pieces of `piece_words`, so that passages inside them overlap too.
    """
    cuts, words = array("q", [0]), array("q", [0])
    start = total = 0
    for end in _sentence_ends(text):
        if end - start <= max_words:
            total += len(WORD.findall(text, start, end))
        else:
            starts = array("q", (word.start() for word in WORD.finditer(text, start, end)))
            if len(starts) > max_words:
                for first in range(piece_words, len(starts), piece_words):
                    cuts.append(starts[first])
                    words.append(total + first)
            total += len(starts)
        cuts.append(end)
        words.append(total)
        start = end
    return cuts, words


def _limited(text: str, cuts: Sequence[int], limit: TokenLimit) -> tuple[list[int], list[int]]:
    """The cuts with more of them in units above the limit, and the number of tokens of each unit."""
    units = dict.fromkeys(pairwise(cuts), 0)
    fresh = list(units)
    while fresh:
        units |= zip(fresh, limit.count([text[start:end] for start, end in fresh]), strict=True)
        long = [(start, end) for start, end in fresh if units[start, end] > limit.tokens and end - start > 1]
        fresh = [piece for unit in long for piece in pairwise(_pieces(text, *unit, units.pop(unit), limit))]
    spans = sorted(units)
    return [0, *(end for _, end in spans)], [units[span] for span in spans]


def _pieces(text: str, start: int, end: int, tokens: int, limit: TokenLimit) -> list[int]:
    """Cuts that divide a unit of so many tokens evenly into pieces of the size of an overlap, between words if possible."""
    number = min(-(-tokens // (limit.overlap or limit.tokens)), end - start)
    words = [word.start() for word in WORD.finditer(text, start, end)]
    cuts = [start]
    for part in range(1, number):
        cut = start + (end - start) * part // number
        if cut > cuts[-1]:
            place = bisect_right(words, cut)
            around = words[max(0, place - 1) : place + 1]
            cuts.append(next((word for word in around if word > cuts[-1]), cut))
    return [*cuts, end]


def _passages(text: str, cuts: Sequence[int], measures: Sequence[_Measure]) -> Iterator[tuple[int, int]]:
    first, last = 0, len(cuts) - 1
    while True:
        ends = [bisect_right(before, before[first] + most) - 1 for before, most, _ in measures]
        after = max(min(ends), first + 1)
        yield cuts[first], _without_space(text, cuts[first], cuts[after])
        if after == last:
            return
        # Step back by the overlap, but leave room for the next unit.
        first = max(
            bisect_left(before, max(before[after] - overlap, before[after + 1] - most), first + 1, after)
            for before, most, overlap in measures
        )


def _without_space(text: str, start: int, end: int) -> int:
    while end > start and text[end - 1].isspace():
        end -= 1
    return end


def _without_leading_space(text: str, start: int, end: int) -> int:
    while start < end and text[start].isspace():
        start += 1
    return start


def _sentence_ends(text: str) -> Iterator[int]:
    for boundary in BOUNDARY.finditer(text):
        if text[boundary.start()] != "." or _ends_sentence(text, boundary.start(), boundary.end()):
            yield boundary.end()
    yield len(text)


def _ends_sentence(text: str, dot: int, after: int) -> bool:
    """Whether a full stop ends a sentence, rather than an abbreviation, an initial or the number of a list item."""
    before = text[max(0, dot - LONGEST_ABBREVIATION) : dot]
    if not before or before[-1] == ".":
        return True
    word = before.split()[-1].lstrip("([{\"'“‘«") if not before[-1].isspace() else ""
    if word.isdigit():
        return not before[: -len(word)].rstrip(" \t").endswith("\n") and len(word) < dot
    following, word = text[after : after + 1], word.lower()
    if word in BEFORE_LOWER_CASE:
        return following.isupper()
    if word in BEFORE_NUMBER:
        return not following.isdigit()
    # J. Smith, U.S. Army: an initial is more often followed by a name than by a sentence.
    initial = text[dot - 1].isupper() and (len(word) == 1 or word[-2:-1] == ".")
    return not initial and word not in NEVER_LAST


def passage_text(document: Document, start: int, end: int) -> str:
    """The text of a passage that encoders read: the document's title, then the passage."""
    text = document.text[start:end]
    return f"{document.title}\n{text}" if document.title else text

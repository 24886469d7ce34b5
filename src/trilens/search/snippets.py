"""Snippets: the sentences of a passage that match a query best, by the places that its lenses match.

Each lens has the same say: the weights of its matches are divided by their sum over the parts of the query. A sentence counts
each part once, at its best match, so that repeating one word does not make up for the others.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np

from trilens.kernels.array_types import Float64s
from trilens.lenses.parts import ROUNDING, Match, Span
from trilens.search.hits import Hit, Snippet
from trilens.text.passages import WORD, passage_text, split_sentences

MOST_SENTENCES = 3
LONGEST = 300
"""Characters of a snippet, unless its only sentence is longer."""
SENTENCE_WORDS = 40
"""Longer sentences are split."""
MARKED_SHARE = 0.2
"""Words are marked from this share of the weight of the best word of the passage."""


def make_snippet(hit: Hit, by_lens: Sequence[Sequence[Match]]) -> Snippet:
    """The snippet of a hit from the matches of each lens in its passage as it was encoded, which is with the title."""
    encoded = passage_text(hit.document, hit.start, hit.end)
    offset = len(encoded) - len(hit.passage)
    matches = _weighed(by_lens)
    start, end = _best_window(split_sentences(hit.passage, SENTENCE_WORDS), matches, offset)
    marked = _marked(encoded, matches)
    begin = offset + start
    return Snippet(
        hit.passage[start:end],
        hit.start + start,
        hit.start + end,
        tuple((first - begin, last - begin) for first, last in marked if begin <= first and last <= offset + end),
        tuple((first, last) for first, last in marked if last < offset),
    )


def _weighed(by_lens: Sequence[Sequence[Match]]) -> list[Match]:
    """The matches of all lenses; the weights of each lens sum to 1 over the parts, which get different numbers by lens."""
    weighed: list[Match] = []
    for lens, matches in enumerate(by_lens):
        total = sum(_best_of_parts(matches).values()) or 1.0
        weighed += (Match(match.part * len(by_lens) + lens, match.start, match.end, match.weight / total) for match in matches)
    return weighed


def _best_of_parts(matches: Iterable[Match]) -> dict[int, float]:
    """The weight of the best match of each part."""
    best: dict[int, float] = {}
    for match in matches:
        best[match.part] = max(best.get(match.part, 0.0), match.weight)
    return best


def _marked(text: str, matches: Sequence[Match]) -> list[Span]:
    """The words of the text with a large share of the weight; a word is marked as a whole."""
    weights: Float64s = np.zeros(len(text))
    for match in matches:
        weights[match.start : match.end] += match.weight
    words = [word.span() for word in WORD.finditer(text)]
    shares = [float(weights[start:end].max()) for start, end in words]
    least = MARKED_SHARE * max(shares, default=0.0)
    return [word for word, share in zip(words, shares, strict=True) if 0 < share >= least]


def _best_window(sentences: Sequence[Span], matches: Sequence[Match], offset: int) -> Span:
    """The span of the adjacent sentences that match best, the fewest and first among equals, filled up with those after."""
    found: list[list[Match]] = [[] for _ in sentences]
    ends = [offset + end for _, end in sentences]
    for match in matches:
        if match.start >= offset and (sentence := bisect_right(ends, match.start)) < len(sentences):
            found[sentence].append(match)
    best, most = (0, 1), -1.0
    for count in range(1, MOST_SENTENCES + 1):
        for first in range(len(sentences) - count + 1):
            fits = count == 1 or sentences[first + count - 1][1] - sentences[first][0] <= LONGEST
            gain = sum(_best_of_parts(chain(*found[first : first + count])).values()) if fits else -1.0
            if gain > most + ROUNDING:
                best, most = (first, count), gain
    return _filled(sentences, *best) if sentences else (0, 0)


def _filled(sentences: Sequence[Span], first: int, count: int) -> Span:
    """The span of these sentences and of those that follow them while there is room."""
    start, last = sentences[first][0], first + count - 1
    while last + 1 < min(first + MOST_SENTENCES, len(sentences)) and sentences[last + 1][1] - start <= LONGEST:
        last += 1
    return start, sentences[last][1]

"""Near-duplicate detection by shingles: the overlap of two texts in word trigrams."""

from functools import lru_cache

from trilens.datasets.answers import answer_tokens

WORDS = 3
CACHED_TEXTS = 16_384  # the same passages are candidates of many queries


@lru_cache(CACHED_TEXTS)
def shingles(text: str) -> frozenset[int]:
    """Hashes of all word trigrams of a text; a shorter text is one shingle."""
    tokens = answer_tokens(text)
    return frozenset(hash(tuple(tokens[start : start + WORDS])) for start in range(max(1, len(tokens) - WORDS + 1)))


def overlap(text: str, other: str) -> float:
    """The share of the shorter text's shingles that the longer text contains."""
    left, right = shingles(text), shingles(other)
    return len(left & right) / min(len(left), len(right))

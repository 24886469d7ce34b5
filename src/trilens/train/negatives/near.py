"""Near-duplicates: texts that share most of their runs of three words, or of which one lies within the other."""

from functools import lru_cache

from trilens.text.answers import answer_tokens

WORDS = 3
CACHED_TEXTS = 16_384  # the same passages are candidates of many queries


@lru_cache(CACHED_TEXTS)
def shingles(text: str) -> frozenset[int]:
    """Every run of three tokens; of a shorter text, the whole."""
    tokens = answer_tokens(text)
    return frozenset(hash(tuple(tokens[at : at + WORDS])) for at in range(max(1, len(tokens) - WORDS + 1)))


def overlap(one: str, other: str) -> float:
    """The share of the runs of the shorter text that the longer one has as well."""
    left, right = shingles(one), shingles(other)
    return len(left & right) / min(len(left), len(right))

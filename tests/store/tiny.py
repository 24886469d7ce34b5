"""A model as small as the tests: each word has vectors drawn by its name, mixed with those of its neighbours.

`TinyEncoder` is passed to `Collection.create` and `Collection.open`. Its vectors depend on the words alone, so processes agree
on them, and encoding takes next to no time.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import blake2b
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from trilens.encode.encoder import Encoded, Progress
from trilens.encode.folder import Head, ModelFolder, TermWeighting
from trilens.encode.model import ModelEncoder
from trilens.encode.models import bundled_models
from trilens.encode.reading import ReadTokens, Side
from trilens.encode.tokens import TokenPlace
from trilens.represent import Dense, Multi, Sparse
from trilens.store.config import DEFAULT_MODEL

DIM, WORDS = 32, 200
LENSES = ["bm25", "dense", "sparse", "tokens", "lexical", "multi"]
HEADS: tuple[Head, ...] = ("dense", "sparse", "lexical", "multi")
WEIGHTING = TermWeighting(
    idf=True, own_query=3.0, repeats=1.0, bag_added=0.5, sparse_length=1.0, lexical_length=0.5, bag_length=0.5
)
WORD = re.compile(r"\w+")


def real_lenses() -> list[str]:
    """The lenses that the bundled model can serve; bm25 alone where it is missing."""
    folder = bundled_models().get(DEFAULT_MODEL)
    return ["bm25", "tokens", *ModelFolder.open(folder).config.heads] if folder else ["bm25"]


def tiny_model(encoder: "TinyEncoder") -> ModelEncoder:
    """The model of a collection with this encoder."""
    return ModelEncoder("", encoder.heads, encoder.fingerprint, encoder=encoder)


class TinyEncoder:
    """Unit vectors; a text without words has no token, and its dense vector is that of the empty word."""

    def __init__(
        self, heads: Sequence[Head] = HEADS, weighting: TermWeighting | None = WEIGHTING, fingerprint: str = "tiny"
    ) -> None:
        """`weighting` None stands for the plain inner product."""
        self.heads = tuple(heads)
        self.term_weighting = weighting or TermWeighting()
        self.fingerprint = fingerprint
        self.bags = TinyBags(fingerprint)
        self._words: dict[int, str] = {}

    def encode_docs(
        self, texts: Sequence[str], progress: Progress | None = None, heads: Sequence[Head] | None = None
    ) -> Encoded:
        heads = self.heads if heads is None else heads
        assert set(heads) <= set(self.heads)
        words = [_words(text) for text in texts]
        self._words = {_number(word): word for text_words in words for word in text_words} | self._words
        offsets = np.cumsum([0, *(len(text_words) for text_words in words)])
        vectors = np.concatenate([np.zeros((0, DIM), np.float32), *(_in_context(text_words) for text_words in words)])
        tokens = np.array([_number(word) for text_words in words for word in text_words], np.int32)
        pooled = [vectors[a:b].sum(axis=0) if b > a else _vector("") for a, b in pairwise(offsets)]
        dense = np.array([vector / np.linalg.norm(vector) for vector in pooled], np.float32).reshape(len(texts), DIM)
        lexical = [{term: 1 + term % 7 / 8 for term in map(_term, text_words)} for text_words in words]
        if progress:
            progress(len(texts))
        return Encoded(
            dense=Dense(dense) if "dense" in heads else None,
            sparse=_weighted([_expanded(text_words) for text_words in words]) if "sparse" in heads else None,
            lexical=_weighted(lexical) if "lexical" in heads else None,
            bag=self.bags.encode_docs(texts).bag if "sparse" in heads else None,
            multi=Multi(offsets, vectors, tokens) if "multi" in heads else None,
        )

    def encode_queries(self, texts: Sequence[str], heads: Sequence[Head] | None = None) -> Encoded:
        return self.encode_docs(texts, heads=heads)

    def read_tokens(self, text: str, side: Side, kept: bool = False) -> ReadTokens:
        matches = list(WORD.finditer(text.lower()))
        self._words = {_number(match[0]): match[0] for match in matches} | self._words
        places: list[TokenPlace | None] = [TokenPlace(*match.span(), number) for number, match in enumerate(matches)]
        return ReadTokens(np.array([_number(match[0]) for match in matches], np.int64), places)

    def token_texts(self, ids: Sequence[int]) -> list[str]:
        return [self._words[number] for number in ids]

    def term_texts(self, terms: Sequence[int]) -> list[str]:
        """A word with each term among those that were read; the number of a term without one."""
        words = {number % WORDS: word for number, word in self._words.items()}
        return [words.get(term, str(term)) for term in terms]

    def token_terms(self, ids: NDArray[np.integer]) -> NDArray[np.integer]:
        return ids % WORDS

    def lexical_terms(self, ids: NDArray[np.int64]) -> NDArray[np.int32]:
        return (ids % WORDS).astype(np.int32)

    def doc_states(self, text: str) -> NDArray[np.float32] | None:
        words = _words(text)
        return _in_context(words) if words else None


class TinyBags:
    """The words of a text and their counts."""

    def __init__(self, fingerprint: str) -> None:
        self.fingerprint = fingerprint

    def encode_docs(self, texts: Sequence[str], progress: Progress | None = None) -> Encoded:
        if progress:
            progress(len(texts))
        return Encoded(bag=_weighted([dict(Counter(map(_term, _words(text)))) for text in texts]))

    def encode_queries(self, texts: Sequence[str]) -> Encoded:
        return self.encode_docs(texts)


def _words(text: str) -> list[str]:
    return WORD.findall(text.lower())


def _term(word: str) -> int:
    return _number(word) % WORDS


def _expanded(words: list[str]) -> dict[int, float]:
    """The weight of each word, and a third of it for the next word of the vocabulary."""
    weights: dict[int, float] = {}
    for term in map(_term, words):
        for near, share in ((term, 1.0), ((term + 1) % WORDS, 1 / 3)):
            weights[near] = max(weights.get(near, 0), share * (1 + term % 11 / 4))
    return weights


def _weighted(rows: Sequence[Mapping[int, float]]) -> Sparse:
    pairs = [pair for row in rows for pair in sorted(row.items())]
    terms, weights = np.array([term for term, _ in pairs], np.int32), np.array([weight for _, weight in pairs], np.float32)
    return Sparse(np.cumsum([0, *(len(row) for row in rows)]), terms, weights, WORDS)


def _in_context(words: list[str]) -> NDArray[np.float32]:
    own = np.array([_vector(word) for word in words], np.float32).reshape(len(words), DIM)
    mixed = own.copy()
    mixed[1:] += 0.3 * own[:-1]
    mixed[:-1] += 0.3 * own[1:]
    unit: NDArray[np.float32] = mixed / np.linalg.norm(mixed, axis=1, keepdims=True)
    return unit


@cache
def _vector(word: str) -> NDArray[np.float32]:
    return np.random.default_rng(_number(word)).normal(size=DIM).astype(np.float32)


def _number(word: str) -> int:
    return int.from_bytes(blake2b(word.encode(), digest_size=4).digest(), "little") >> 1

"""The lens `trigrams`: character trigrams of words, which match in spite of typing errors."""

import re
from collections import Counter
from collections.abc import Sequence

from trilens.encode.encoder import Encoded, Progress
from trilens.encode.folder import TermWeighting
from trilens.encode.reading import Side
from trilens.lenses.feedback import to_sparse
from trilens.lenses.lens import Colour, LensSetup, LensType
from trilens.lenses.parts import Span
from trilens.lenses.term_lens import OwnTerms, TermLens
from trilens.lenses.term_settings import SparseConfig, TermParams

ALPHABET = "_abcdefghijklmnopqrstuvwxyz0123456789"  # "_" marks the edges of a word
WORD = re.compile("[a-z0-9]+")


def trigrams(text: str) -> list[tuple[int, Span]]:
    """The trigrams of a text as term numbers, with their places."""
    pairs = []
    for word in WORD.finditer(text.lower()):
        padded = f"_{word[0]}_"
        for i in range(len(padded) - 2):
            first, second, third = (ALPHABET.index(character) for character in padded[i : i + 3])
            span = (word.start() + max(0, i - 1), min(word.end(), word.start() + i + 2))
            pairs.append(((first * len(ALPHABET) + second) * len(ALPHABET) + third, span))
    return pairs


class TrigramEncoder:
    """Encodes texts as trigram counts."""

    fingerprint = "trigrams-1"

    def encode_docs(self, texts: Sequence[str], progress: Progress | None = None) -> Encoded:
        """One sparse vector per text."""
        counts = [Counter(term for term, _ in trigrams(text)) for text in texts]
        return Encoded(sparse=to_sparse(counts, len(ALPHABET) ** 3))

    def encode_queries(self, texts: Sequence[str]) -> Encoded:
        """Queries are encoded like documents."""
        return self.encode_docs(texts)


class TrigramLens(TermLens):
    """Indexes trigrams; query terms are multiplied by their IDF, document vectors are normalised to length 1."""

    name = "trigrams"
    field = "sparse"

    def __init__(self, setup: LensSetup) -> None:
        super().__init__(setup.model, setup.config, TermWeighting(idf=True, sparse_length=1.0))
        self.encoder = TrigramEncoder()

    def term_texts(self, terms: Sequence[int]) -> list[str]:
        """Term numbers as trigrams: the three digits of a number in base 37."""
        base = len(ALPHABET)
        return [ALPHABET[term // base**2] + ALPHABET[term // base % base] + ALPHABET[term % base] for term in terms]

    def own_terms(self, text: str, side: Side) -> OwnTerms:
        """The places of each trigram, which explanations highlight."""
        spans: dict[int, list[Span]] = {}
        for term, span in trigrams(text):
            spans.setdefault(term, []).append(span)
        return OwnTerms(spans)


TRIGRAMS = LensType(
    name="trigrams",
    description="character trigrams, which match in spite of typing errors",
    colour=Colour("#8a6d3b", "#d9b36c"),
    make=TrigramLens,
    config=SparseConfig,
    params=TermParams,
)

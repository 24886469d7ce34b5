"""The vocabulary terms that a text activates in a model with a sparse head, each with its weight."""

import re
from collections.abc import Sequence
from dataclasses import replace

from trilens.encode.folder import Head
from trilens.encode.model import HeadsEncoder, TokenReader
from trilens.encode.reading import Side
from trilens.encode.tokens import CONTINUES
from trilens.errors import BadInput, BadModel
from trilens.explain.word import Word


def disentangle(encoder: HeadsEncoder, text: str, side: Side = "query", top: int | None = None) -> list[Word]:
    """The terms of a text, heaviest first: all of its vector, or the best `top`."""
    if "sparse" not in encoder.heads or not isinstance(encoder, TokenReader):
        raise BadModel(f"model {encoder.fingerprint} has no sparse head; expected a model with one")
    if not text.strip():
        raise BadInput("the text is empty; expected some words")
    heads: tuple[Head, ...] = ("sparse",)
    encoded = encoder.encode_queries([text], heads) if side == "query" else encoder.encode_docs([text], heads=heads)
    vector, bag = encoded.sparse, encoded.bag
    assert vector is not None and bag is not None
    own = set(bag.terms.tolist())
    pairs = sorted(zip(vector.terms.tolist(), vector.weights.tolist(), strict=True), key=lambda pair: (-pair[1], pair[0]))
    kept = pairs[:top]
    words = encoder.term_texts([term for term, _ in kept])
    return [Word(word, weight, term in own) for word, (term, weight) in zip(words, kept, strict=True)]


def whole_words(words: Sequence[Word], text: str) -> list[Word]:
    """The words without word pieces: the first piece of a split word of the text stands for that word, others are left out.

    A model that splits `delete` into `del` and `##ete` gives weights to both; readers know only the word.
    """
    parts = re.findall(r"\w+", text.lower())
    kept: dict[str, Word] = {}
    for word in words:
        if word.word.startswith(CONTINUES) or not re.search(r"\w", word.word):
            continue
        shown = word.word
        if word.own and shown not in parts:
            shown = next((part for part in parts if part.startswith(shown)), shown)
        kept.setdefault(shown, replace(word, word=shown))
    return list(kept.values())

"""A model as small as the tests: every word has vectors drawn by its name, mixed with those of its neighbours.

It stands in for `OnnxEncoder` where a model folder is named `tiny`; all other folders are run as they are. Its vectors depend
on the words alone, so processes agree on them, and encoding takes no time beside what is being tested.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trilens.encode.encoder import Encoded, Progress
from trilens.encode.folder import CONFIG_FILE, SPARSE_FILE, TOKENIZER_FILE, WEIGHT_FILES, Head, ModelFolder
from trilens.encode.models import bundled_models
from trilens.encode.onnx import OnnxEncoder
from trilens.represent import Dense, Multi, Sparse
from trilens.store import lenses
from trilens.store.config import DEFAULT_MODEL

DIM, WORDS = 32, 200
NAME = "tiny"
LENSES = ["bm25", "dense", "sparse", "tokens", "lexical", "multi"]
HEADS: tuple[Head, ...] = ("dense", "sparse", "lexical", "multi")
CONFIG = {
    "name": NAME,
    "heads": list(HEADS),
    "dim": DIM,
    "pooling": "mean",
    "query_prefix": "",
    "doc_prefix": "",
    "max_query_tokens": 64,
    "max_doc_tokens": 64,
    "multi": {"dim": DIM, "normalised": True, "skip_punctuation": True, "skip_special": True},
    "sparse": {"dim": WORDS, "shift": 0, "top": 8, "normalised": False},
    "lexical": {"dim": WORDS},
    "weighing": {
        "rarity": True,
        "own_query": 3.0,
        "repeats": 1.0,
        "bag_added": 0.5,
        "sparse_length": 1.0,
        "lexical_length": 0.5,
        "bag_length": 0.5,
    },
    "precision": "float32",
    "licence": "none",
    "source": "tests",
}


def make_model(folder: Path, **changes: object) -> str:
    """A model folder inside this one, to be given to `Collection.create`."""
    path = folder / NAME
    path.mkdir(parents=True)
    (path / CONFIG_FILE).write_text(json.dumps(CONFIG | changes))
    for name in (TOKENIZER_FILE, WEIGHT_FILES[-1], SPARSE_FILE):
        (path / name).write_text("stands here because a folder without it is refused")
    return str(path)


def real_lenses() -> list[str]:
    """Those that the bundled model can serve; bm25 alone where it is not there."""
    folder = bundled_models().get(DEFAULT_MODEL)
    return ["bm25", "tokens", *ModelFolder.open(folder).config.heads] if folder else ["bm25"]


def install() -> None:
    """Let collections of this process run the tiny model."""
    setattr(lenses, "OnnxEncoder", encoder_of)  # noqa: B010  mypy forbids the plain form


def encoder_of(path: Path, threads: int | None = None, heads: tuple[Head, ...] | None = None) -> "TinyEncoder | OnnxEncoder":
    """The tiny encoder or the real one."""
    return TinyEncoder(path, heads) if path.name == NAME else OnnxEncoder(path, threads, heads)


class TinyEncoder:
    """Unit vectors; a text without words has no token and the dense vector of nothing."""

    def __init__(self, path: Path, heads: tuple[Head, ...] | None) -> None:
        self.fingerprint = ModelFolder.open(path).fingerprint
        self._heads = heads or HEADS
        self.bags = TinyBags(self.fingerprint)

    def encode_docs(
        self, texts: Sequence[str], progress: Progress | None = None, heads: Sequence[Head] | None = None
    ) -> Encoded:
        asked = self._heads if heads is None else heads
        assert set(asked) <= set(self._heads)
        words = [re.findall(r"\w+", text.lower()) for text in texts]
        offsets = np.cumsum([0, *(len(some) for some in words)])
        vectors = np.concatenate([np.zeros((0, DIM), np.float32), *(_in_context(some) for some in words)])
        tokens = np.array([_number(word) for some in words for word in some], np.int32)
        pooled = [vectors[a:b].sum(axis=0) if b > a else _vector("") for a, b in pairwise(offsets)]
        dense = np.array([vector / np.linalg.norm(vector) for vector in pooled], np.float32).reshape(len(texts), DIM)
        if progress:
            progress(len(texts))
        return Encoded(
            dense=Dense(dense) if "dense" in asked else None,
            sparse=_weigh([_expanded(some) for some in words]) if "sparse" in asked else None,
            lexical=_weigh([{term: 1 + term % 7 / 8 for term in map(_term, some)} for some in words])
            if "lexical" in asked
            else None,
            bag=self.bags.encode_docs(texts).bag if "sparse" in asked else None,
            multi=Multi(offsets, vectors, tokens) if "multi" in asked else None,
        )

    def encode_queries(self, texts: Sequence[str], heads: Sequence[Head] | None = None) -> Encoded:
        return self.encode_docs(texts, heads=heads)


class TinyBags:
    """The different words of a text, each with how often it stands there."""

    def __init__(self, fingerprint: str) -> None:
        self.fingerprint = fingerprint

    def encode_docs(self, texts: Sequence[str], progress: Progress | None = None) -> Encoded:
        if progress:
            progress(len(texts))
        return Encoded(bag=_weigh([dict(Counter(map(_term, re.findall(r"\w+", text.lower())))) for text in texts]))

    def encode_queries(self, texts: Sequence[str]) -> Encoded:
        return self.encode_docs(texts)


def _term(word: str) -> int:
    return _number(word) % WORDS


def _expanded(words: list[str]) -> dict[int, float]:
    """Each word with a weight of its own, and a third of that for the word after it in the vocabulary."""
    weights: dict[int, float] = {}
    for term in map(_term, words):
        for near, share in ((term, 1.0), ((term + 1) % WORDS, 1 / 3)):
            weights[near] = max(weights.get(near, 0), share * (1 + term % 11 / 4))
    return weights


def _weigh(rows: Sequence[Mapping[int, float]]) -> Sparse:
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

"""Untrained heads, fitted to the token states of texts: they let every lens run, and are what training has to beat."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trilens.encode.folder import ModelConfig, SparseHead
from trilens.export.heads import Heads, PerToken, Projection, Vocabulary
from trilens.export.rounding import Floats
from trilens.export.vocabulary import STATE_LEVELS
from trilens.index.weighing import rarity

FIT_TOKENS = 2000
CLIPS = (1.0, 0.8, 0.65, 0.5, 0.4, 0.3, 0.2)
# Strength of the ridge, in units of the mean square of the states: there are more tokens than dimensions, but not many more.
RIDGE = 0.01
MATCH_RIDGE = 0.01  # in units of the mean spread: directions that no token has must not become the longest
SOFTPLUS_ONE = math.log(math.e - 1)  # softplus of it is 1


def fit_heads(
    config: ModelConfig, states: list[Floats], ids: list[list[int]], special: set[int], words: Floats, epsilon: float
) -> Heads:
    """All heads that `config` describes, fitted to the states and tokens of texts.

    `words` are the word embeddings of the backbone, `epsilon` that of its normalisations.
    """
    described, multi = config.multi, None
    if described is not None:
        matrix = principal(states, described.dim)
        weigh = alike(len(matrix)) if described.weighted else None
        multi = Projection(matrix, described.normalised, None, described.closing_mean, weigh)
    return Heads(
        multi=multi,
        sparse=fit_vocabulary(config.sparse, states, words, epsilon) if config.sparse else None,
        lexical=fit_lexical(states, ids, special) if config.lexical else None,
    )


def principal(states: Iterable[Floats], dims: int) -> Floats:
    """The projection (hidden, dims) that keeps most of the inner products between the token states of the texts."""
    vectors = np.linalg.eigh(_moments(states))[1][:, ::-1][:, :dims]
    return _signed(vectors)


def matching(pairs: Iterable[tuple[Floats, Floats]], passages: Iterable[Floats], dims: int) -> Floats:
    """The projection (hidden, dims) that tells the tokens which answer a query from the tokens of other passages.

    `pairs` are the token states of queries and of passages that answer them. A query token and the nearest token of its passage
    are a match; kept are the directions in which matches agree most compared with how much the tokens of queries and
    `passages` spread in them at all (a generalised eigenvalue problem). Each counts by that agreement.
    """
    asked, met = zip(*(_matches(unit_length(query), unit_length(passage)) for query, passage in pairs), strict=True)
    queries, answers = np.concatenate(asked).astype(np.float64), np.concatenate(met)
    agreement = queries.T @ answers / len(queries)
    spread = (_moments(passages) + queries.T @ queries / len(queries)) / 2
    values, vectors = np.linalg.eigh(spread + MATCH_RIDGE * np.trace(spread) / len(spread) * np.eye(len(spread)))
    evened = (vectors / np.sqrt(values)) @ vectors.T
    values, vectors = np.linalg.eigh(evened @ (agreement + agreement.T) @ evened)
    found = evened @ (vectors[:, ::-1][:, :dims] * np.sqrt(np.maximum(values[::-1][:dims], 0)))
    return _signed(found * math.sqrt(dims / np.square(found).sum()))  # as large as directions of length 1 would be


def _matches(query: Floats, passage: Floats) -> tuple[Floats, Floats]:
    """Each token of a query, and the nearest one of the passage."""
    return query, passage[(query @ passage.T).argmax(axis=1)]


def _moments(states: Iterable[Floats]) -> NDArray[np.float64]:
    """The mean product of every two dimensions over all tokens, each at length 1."""
    total, count = np.zeros(()), 0
    for tokens in map(unit_length, states):
        total, count = total + tokens.T.astype(np.float64) @ tokens, count + len(tokens)
    return total / count


def _signed(vectors: NDArray[np.float64]) -> Floats:
    """Columns with their largest number above zero: eigenvectors are known up to their sign."""
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])])
    return np.asarray(vectors * signs, np.float32)


def alike(hidden: int) -> PerToken:
    """Weights of 1 for all tokens of a query."""
    return PerToken(np.zeros((hidden, 1), np.float32), np.array([SOFTPLUS_ONE], np.float32))


def unit_length(rows: Floats) -> Floats:
    """Each row at length 1."""
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def fit_vocabulary(described: SparseHead, states: list[Floats], words: Floats, epsilon: float) -> Vocabulary:
    """The layer normalisation of the `sparse` head.

    Less their mean, because its product is the same for all texts: a few words would be active everywhere. Deviation 1 of
    the products, because elu(x) + 1 tells values below −3 no longer apart.
    """
    rows = standardise(states, epsilon)
    mean = rows.mean(axis=0)
    sample = thin_rows(rows - mean)
    words = dimensions(described, words)
    gain = 1 / (sample @ words.T).std()
    clip = choose_clip(sample * gain, words)
    return Vocabulary(described, np.full(words.shape[1], gain, np.float32), -mean * gain, epsilon, clip)


def clip_vocabulary(head: Vocabulary, states: list[Floats], words: Floats) -> Vocabulary:
    """A trained head with the cut that suits these states."""
    rows = thin_rows(np.concatenate(states))
    if head.transform is not None:
        rows = gelu(rows @ head.transform[0] + head.transform[1])
    rows = standardise([rows], head.epsilon) * head.scale + head.shift
    return replace(head, clip=choose_clip(rows, dimensions(head.described, words)))


def gelu(rows: Floats) -> Floats:
    """x · Φ(x), with the exact Φ."""
    below = 0.5 + 0.5 * np.vectorize(math.erf)(rows / math.sqrt(2))
    return np.asarray(rows * below, np.float32)


def standardise(states: list[Floats], epsilon: float) -> Floats:
    """The states of all texts, each with mean 0 and deviation 1."""
    every = np.concatenate(states)
    spread = np.sqrt(every.var(axis=1, keepdims=True) + epsilon)
    rows: Floats = (every - every.mean(axis=1, keepdims=True)) / spread
    return rows


def thin_rows(rows: Floats) -> Floats:
    """Some of the rows, evenly spaced."""
    return rows[:: max(1, len(rows) // FIT_TOKENS)]


def dimensions(described: SparseHead, words: Floats) -> Floats:
    """The embeddings of the words that are dimensions of the head."""
    return words[described.shift : described.shift + described.dim]


def choose_clip(rows: Floats, words: Floats) -> float:
    """Where to cut the states before they become 8 bits: the largest ones are rare, and the rest gets finer steps."""
    exact, largest = rows @ words.T, float(np.abs(rows).max())
    tried = []
    for clip in (largest * part for part in CLIPS):
        step = clip / STATE_LEVELS
        rounded = np.rint(np.clip(rows, -clip, clip) / step) * step
        tried.append((float(np.square(rounded.astype(np.float32) @ words.T - exact).sum()), clip))
    return min(tried)[1]


def fit_lexical(states: list[Floats], ids: list[list[int]], special: set[int]) -> PerToken:
    """The linear layer that comes nearest to BM25's inverse document frequency of each token among the texts."""
    found = Counter(token for row in ids for token in set(row))
    every: NDArray[np.int64] = np.concatenate([np.array(row) for row in ids])
    rare = rarity(np.array([found[token] for token in every.tolist()]), len(ids))
    own = ~np.isin(every, list(special))
    rows, wanted = np.concatenate(states)[own].astype(np.float64), rare[own]
    middle, level = rows.mean(axis=0), wanted.mean()
    rows = rows - middle
    moments = rows.T @ rows
    weight = np.linalg.solve(
        moments + RIDGE * np.trace(moments) / len(moments) * np.eye(len(moments)), rows.T @ (wanted - level)
    )
    return PerToken(np.asarray(weight[:, None], np.float32), np.asarray([level - middle @ weight], np.float32))

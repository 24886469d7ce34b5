"""Closed-form fits of untrained heads to token states: a baseline for training that makes every lens usable."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from trilens.encode.folder import ModelConfig, SparseHead
from trilens.export.heads import HeadWeights, MultiWeights, PerToken, SparseWeights
from trilens.export.sparse_graph import STATE_LEVELS
from trilens.kernels.array_types import Float32s, Float64s, Int64s
from trilens.lenses.bm25 import idf

FIT_TOKENS = 2000
CLIPS = (1.0, 0.8, 0.65, 0.5, 0.4, 0.3, 0.2)
# Ridge regularisation, relative to the mean square of the states: there are only few more tokens than dimensions.
RIDGE = 0.01
MATCH_RIDGE = 0.01  # relative to the mean spread: directions without any tokens must not dominate
SOFTPLUS_ONE = math.log(math.e - 1)  # softplus of it is 1


def fit_heads(
    config: ModelConfig, states: list[Float32s], ids: list[list[int]], special: set[int], words: Float32s, epsilon: float
) -> HeadWeights:
    """Fit all heads of `config` to the states and token ids of texts.

    `words` are the word embeddings of the backbone, `epsilon` that of its normalisations.
    """
    described, multi = config.multi, None
    if described is not None:
        matrix = principal(states, described.dim)
        weigh = equal_weights(len(matrix)) if described.weighted else None
        multi = MultiWeights(matrix, described.normalised, None, described.closing_mean, weigh)
    return HeadWeights(
        multi=multi,
        sparse=fit_vocabulary(config.sparse, states, words, epsilon) if config.sparse else None,
        lexical=fit_lexical(states, ids, special) if config.lexical else None,
    )


def principal(states: Iterable[Float32s], dims: int) -> Float32s:
    """The projection (hidden, dims) to the principal components of the normalised token states."""
    vectors = np.linalg.eigh(_moments(states))[1][:, ::-1][:, :dims]
    return _signed(vectors)


def matching(pairs: Iterable[tuple[Float32s, Float32s]], passages: Iterable[Float32s], dims: int) -> Float32s:
    """The projection (hidden, dims) that separates the tokens that match a query from tokens of other passages.

    `pairs` are the token states of queries and of relevant passages. Each query token matches the nearest token of its
    passage. The projection keeps the directions with the highest covariance of matches relative to the variance of all tokens
    of queries and `passages` (a generalised eigenvalue problem), scaled by the square root of that ratio.
    """
    query_tokens, matches = zip(*(_matches(unit_length(query), unit_length(passage)) for query, passage in pairs), strict=True)
    queries, answers = np.concatenate(query_tokens).astype(np.float64), np.concatenate(matches)
    agreement = queries.T @ answers / len(queries)
    spread = (_moments(passages) + queries.T @ queries / len(queries)) / 2
    values, vectors = np.linalg.eigh(spread + MATCH_RIDGE * np.trace(spread) / len(spread) * np.eye(len(spread)))
    whitening = (vectors / np.sqrt(values)) @ vectors.T
    values, vectors = np.linalg.eigh(whitening @ (agreement + agreement.T) @ whitening)
    projection = whitening @ (vectors[:, ::-1][:, :dims] * np.sqrt(np.maximum(values[::-1][:dims], 0)))
    return _signed(projection * math.sqrt(dims / np.square(projection).sum()))  # the scale of orthonormal columns


def _matches(query: Float32s, passage: Float32s) -> tuple[Float32s, Float32s]:
    """Each token of a query, and the nearest token of the passage."""
    return query, passage[(query @ passage.T).argmax(axis=1)]


def _moments(states: Iterable[Float32s]) -> Float64s:
    """The second moments (hidden, hidden) of all tokens, normalised to unit length."""
    total, count = np.zeros(()), 0
    for tokens in map(unit_length, states):
        total, count = total + tokens.T.astype(np.float64) @ tokens, count + len(tokens)
    return total / count


def _signed(vectors: Float64s) -> Float32s:
    """Columns with a positive largest entry, because eigenvectors are determined up to sign."""
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])])
    return np.asarray(vectors * signs, np.float32)


def equal_weights(hidden: int) -> PerToken:
    """Weight 1 for all query tokens."""
    return PerToken(np.zeros((hidden, 1), np.float32), np.array([SOFTPLUS_ONE], np.float32))


def unit_length(rows: Float32s) -> Float32s:
    """Rows with unit length."""
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def fit_vocabulary(described: SparseHead, states: list[Float32s], words: Float32s, epsilon: float) -> SparseWeights:
    """The layer normalisation of the `sparse` head.

    The mean is subtracted, because it would activate the same few words for all texts. Products have standard deviation 1,
    because elu(x) + 1 is flat below −3.
    """
    rows = standardise(states, epsilon)
    mean = rows.mean(axis=0)
    sample = thin_rows(rows - mean)
    words = dimensions(described, words)
    gain = 1 / (sample @ words.T).std()
    clip = choose_clip(sample * gain, words)
    return SparseWeights(described, np.full(words.shape[1], gain, np.float32), -mean * gain, epsilon, clip)


def clip_vocabulary(head: SparseWeights, states: list[Float32s], words: Float32s) -> SparseWeights:
    """A trained head with the clipping that suits these states."""
    rows = thin_rows(np.concatenate(states))
    if head.transform is not None:
        rows = gelu(rows @ head.transform[0] + head.transform[1])
    rows = standardise([rows], head.epsilon) * head.scale + head.shift
    return replace(head, clip=choose_clip(rows, dimensions(head.described, words)))


def gelu(rows: Float32s) -> Float32s:
    """x · Φ(x), with the exact Φ."""
    below = 0.5 + 0.5 * np.vectorize(math.erf)(rows / math.sqrt(2))
    return np.asarray(rows * below, np.float32)


def standardise(states: list[Float32s], epsilon: float) -> Float32s:
    """The layer-normalised states of all texts."""
    all_states = np.concatenate(states)
    spread = np.sqrt(all_states.var(axis=1, keepdims=True) + epsilon)
    rows: Float32s = (all_states - all_states.mean(axis=1, keepdims=True)) / spread
    return rows


def thin_rows(rows: Float32s) -> Float32s:
    """Evenly spaced rows."""
    return rows[:: max(1, len(rows) // FIT_TOKENS)]


def dimensions(described: SparseHead, words: Float32s) -> Float32s:
    """The embeddings of the words that have a dimension in the head."""
    return words[described.shift : described.shift + described.dim]


def choose_clip(rows: Float32s, words: Float32s) -> float:
    """Where to clip the states before rounding to 8 bits: large values are rare, and clipping refines the other steps."""
    exact, largest = rows @ words.T, float(np.abs(rows).max())
    candidates = []
    for clip in (largest * part for part in CLIPS):
        step = clip / STATE_LEVELS
        rounded = np.rint(np.clip(rows, -clip, clip) / step) * step
        candidates.append((float(np.square(rounded.astype(np.float32) @ words.T - exact).sum()), clip))
    return min(candidates)[1]


def fit_lexical(states: list[Float32s], ids: list[list[int]], special: set[int]) -> PerToken:
    """The linear layer nearest to BM25's inverse document frequency of each token among the texts (ridge regression)."""
    frequencies = Counter(token for row in ids for token in set(row))
    all_ids: Int64s = np.concatenate([np.array(row) for row in ids])
    token_idf = idf(np.array([frequencies[token] for token in all_ids.tolist()]), len(ids))
    own = ~np.isin(all_ids, list(special))
    rows, targets = np.concatenate(states)[own].astype(np.float64), token_idf[own]
    centre, level = rows.mean(axis=0), targets.mean()
    rows = rows - centre
    moments = rows.T @ rows
    weight = np.linalg.solve(
        moments + RIDGE * np.trace(moments) / len(moments) * np.eye(len(moments)), rows.T @ (targets - level)
    )
    return PerToken(np.asarray(weight[:, None], np.float32), np.asarray([level - centre @ weight], np.float32))

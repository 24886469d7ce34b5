"""Random quantised tokens, with slow reference implementations of the kernels that search them."""

from dataclasses import dataclass

import numpy as np

from trilens.kernels.array_types import AnyArray, Float32s, Float64s, Int16s, Mask
from trilens.kernels.lanes import LANES, WIDTH
from trilens.kernels.multi import CentroidLists, CentroidScores, TokenQuery, score_centroids
from trilens.kernels.residual import CodeTables, TokenCodes
from trilens.kernels.token_lists import count_lists, fill_lists

DIMS, GROUPS, CENTROIDS, ROWS = 32, 9, 70, 60


def frozen(array: AnyArray) -> AnyArray:
    """Make an array read-only, like a memory-mapped file."""
    array.setflags(write=False)
    return array


class TokenRows:
    """Rows of random codes near random centroids; two rows have no token, one has many."""

    def __init__(self, seed: int = 0, normalised: bool = True, bits: int = 4, dims: int = DIMS) -> None:
        random = np.random.default_rng(seed)
        self.bits, self.dims = bits, dims
        self.centroids = random.normal(size=(CENTROIDS, dims)).astype(np.float32)
        if normalised:
            self.centroids /= np.linalg.norm(self.centroids, axis=1, keepdims=True)
        cuts = np.sort(random.choice(np.arange(1, CENTROIDS), GROUPS - 1, replace=False))
        self.group_ptr = np.concatenate([[0], cuts, [CENTROIDS]]).astype(np.int64)
        self.leaders = np.add.reduceat(self.centroids, self.group_ptr[:-1], axis=0)
        self.leaders /= np.linalg.norm(self.leaders, axis=1, keepdims=True)
        lengths = random.integers(0, 7, ROWS)
        lengths[[3, 17]], lengths[5] = 0, 1100  # more tokens than the initial buffer of `rerank`
        self.offsets = frozen(np.concatenate([[0], np.cumsum(lengths)]))
        tokens = int(self.offsets[-1])
        self.nearest = frozen(random.integers(0, CENTROIDS, tokens).astype(np.uint16))
        residuals = frozen(random.integers(0, 256, (tokens, dims * bits // 8)).astype(np.uint8))
        size_codes, stretch_codes = (frozen(random.integers(0, 256, tokens).astype(np.uint8)) for _ in range(2))
        self.codes = TokenCodes(self.nearest, residuals, size_codes, stretch_codes)
        self.steps = frozen(random.uniform(1e-4, 2e-3, dims).astype(np.float32))
        sizes = frozen(np.geomspace(0.1, 3, 256).astype(np.float32))
        stretches = np.geomspace(0.7, 1.3, 256).astype(np.float32)
        levels = np.zeros(16, np.int8)
        levels[: 2**bits] = np.linspace(-127, 127, 2**bits)
        self.tables = CodeTables(self.centroids, self.steps, sizes, stretches, frozen(levels))
        list_ptr = count_lists(self.offsets, self.nearest, CENTROIDS)
        list_rows = np.empty(list_ptr[-1], np.int32)
        fill_lists(self.offsets, self.nearest, list_ptr, list_rows)
        self.lists = CentroidLists(frozen(list_ptr), frozen(list_rows))

    def lists_of(self, known: int) -> CentroidLists:
        """The lists of a segment that was written when only the first `known` centroids existed."""
        return CentroidLists(frozen(self.lists.ptr[: known + 1].copy()), self.lists.rows)

    def decode(self) -> Float64s:
        rest = self.tables.sizes[self.codes.sizes][:, None] * self.steps * self.level_of_each()
        stretches = self.tables.stretches[self.codes.stretches][:, None]
        decoded: Float64s = stretches * (self.centroids[self.nearest] + rest)
        return decoded

    def level_of_each(self) -> Float64s:
        """Byte i holds the dimensions i, i + bytes, i + 2 bytes …, the first in its lowest bits."""
        planes = [self.codes.residuals >> np.uint8(shift) & np.uint8(2**self.bits - 1) for shift in range(0, 8, self.bits)]
        return self.tables.levels[np.concatenate(planes, axis=1)].astype(np.float64)

    def similarities(self, query: Float32s) -> Float64s:
        """Of all query tokens with all tokens, with a 16-bit query for the residuals (m, tokens)."""
        steps, units = quantised(query * self.steps)
        products = steps.astype(np.float64) @ self.level_of_each().T
        rest = self.tables.sizes[self.codes.sizes] * units[:, None] * products
        stretches = self.tables.stretches[self.codes.stretches]
        similarities: Float64s = stretches * (query @ self.centroids[self.nearest].T + rest)
        return similarities

    def span(self, row: int) -> slice:
        return slice(self.offsets[row], self.offsets[row + 1])

    def maxsim(self, query: Float32s) -> Float64s:
        """MaxSim of all rows over decoded vectors."""
        similarities = query.astype(np.float64) @ self.decode().T
        return np.array([similarities[:, self.span(row)].max(axis=1, initial=-np.inf).sum() for row in range(ROWS)])


def quantised(query: Float32s) -> tuple[Int16s, Float32s]:
    """Vectors as integers, and the unit of each."""
    units = (np.abs(query).max(axis=1) / 20_000).astype(np.float32)
    return np.rint(query / units[:, None]).astype(np.int16), units


def padded_columns(query: Float32s) -> Float32s:
    columns = np.zeros((query.shape[1], -(-len(query) // WIDTH) * WIDTH), np.float32)
    columns[:, : len(query)] = query.T
    return columns


def random_query(tokens: int, seed: int = 1, length: float = 1, dims: int = DIMS) -> Float32s:
    vectors = np.random.default_rng(seed).normal(size=(tokens, dims))
    unit: Float32s = (length * vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return unit


@dataclass
class ProbedTokens:
    """A query with its centroid scores."""

    query: TokenQuery
    scores: CentroidScores
    leader_scores: Float32s

    @property
    def vectors(self) -> Float32s:
        return self.query.vectors


def probe(rows: TokenRows, vectors: Float32s, reach: int, probes: int) -> ProbedTokens:
    tokens = len(vectors)
    leader_scores = vectors @ np.ascontiguousarray(rows.leaders.T)
    scores = CentroidScores(
        np.full((CENTROIDS, tokens), -np.inf, np.float32),
        np.zeros((CENTROIDS, -(-tokens // LANES) * LANES), np.uint8),
        np.empty(tokens, np.float32),
        np.empty((tokens, probes), np.uint32),
        np.empty((tokens, probes), np.float32),
    )
    score_centroids(vectors, leader_scores, reach, rows.group_ptr, rows.centroids, scores)
    query = TokenQuery(vectors, *quantised(vectors * rows.steps), padded_columns(vectors))
    return ProbedTokens(query, scores, leader_scores)


def random_mask(seed: int, share: float) -> Mask:
    return np.random.default_rng(seed).random(ROWS) < share

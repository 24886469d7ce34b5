"""The codebook of the multi lens: centroids in two levels, and the tables that encode and decode residuals.

It is a list of immutable *pages*, each trained on a batch of tokens. The first page also determines the tables; later pages add
centroids for documents unlike those before. Every centroid belongs to a group of neighbours with a leader, so that the nearest
centroid of a token is searched only among the members of its nearest leaders.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from trilens.errors import CollectionDamaged
from trilens.kernels.array_types import Float32s, Float64s, Int8s, Int64s, Mask, UInt8s, UInt32s, Unsigned
from trilens.kernels.residual import CodeTables, TokenCodes, decode_tokens, encode_residuals
from trilens.represent.arrays import save_arrays
from trilens.represent.stored import StoredArrays

GROUPS_SEARCHED = 12  # groups searched for the nearest centroid of a token
BLOCK_TOKENS = 8192
ROUNDS = 6
SAMPLES_PER_CENTROID = 32
FITTED_TOKENS = 16_384
LEVEL_SAMPLES = 500_000
FEW_TOKENS = 2048
SMALLEST_SIZE, SIZE_REACH, ROOM = 1e-3, 1000, 4  # sizes from a thousandth of the largest training size to four times it
STRETCH_REACH, MOST_LEVEL = 1.3, 127


@dataclass(frozen=True, eq=False, slots=True)
class Page:
    """Centroids trained on one batch: group g has the leader `leaders[g]` and the centroids `group_ptr[g]:group_ptr[g + 1]`.

    `error` is the mean squared error of held-out training tokens. If `normalised`, training vectors had length 1 and decoded
    ones get it too. `spread`, `steps`, `sizes`, `cutoffs` and `levels` (see kernels/residual.py) are those of the first page.
    """

    leaders: Float32s
    group_ptr: Int64s
    centroids: Float32s
    spread: Float32s
    steps: Float32s
    sizes: Float32s
    cutoffs: Float32s
    levels: Int8s
    error: Float32s
    normalised: Mask

    def save(self, folder: Path) -> None:
        """Write the arrays."""
        save_arrays(folder, **{name: getattr(self, name) for name in PAGE_ARRAYS})

    @staticmethod
    def open(folder: Path) -> "Page":
        """Memory-map the arrays."""
        arrays = StoredArrays(folder)
        centroids = arrays.open("centroids", np.float32, (None, None))
        count, dim = centroids.shape
        leaders = arrays.floats("leaders", (None, dim))
        group_ptr = arrays.pointers("group_ptr", count, len(leaders))
        arrays.require(count > 0 and bool((np.diff(group_ptr) > 0).all()), "group_ptr", "an empty group", "none")
        cutoffs = arrays.floats("cutoffs", (None,))
        bits = {1: 1, 3: 2, 15: 4}.get(len(cutoffs), 0)
        whole = bits > 0 and dim > 0 and dim * bits % 128 == 0
        arrays.require(
            whole, "cutoffs", f"{len(cutoffs)} values for {dim} dimensions", "1, 3 or 15, so that codes fill 16 bytes"
        )
        return Page(
            leaders,
            group_ptr,
            centroids,
            arrays.floats("spread", (dim,)),
            arrays.floats("steps", (dim,)),
            arrays.floats("sizes", (256,)),
            cutoffs,
            arrays.open("levels", np.int8, (16,)),
            arrays.floats("error", ()),
            arrays.open("normalised", np.bool_, ()),
        )


PAGE_ARRAYS = ("leaders", "group_ptr", "centroids", "spread", "steps", "sizes", "cutoffs", "levels", "error", "normalised")


@dataclass(frozen=True, eq=False, slots=True)
class Codes:
    """Quantised tokens: see `TokenCodes`."""

    nearest: Unsigned
    residuals: UInt8s
    sizes: UInt8s
    stretches: UInt8s

    def __len__(self) -> int:
        return len(self.nearest)

    @property
    def arrays(self) -> TokenCodes:
        """The arrays as kernels take them."""
        return TokenCodes(self.nearest, self.residuals, self.sizes, self.stretches)

    def slice(self, start: int, end: int) -> "Codes":
        """The tokens from start to end."""
        return Codes(*(array[start:end] for array in self.arrays))


CODE_ARRAYS = TokenCodes._fields


class Codebook:
    """The centroids and tables of all pages."""

    def __init__(self, pages: Sequence[Page]) -> None:
        self.pages = pages
        first = pages[0]
        dims = {page.centroids.shape[1] for page in pages}
        if len(dims) > 1:
            raise CollectionDamaged(
                f"the pages of the codebook have {sorted(dims)} dimensions; expected one: run `trilens check`"
            )
        self.normalise = bool(first.normalised)
        self.spread, self.steps, self.sizes = first.spread, first.steps, first.sizes
        self.cutoffs, self.levels = first.cutoffs, first.levels
        self.stretches = np.ones(256, np.float32)
        if self.normalise:
            self.stretches = np.geomspace(1 / STRETCH_REACH, STRETCH_REACH, 256).astype(np.float32)

    @cached_property
    def leaders(self) -> Float32s:
        """The leaders of all groups."""
        return np.concatenate([page.leaders for page in self.pages])

    @cached_property
    def leader_columns(self) -> Float32s:
        """The leaders, transposed and contiguous."""
        return np.ascontiguousarray(self.leaders.T)

    @cached_property
    def centroids(self) -> Float32s:
        """The centroids of all groups, group by group."""
        return np.concatenate([page.centroids for page in self.pages])

    @cached_property
    def directions(self) -> Float32s:
        """The centroids normalised to length 1: the nearest centroid is the one with the most similar direction."""
        return self.centroids if self.normalise else _unit(self.centroids)

    @cached_property
    def group_ptr(self) -> Int64s:
        """The first centroid of each group."""
        sizes = [np.diff(page.group_ptr) for page in self.pages]
        return np.concatenate([[0], np.cumsum(np.concatenate(sizes))])

    @cached_property
    def tables(self) -> CodeTables:
        """What codes stand for, as kernels take it."""
        return CodeTables(self.centroids, self.steps, self.sizes, self.stretches, self.levels)

    @property
    def dim(self) -> int:
        """Dimensions of a vector."""
        return int(self.centroids.shape[1])

    @property
    def bits(self) -> int:
        """Bits per dimension of a residual."""
        return int(np.log2(len(self.cutoffs) + 1))

    @property
    def error(self) -> float:
        """The mean squared error at training of the best page."""
        return min(float(page.error) for page in self.pages)

    def nearest(self, vectors: Float32s) -> Unsigned:
        """The centroid of each token: the one with the most similar direction in the groups searched."""
        centroids = nearest_centroids(vectors, self.leaders, self.group_ptr, self.directions)
        return centroids.astype(np.uint16) if len(self.centroids) <= 1 << 16 else centroids

    def encode(self, vectors: Float32s) -> tuple[Codes, Float32s]:
        """The codes of token vectors, and the squared error of each."""
        codes = Codes(
            self.nearest(vectors),
            np.zeros((len(vectors), self.dim * self.bits // 8), np.uint8),
            np.empty(len(vectors), np.uint8),
            np.empty(len(vectors), np.uint8),
        )
        errors = np.empty(len(vectors), np.float32)
        encode_residuals(vectors, self.tables, self.spread, self.cutoffs, codes.arrays, errors)
        return codes, errors

    def decode(self, codes: Codes) -> Float32s:
        """The vectors that codes stand for."""
        vectors = np.empty((len(codes), self.dim), np.float32)
        decode_tokens(codes.nearest, codes.residuals, codes.sizes, codes.stretches, *self.tables, vectors)
        return vectors


def centroid_count(tokens: int) -> int:
    """The number of centroids for a number of tokens n: 2^⌊log2(16 √n)⌋, as in PLAID, and at most n / 4."""
    return 1 << max(0, int(np.log2(max(1.0, min(16 * tokens**0.5, tokens / 4)))))


def train_page(vectors: Float32s, count: int, bits: int, normalised: bool, seed: int, older: Codebook | None = None) -> Page:
    """Train a page with `count` centroids; its tables are those of the `older` codebook, or fitted if there is none."""
    random = np.random.default_rng(seed)
    # Training tokens are nearer to the centroids than other tokens, so the tables are fitted to held-out ones.
    held_out = np.zeros(len(vectors), np.bool_)
    held_out[9::10] = True
    sample = _draw(vectors[~held_out], count * SAMPLES_PER_CENTROID, random)
    leaders, group_ptr, centroids = _grow_groups(sample, min(count, len(sample)), seed)
    fitted = _draw(vectors[held_out] if held_out.any() else vectors, FITTED_TOKENS, random)
    nearest = nearest_centroids(fitted, leaders, group_ptr, centroids)
    if not normalised:
        centroids = _mean_lengths(sample, nearest_centroids(sample, leaders, group_ptr, centroids), centroids)
    if older is None:
        tables = _fit_tables(fitted, fitted - centroids[nearest], bits)
    else:
        tables = (older.spread, older.steps, older.sizes, older.cutoffs, older.levels)
    flag = np.array(normalised)
    page = Page(leaders, group_ptr, centroids, *tables, np.zeros((), np.float32), flag)
    errors = Codebook([page]).encode(fitted)[1]
    return Page(leaders, group_ptr, centroids, *tables, np.array(errors.mean()), flag)


def _draw(vectors: Float32s, most: int, random: np.random.Generator) -> Float32s:
    """A random sample of at most `most` vectors, in their original order."""
    if len(vectors) <= most:
        return np.ascontiguousarray(vectors, np.float32)
    return np.ascontiguousarray(vectors[np.sort(random.choice(len(vectors), most, replace=False))], np.float32)


def _mean_lengths(vectors: Float32s, nearest: Unsigned, directions: Float32s) -> Float32s:
    """Scale each direction to the mean projection of its vectors onto it."""
    projections = np.einsum("td,td->t", vectors, directions[nearest])
    count = np.bincount(nearest, minlength=len(directions))
    means = np.bincount(nearest, projections, minlength=len(directions)) / np.maximum(count, 1)
    lengths = np.where(count > 0, means, projections.mean())
    return np.asarray(directions * lengths[:, None], np.float32)


def _grow_groups(sample: Float32s, count: int, seed: int) -> tuple[Float32s, Int64s, Float32s]:
    """Spherical k-means in two levels, then rounds of Lloyd's algorithm over all centroids."""
    groups = 1 << int(np.ceil(np.log2(count) / 2))
    leaders = _kmeans(sample, groups, seed)
    group_of = _most_similar(sample, leaders)
    members = np.bincount(group_of, minlength=len(leaders))
    children = _share_out(count, members)
    order = np.argsort(group_of, kind="stable")
    edges = np.concatenate([[0], np.cumsum(members)])
    group_centroids = [
        _kmeans(sample[order[edges[g] : edges[g + 1]]], int(children[g]), seed + g) for g in range(len(leaders)) if children[g]
    ]
    leaders = leaders[children > 0]
    group_ptr = np.concatenate([[0], np.cumsum([len(group) for group in group_centroids])])
    centroids = np.concatenate(group_centroids)
    for _ in range(2):
        nearest = nearest_centroids(sample, leaders, group_ptr, centroids)
        centroids = _means(sample, nearest, centroids)
    leaders = _unit(np.add.reduceat(centroids, group_ptr[:-1], axis=0))
    return leaders, group_ptr, centroids


def _share_out(count: int, members: Int64s) -> Int64s:
    """Distribute `count` centroids over groups in proportion to their tokens; no group gets more than it has tokens."""
    ideal = members * (count / max(1, members.sum()))
    shares: Int64s = np.minimum(np.maximum(ideal.astype(np.int64), members > 0), members)
    missing = count - int(shares.sum())
    for g in np.argsort(shares - ideal, kind="stable")[: max(0, missing)]:
        shares[g] += shares[g] < members[g]
    return shares


def _kmeans(vectors: Float32s, count: int, seed: int) -> Float32s:
    """Centroids of length 1 by spherical k-means, which starts from a random sample of the vectors."""
    if count >= len(vectors):
        return _unit(vectors)
    centroids = _unit(vectors[np.random.default_rng(seed).choice(len(vectors), count, replace=False)])
    for _ in range(ROUNDS):
        centroids = _means(vectors, _most_similar(vectors, centroids), centroids)
    return centroids


def _most_similar(vectors: Float32s, centroids: Float32s) -> Int64s:
    """For each vector, the centroid with the highest inner product."""
    blocks = (vectors[start : start + BLOCK_TOKENS] for start in range(0, len(vectors), BLOCK_TOKENS))
    return np.concatenate([(block @ centroids.T).argmax(axis=1) for block in blocks])


def _means(sample: Float32s, nearest: Unsigned | Int64s, centroids: Float32s) -> Float32s:
    """The mean direction of the tokens of each centroid; a centroid without tokens does not move."""
    order = np.argsort(nearest, kind="stable")
    present, first = np.unique(nearest[order], return_index=True)
    moved = centroids.copy()
    moved[present] = np.add.reduceat(sample[order], first, axis=0)
    return _unit(moved)


def _unit(vectors: Float32s) -> Float32s:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12), np.float32)


def nearest_centroids(vectors: Float32s, leaders: Float32s, group_ptr: Int64s, centroids: Float32s) -> UInt32s:
    """For each vector, the centroid with the highest inner product in the groups of its GROUPS_SEARCHED best leaders."""
    nearest = np.empty(len(vectors), np.uint32)
    for start in range(0, len(vectors), BLOCK_TOKENS):
        block = vectors[start : start + BLOCK_TOKENS]
        nearest[start : start + len(block)] = _nearest_in_block(block, leaders, group_ptr, centroids)
    return nearest


def _nearest_in_block(block: Float32s, leaders: Float32s, group_ptr: Int64s, centroids: Float32s) -> UInt32s:
    searched = min(GROUPS_SEARCHED, len(leaders))
    scores = block @ leaders.T
    groups = np.argpartition(-scores, searched - 1, axis=1)[:, :searched]
    order = np.argsort(groups, axis=None, kind="stable")
    edges = np.searchsorted(groups.ravel()[order], np.arange(len(leaders) + 1))
    best, nearest = np.full(len(block), -np.inf, np.float32), np.zeros(len(block), np.uint32)
    for g in np.flatnonzero(np.diff(edges)):
        tokens = order[edges[g] : edges[g + 1]] // searched
        products = block[tokens] @ centroids[group_ptr[g] : group_ptr[g + 1]].T
        members = products.argmax(axis=1)
        score = products[np.arange(len(tokens)), members]
        better = score > best[tokens]
        best[tokens[better]] = score[better]
        nearest[tokens[better]] = group_ptr[g] + members[better]
    return nearest


def _fit_tables(vectors: Float32s, residuals: Float32s, bits: int) -> tuple[Float32s, Float32s, Float32s, Float32s, Int8s]:
    """Fit spread, steps, sizes, cutoffs and levels to residuals.

    A few tokens do not represent later ones: for them, residuals are assumed to be normal and isotropic.
    """
    if len(residuals) < FEW_TOKENS:
        length = max(float(np.linalg.norm(vectors, axis=1).mean()), SMALLEST_SIZE)
        spread = np.full(vectors.shape[1], length / vectors.shape[1] ** 0.5, np.float32)
        values = np.random.default_rng(0).standard_normal(LEVEL_SAMPLES)
        largest = 1.0
    else:
        spread = np.maximum(residuals.std(axis=0), 1e-6).astype(np.float32)
        scaled = residuals / spread
        sizes = np.maximum(np.sqrt(np.square(scaled).mean(axis=1)), SMALLEST_SIZE)
        values = (scaled / sizes[:, None]).ravel()[:LEVEL_SAMPLES]
        largest = float(sizes.max())
    levels = _fit_levels(np.sort(values), 1 << bits)
    unit = max(float(np.abs(levels).max()), 1e-6) / MOST_LEVEL
    integer_levels = np.zeros(16, np.int8)
    integer_levels[: len(levels)] = np.rint(levels / unit)
    sizes = np.geomspace(largest / SIZE_REACH, largest * ROOM, 256).astype(np.float32)
    cutoffs = ((levels[1:] + levels[:-1]) / 2).astype(np.float32)
    return spread, (spread * unit).astype(np.float32), sizes, cutoffs, integer_levels


def _fit_levels(values: Float64s, count: int) -> Float64s:
    """Quantisation levels for sorted values: ColBERTv2's quantiles, moved to the least squared error (Lloyd 1982).

    At 4 bits, a third of the error of the quantiles remains.
    """
    levels = np.quantile(values, (np.arange(count) + 0.5) / count)
    sums = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    for _ in range(40):
        edges = np.concatenate([[0], np.searchsorted(values, (levels[1:] + levels[:-1]) / 2), [len(values)]])
        counts = np.diff(edges)
        levels = np.where(counts > 0, np.diff(sums[edges]) / np.maximum(counts, 1), levels)
    return levels

"""The codebook of the multi lens: centroids in two levels, and the tables that turn residuals into codes and back.

It is a list of *pages*, each trained on a batch of tokens and never changed. The first page also fixes the tables; later pages
add centroids where documents came in that the first did not foresee. Every centroid belongs to a group of neighbours with a
leader, so that the nearest centroid of a token is looked for among the members of the nearest few leaders only.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trilens.kernels.residual import decode_tokens, encode_residuals
from trilens.represent.arrays import open_array, save_arrays

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Nearest = NDArray[np.unsignedinteger[Any]]

GROUPS_ASKED = 12  # of which a token's nearest centroid is looked for; checked against all in the tests
BLOCK_TOKENS = 8192
ROUNDS = 6
SAMPLES_PER_CENTROID = 32
FITTED_TOKENS = 16_384
LEVEL_SAMPLES = 500_000
FEW_TOKENS = 2048
SMALLEST_SIZE, SIZE_REACH, ROOM = 1e-3, 1000, 4  # sizes from a thousandth of the largest seen to four times that
STRETCH_REACH, MOST_LEVEL = 1.3, 127


@dataclass(frozen=True, eq=False, slots=True)
class Page:
    """Group g has the leader `leaders[g]` and the centroids `group_ptr[g]:group_ptr[g + 1]`.

    `error` is the mean squared error of tokens like those it was trained with; `normalised` tells whether they had length 1,
    so that decoded ones get it too. `spread`, `steps`, `sizes`, `cutoffs` and `levels` (see kernels/residual.py) are those of
    the first page.
    """

    leaders: Floats
    group_ptr: Ints
    centroids: Floats
    spread: Floats
    steps: Floats
    sizes: Floats
    cutoffs: Floats
    levels: NDArray[np.int8]
    error: Floats
    normalised: NDArray[np.bool_]

    def save(self, folder: Path) -> None:
        """Write the arrays."""
        save_arrays(folder, **{name: getattr(self, name) for name in PAGE_ARRAYS})

    @staticmethod
    def open(folder: Path) -> "Page":
        """Map the arrays."""
        return Page(*(open_array(folder, name) for name in PAGE_ARRAYS))


PAGE_ARRAYS = ("leaders", "group_ptr", "centroids", "spread", "steps", "sizes", "cutoffs", "levels", "error", "normalised")


@dataclass(frozen=True, eq=False, slots=True)
class Codes:
    """Tokens in the code book's terms: see kernels/residual.py."""

    nearest: Nearest
    residuals: NDArray[np.uint8]
    sizes: NDArray[np.uint8]
    stretches: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.nearest)

    def slice(self, start: int, end: int) -> "Codes":
        """The tokens from start to end."""
        return Codes(*(getattr(self, name)[start:end] for name in CODE_ARRAYS))


CODE_ARRAYS = ("nearest", "residuals", "sizes", "stretches")


class Codebook:
    """All pages together."""

    def __init__(self, pages: Sequence[Page]) -> None:
        self.pages = pages
        first = pages[0]
        self.normalise = bool(first.normalised)
        self.spread, self.steps, self.sizes = first.spread, first.steps, first.sizes
        self.cutoffs, self.levels = first.cutoffs, first.levels
        self.stretches = np.ones(256, np.float32)
        if self.normalise:
            self.stretches = np.geomspace(1 / STRETCH_REACH, STRETCH_REACH, 256).astype(np.float32)

    @cached_property
    def leaders(self) -> Floats:
        """Of all groups."""
        return np.concatenate([page.leaders for page in self.pages])

    @cached_property
    def centroids(self) -> Floats:
        """Of all groups, group by group."""
        return np.concatenate([page.centroids for page in self.pages])

    @cached_property
    def directions(self) -> Floats:
        """The centroids at length 1: what tokens are compared with to find the nearest."""
        return self.centroids if self.normalise else _unit(self.centroids)

    @cached_property
    def group_ptr(self) -> Ints:
        """Where the centroids of each group begin."""
        sizes = [np.diff(page.group_ptr) for page in self.pages]
        return np.concatenate([[0], np.cumsum(np.concatenate(sizes))])

    @property
    def dim(self) -> int:
        """Dimensions of a vector."""
        return int(self.centroids.shape[1])

    @property
    def bits(self) -> int:
        """Per dimension of a residual."""
        return int(np.log2(len(self.cutoffs) + 1))

    @property
    def error(self) -> float:
        """Mean squared error of a vector, at its best: of the tokens that the best page was trained with."""
        return min(float(page.error) for page in self.pages)

    def nearest(self, vectors: Floats) -> Nearest:
        """The centroid of each token: the one of the most similar direction among the groups asked."""
        found = nearest_centroids(vectors, self.leaders, self.group_ptr, self.directions)
        return found.astype(np.uint16) if len(self.centroids) <= 1 << 16 else found

    def encode(self, vectors: Floats) -> tuple[Codes, Floats]:
        """Codes of token vectors, and the squared error of each."""
        codes = Codes(
            self.nearest(vectors),
            np.zeros((len(vectors), self.dim * self.bits // 8), np.uint8),
            np.empty(len(vectors), np.uint8),
            np.empty(len(vectors), np.uint8),
        )
        tables = (self.centroids, self.spread, self.steps, self.sizes, self.stretches, self.cutoffs, self.levels)
        errors = np.empty(len(vectors), np.float32)
        encode_residuals(vectors, codes.nearest, *tables, codes.residuals, codes.sizes, codes.stretches, errors)
        return codes, errors

    def decode(self, codes: Codes) -> Floats:
        """The vectors that codes stand for."""
        vectors = np.empty((len(codes), self.dim), np.float32)
        coded = (codes.nearest, codes.residuals, codes.sizes, codes.stretches)
        decode_tokens(*coded, self.centroids, self.steps, self.sizes, self.stretches, self.levels, vectors)
        return vectors


def centroid_count(tokens: int) -> int:
    """2^⌊log2(16 √n)⌋, as PLAID has it; never more than a quarter of the tokens, or there would be nothing to learn from."""
    return 1 << max(0, int(np.log2(max(1.0, min(16 * tokens**0.5, tokens / 4)))))


def train_page(vectors: Floats, count: int, bits: int, normalised: bool, seed: int, older: Codebook | None = None) -> Page:
    """A page with `count` centroids for tokens like these, with the tables of the codebook that it continues."""
    chance = np.random.default_rng(seed)
    # Tokens that the centroids were made from are nearer to them than those to come: the tables must fit others.
    held_out = np.zeros(len(vectors), np.bool_)
    held_out[9::10] = True
    sample = _draw(vectors[~held_out], count * SAMPLES_PER_CENTROID, chance)
    leaders, group_ptr, centroids = _grow_groups(sample, min(count, len(sample)), seed)
    fitted = _draw(vectors[held_out] if held_out.any() else vectors, FITTED_TOKENS, chance)
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


def _draw(vectors: Floats, most: int, chance: np.random.Generator) -> Floats:
    """Some of the vectors, in their order."""
    if len(vectors) <= most:
        return np.ascontiguousarray(vectors, np.float32)
    return np.ascontiguousarray(vectors[np.sort(chance.choice(len(vectors), most, replace=False))], np.float32)


def _mean_lengths(vectors: Floats, nearest: Nearest, directions: Floats) -> Floats:
    """The directions at the mean length that their vectors have along them."""
    along = np.einsum("td,td->t", vectors, directions[nearest])
    count = np.bincount(nearest, minlength=len(directions))
    means = np.bincount(nearest, along, minlength=len(directions)) / np.maximum(count, 1)
    lengths = np.where(count > 0, means, along.mean())
    return np.asarray(directions * lengths[:, None], np.float32)


def _grow_groups(sample: Floats, count: int, seed: int) -> tuple[Floats, Ints, Floats]:
    """Spherical k-means in two levels, then rounds of Lloyd's algorithm over all centroids."""
    groups = 1 << int(np.ceil(np.log2(count) / 2))
    leaders = _kmeans(sample, groups, seed)
    group_of = (sample @ leaders.T).argmax(axis=1)
    members = np.bincount(group_of, minlength=len(leaders))
    children = _share_out(count, members)
    order = np.argsort(group_of, kind="stable")
    edges = np.concatenate([[0], np.cumsum(members)])
    made = [
        _kmeans(sample[order[edges[g] : edges[g + 1]]], int(children[g]), seed + g) for g in range(len(leaders)) if children[g]
    ]
    leaders = leaders[children > 0]
    group_ptr = np.concatenate([[0], np.cumsum([len(group) for group in made])])
    centroids = np.concatenate(made)
    for _ in range(2):
        nearest = nearest_centroids(sample, leaders, group_ptr, centroids)
        centroids = _means(sample, nearest, centroids)
    leaders = _unit(np.add.reduceat(centroids, group_ptr[:-1], axis=0))
    return leaders, group_ptr, centroids


def _share_out(count: int, members: Ints) -> Ints:
    """How many of `count` centroids each group gets: in proportion to its tokens, and never more than it has."""
    ideal = members * (count / max(1, members.sum()))
    given: Ints = np.minimum(np.maximum(ideal.astype(np.int64), members > 0), members)
    missing = count - int(given.sum())
    for g in np.argsort(given - ideal, kind="stable")[: max(0, missing)]:
        given[g] += given[g] < members[g]
    return given


def _kmeans(vectors: Floats, count: int, seed: int) -> Floats:
    """Centroids of length 1."""
    import faiss  # takes a moment to load, and only building needs it

    if count >= len(vectors):
        return _unit(vectors)
    few = {"min_points_per_centroid": 1, "max_points_per_centroid": len(vectors)}
    means = faiss.Kmeans(vectors.shape[1], count, niter=ROUNDS, seed=seed, spherical=True, **few)
    means.train(np.ascontiguousarray(vectors))
    assert means.centroids is not None
    return _unit(means.centroids)


def _means(sample: Floats, nearest: Nearest, centroids: Floats) -> Floats:
    """The mean direction of the tokens of each centroid; one without tokens stays where it is."""
    order = np.argsort(nearest, kind="stable")
    present, first = np.unique(nearest[order], return_index=True)
    moved = centroids.copy()
    moved[present] = np.add.reduceat(sample[order], first, axis=0)
    return _unit(moved)


def _unit(vectors: Floats) -> Floats:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12), np.float32)


def nearest_centroids(vectors: Floats, leaders: Floats, group_ptr: Ints, centroids: Floats) -> NDArray[np.uint32]:
    """For each vector the centroid with the highest inner product among the members of its GROUPS_ASKED best leaders."""
    found = np.empty(len(vectors), np.uint32)
    for start in range(0, len(vectors), BLOCK_TOKENS):
        block = vectors[start : start + BLOCK_TOKENS]
        found[start : start + len(block)] = _nearest_in_block(block, leaders, group_ptr, centroids)
    return found


def _nearest_in_block(block: Floats, leaders: Floats, group_ptr: Ints, centroids: Floats) -> NDArray[np.uint32]:
    asked = min(GROUPS_ASKED, len(leaders))
    scores = block @ leaders.T
    groups = np.argpartition(-scores, asked - 1, axis=1)[:, :asked]
    order = np.argsort(groups, axis=None, kind="stable")
    edges = np.searchsorted(groups.ravel()[order], np.arange(len(leaders) + 1))
    best, found = np.full(len(block), -np.inf, np.float32), np.zeros(len(block), np.uint32)
    for g in np.flatnonzero(np.diff(edges)):
        tokens = order[edges[g] : edges[g + 1]] // asked
        products = block[tokens] @ centroids[group_ptr[g] : group_ptr[g + 1]].T
        at = products.argmax(axis=1)
        score = products[np.arange(len(tokens)), at]
        better = score > best[tokens]
        best[tokens[better]] = score[better]
        found[tokens[better]] = group_ptr[g] + at[better]
    return found


def _fit_tables(vectors: Floats, residuals: Floats, bits: int) -> tuple[Floats, Floats, Floats, Floats, NDArray[np.int8]]:
    """Spread, steps, sizes, cutoffs and levels for residuals like these.

    A handful of tokens tells nothing of those to come: then residuals are taken to be normal and alike in all dimensions.
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
    whole = np.zeros(16, np.int8)
    whole[: len(levels)] = np.rint(levels / unit)
    sizes = np.geomspace(largest / SIZE_REACH, largest * ROOM, 256).astype(np.float32)
    return spread, (spread * unit).astype(np.float32), sizes, ((levels[1:] + levels[:-1]) / 2).astype(np.float32), whole


def _fit_levels(values: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """Levels for some sorted values: the quantiles of ColBERTv2, moved to where the squared error is least (Lloyd 1982).

    At 4 bits that leaves a third of the error.
    """
    levels = np.quantile(values, (np.arange(count) + 0.5) / count)
    sums = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    for _ in range(40):
        edges = np.concatenate([[0], np.searchsorted(values, (levels[1:] + levels[:-1]) / 2), [len(values)]])
        counts = np.diff(edges)
        levels = np.where(counts > 0, np.diff(sums[edges]) / np.maximum(counts, 1), levels)
    return levels

"""Search over coded tokens: every kernel against a slow twin that decodes all tokens and compares them one by one."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from trilens.kernels.lanes import LANES, WIDTH
from trilens.kernels.multi import add_gains, gather, gather_tokens, keep_best, maxsim, rerank, score_centroids
from trilens.kernels.token_lists import count_lists, fill_lists, pool_tokens
from trilens.kernels.topk import new_heaps

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]
Mask = NDArray[np.bool_]

DIMS, GROUPS, CENTROIDS, ROWS = 32, 9, 70, 60
NO_MASK: Mask = np.empty(0, np.bool_)
QUERY_TOKENS = [1, 31, 32, 33, 70]


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """As a memory-mapped file gives it."""
    array.setflags(write=False)
    return array


class Coded:
    """Rows of random codes near random centroids; some rows have no token, one has many."""

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
        lengths[[3, 17]], lengths[5] = 0, 1100  # more tokens than there is room for at first
        self.offsets = frozen(np.concatenate([[0], np.cumsum(lengths)]))
        tokens = int(self.offsets[-1])
        self.nearest = frozen(random.integers(0, CENTROIDS, tokens).astype(np.uint16))
        self.codes = frozen(random.integers(0, 256, (tokens, dims * bits // 8)).astype(np.uint8))
        self.size_codes, self.stretch_codes = (frozen(random.integers(0, 256, tokens).astype(np.uint8)) for _ in range(2))
        self.steps = frozen(random.uniform(1e-4, 2e-3, dims).astype(np.float32))
        self.sizes = frozen(np.geomspace(0.1, 3, 256).astype(np.float32))
        self.stretches = np.geomspace(0.7, 1.3, 256).astype(np.float32)
        self.levels = np.zeros(16, np.int8)
        self.levels[: 2**bits] = np.linspace(-127, 127, 2**bits)
        frozen(self.levels)
        self.list_ptr = count_lists(self.offsets, self.nearest, CENTROIDS)
        self.list_rows = np.empty(self.list_ptr[-1], np.int32)
        fill_lists(self.offsets, self.nearest, self.list_ptr, self.list_rows)
        frozen(self.list_ptr), frozen(self.list_rows)

    @property
    def tokens(self) -> tuple[Ints, NDArray[np.uint16], Bytes, Bytes, Bytes]:
        """As the kernels take them."""
        return self.offsets, self.nearest, self.codes, self.size_codes, self.stretch_codes

    def decode(self) -> NDArray[np.float64]:
        rest = self.sizes[self.size_codes][:, None] * self.steps * self.level_of_each()
        decoded: NDArray[np.float64] = self.stretches[self.stretch_codes][:, None] * (self.centroids[self.nearest] + rest)
        return decoded

    def level_of_each(self) -> NDArray[np.float64]:
        """Byte i holds the dimensions i, i + bytes, i + 2 bytes …, the first in its lowest bits."""
        planes = [self.codes >> np.uint8(shift) & np.uint8(2**self.bits - 1) for shift in range(0, 8, self.bits)]
        return self.levels[np.concatenate(planes, axis=1)].astype(np.float64)

    def similarities(self, query: Floats) -> NDArray[np.float64]:
        """Of all query tokens with all tokens, with a query in 16 bits for the residuals (m, tokens)."""
        whole, units = shorts(query * self.steps)
        rest = self.sizes[self.size_codes] * units[:, None] * (whole.astype(np.float64) @ self.level_of_each().T)
        found: NDArray[np.float64] = self.stretches[self.stretch_codes] * (query @ self.centroids[self.nearest].T + rest)
        return found

    def span(self, row: int) -> slice:
        return slice(self.offsets[row], self.offsets[row + 1])

    def maxsim(self, query: Floats) -> NDArray[np.float64]:
        """Of all rows: the slow twin."""
        similar = query.astype(np.float64) @ self.decode().T
        return np.array([similar[:, self.span(row)].max(axis=1, initial=-np.inf).sum() for row in range(ROWS)])


def shorts(query: Floats) -> tuple[NDArray[np.int16], Floats]:
    """Vectors as whole numbers, and the unit of each."""
    units = (np.abs(query).max(axis=1) / 20_000).astype(np.float32)
    return np.rint(query / units[:, None]).astype(np.int16), units


@dataclass
class Look:
    query: Floats
    leader_scores: Floats
    scores: Floats
    score_bytes: NDArray[np.uint8]
    units: Floats
    probed: NDArray[np.uint32]
    probed_scores: Floats


def queries(tokens: int, seed: int = 1, length: float = 1, dims: int = DIMS) -> Floats:
    vectors = np.random.default_rng(seed).normal(size=(tokens, dims))
    unit: Floats = (length * vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return unit


def look(coded: Coded, query: Floats, reach: int, probes: int) -> Look:
    tokens = len(query)
    found = Look(
        query,
        query @ np.ascontiguousarray(coded.leaders.T),
        np.full((CENTROIDS, tokens), -np.inf, np.float32),
        np.zeros((CENTROIDS, -(-tokens // LANES) * LANES), np.uint8),
        np.empty(tokens, np.float32),
        np.empty((tokens, probes), np.uint32),
        np.empty((tokens, probes), np.float32),
    )
    score_centroids(
        query,
        found.leader_scores,
        reach,
        coded.group_ptr,
        coded.centroids,
        probes,
        found.scores,
        found.score_bytes,
        found.units,
        found.probed,
        found.probed_scores,
    )
    return found


def reached(coded: Coded, seen: Look, reach: int) -> Mask:
    """Which centroids belong to the best groups of each query token (m, centroids)."""
    best = np.argsort(-seen.leader_scores, axis=1)[:, :reach]
    group_of = np.repeat(np.arange(GROUPS), np.diff(coded.group_ptr))
    inside: Mask = (best[:, :, None] == group_of).any(axis=1)
    return inside


@pytest.mark.parametrize("tokens", QUERY_TOKENS)
@pytest.mark.parametrize("reach, probes, normalised", [(1, 1, True), (3, 5, True), (3, 5, False), (GROUPS, CENTROIDS, True)])
def test_centroids_are_scored_in_the_best_groups_only(tokens: int, reach: int, probes: int, normalised: bool) -> None:
    coded = Coded(normalised=normalised)
    query = queries(tokens)
    seen = look(coded, query, reach, probes)
    products = query @ coded.centroids.T
    inside = reached(coded, seen, reach)
    assert (np.isfinite(seen.scores.T) == inside).all()
    np.testing.assert_allclose(seen.scores.T[inside], products[inside], atol=1e-5)
    visible = np.where(inside, products, -np.inf)
    for token in range(tokens):
        count = min(probes, int(inside[token].sum()))
        best = np.argsort(-visible[token])[:count]
        assert seen.probed[token, :count].tolist() == best.tolist()
        np.testing.assert_allclose(seen.probed_scores[token, :count], visible[token][best], atol=1e-5)
        # nothing more to probe: the last one again
        assert (seen.probed[token, count:] == best[-1]).all()
        np.testing.assert_allclose(seen.probed_scores[token, count:], visible[token][best[-1]], atol=1e-5)


@pytest.mark.parametrize("tokens", QUERY_TOKENS)
@pytest.mark.parametrize("reach", [1, 4, GROUPS])
def test_bytes_are_scores_on_a_scale_of_254(tokens: int, reach: int) -> None:
    coded = Coded()
    query = queries(tokens)
    seen = look(coded, query, reach, 1)
    products = query @ coded.centroids.T
    inside = reached(coded, seen, reach)
    leaders = np.repeat(seen.leader_scores, np.diff(coded.group_ptr), axis=1)
    lowest = np.minimum(seen.leader_scores.min(axis=1), np.where(inside, products, np.inf).min(axis=1))
    highest = np.where(inside, products, -np.inf).max(axis=1)
    np.testing.assert_allclose(seen.units, 254 / (highest - lowest), rtol=1e-4)
    scale = (254 / (highest - lowest))[:, None]
    expected = np.minimum(254, (np.where(inside, products, leaders) - lowest[:, None]) * scale)
    assert (np.abs(seen.score_bytes.T[:tokens] - np.floor(expected)) <= 1).all()
    assert seen.score_bytes.max() <= 254
    assert (seen.score_bytes[:, tokens:] == 0).all()


def test_centroids_that_are_all_alike_have_a_scale_too() -> None:
    coded = Coded()
    coded.centroids[:] = coded.centroids[0]
    coded.leaders[:] = coded.centroids[0]
    seen = look(coded, queries(2), GROUPS, 3)
    assert np.isfinite(seen.units).all() and np.isfinite(seen.scores).all()
    assert len(np.unique(seen.score_bytes[:, 0])) == 1


def slow_gains(coded: Coded, seen: Look, known: int, allowed: Mask) -> dict[int, float]:
    """What each allowed row with a token near a probed centroid gains."""
    gains = {}
    for row in np.flatnonzero(allowed).tolist():
        near = np.isin(seen.probed, coded.nearest[coded.span(row)]) & (seen.probed < known)
        if near.any():
            over = np.where(near, seen.probed_scores - seen.probed_scores[:, -1:], 0)
            gains[row] = float(over.max(axis=1).sum())
    return gains


@pytest.mark.parametrize("probes", [1, 2, 8, CENTROIDS])
@pytest.mark.parametrize("known", [CENTROIDS, 40])
@pytest.mark.parametrize("filtered", [False, True])
def test_rows_gain_by_their_best_centroid_for_each_query_token(probes: int, known: int, filtered: bool) -> None:
    # `known` < CENTROIDS: a part that was written before the last page of the codebook.
    coded = Coded(seed=2)
    seen = look(coded, queries(9), 4, probes)
    allowed = np.random.default_rng(5).random(ROWS) < 0.6 if filtered else np.ones(ROWS, np.bool_)
    list_ptr = frozen(coded.list_ptr[: known + 1].copy())
    gains, last, touched = np.zeros(ROWS, np.float32), np.zeros(ROWS, np.int32), np.empty(ROWS, np.int32)
    mask = allowed if filtered else NO_MASK
    count = gather(seen.probed, seen.probed_scores, list_ptr, coded.list_rows, mask, filtered, gains, last, touched)
    expected = slow_gains(coded, seen, known, allowed)
    assert sorted(touched[:count].tolist()) == sorted(expected)
    np.testing.assert_allclose([gains[row] for row in expected], list(expected.values()), atol=1e-5)
    assert gains[~np.isin(np.arange(ROWS), list(expected))].max(initial=0) == 0


@pytest.mark.parametrize("keep", [1, 7, 50, 199, 200, 300])
@pytest.mark.parametrize("shape", ["spread", "ties", "zeros", "tiny"])
def test_the_best_rows_are_kept_and_few_others(keep: int, shape: str) -> None:
    random = np.random.default_rng(keep)
    values = random.gamma(2, size=1000).astype(np.float32)
    if shape == "ties":
        values = random.integers(0, 4, 1000).astype(np.float32)
    elif shape in ("zeros", "tiny"):
        values *= np.float32(0 if shape == "zeros" else 1e-12)
    listed = random.permutation(1000)[:200].astype(np.int32)
    rows = np.concatenate([listed, np.full(5, -7, np.int32)])  # what is behind the count does not matter
    kept = keep_best(values, rows, 200, keep)
    assert kept >= min(keep, 200)
    front = rows[:kept].tolist()
    assert len(set(front)) == kept and set(front) <= set(listed.tolist())
    assert front == [row for row in listed.tolist() if row in set(front)]  # in the order they had
    lost = [row for row in listed.tolist() if row not in set(front)]
    assert values[front].min() >= values[lost].max(initial=0)
    if shape == "spread" and keep < 200:
        nth = np.sort(values[listed])[-keep]
        assert values[front].min() >= nth - values[listed].max() / 1000  # a bin at most


KINDS = [(4, 32), (4, 96), (2, 64), (1, 128)]  # bits and dimensions: 16 bytes of codes or 48


@pytest.mark.parametrize("bits, dims", KINDS)
@pytest.mark.parametrize("tokens", QUERY_TOKENS)
def test_the_score_of_a_row_is_maxsim(tokens: int, bits: int, dims: int) -> None:
    coded = Coded(seed=3, bits=bits, dims=dims)
    query = queries(tokens, length=2, dims=dims)
    found = np.empty(ROWS, np.float32)
    all_maxsim(coded, query, np.arange(ROWS, dtype=np.int32), found)
    expected = coded.maxsim(query)
    assert expected[3] == expected[17] == -np.inf  # no tokens
    np.testing.assert_allclose(found, expected, atol=1e-4)
    picked = np.array([5, 17, 2, 5], np.int32)
    again = np.empty(4, np.float32)
    all_maxsim(coded, query, picked, again)
    assert again.tolist() == found[picked].tolist()


def all_maxsim(coded: Coded, query: Floats, rows: NDArray[np.int32], found: Floats) -> None:
    columns = np.zeros((coded.dims, -(-len(query) // WIDTH) * WIDTH), np.float32)
    columns[:, : len(query)] = query.T
    tables = (coded.centroids, coded.steps, coded.sizes, coded.stretches, coded.levels)
    maxsim(rows, len(query), columns, *coded.tokens, *tables, found)


def all_rerank(coded: Coded, seen: Look, margins: NDArray[np.uint8]) -> Floats:
    found = np.empty(ROWS, np.float32)
    near = (seen.query, *shorts(seen.query * coded.steps), coded.centroids, seen.scores, seen.score_bytes, margins)
    tables = (coded.sizes, coded.stretches, coded.levels)
    rerank(np.arange(ROWS, dtype=np.int32), *near, *coded.tokens, *tables, found)
    return found


@pytest.mark.parametrize("bits, dims", KINDS)
@pytest.mark.parametrize("tokens", QUERY_TOKENS)
@pytest.mark.parametrize("reach", [1, GROUPS])
def test_with_the_widest_margin_reranking_is_maxsim(tokens: int, reach: int, bits: int, dims: int) -> None:
    coded = Coded(seed=4, bits=bits, dims=dims)
    seen = look(coded, queries(tokens, dims=dims), reach, 1)
    found = all_rerank(coded, seen, np.full(tokens, 255, np.uint8))
    np.testing.assert_allclose(found, coded.maxsim(seen.query), atol=1e-4 * tokens)  # the query is rounded
    assert found[3] == found[17] == -np.inf
    # what was looked up on the way is what it should be
    looked = np.isfinite(seen.scores)
    np.testing.assert_allclose(seen.scores[looked], (coded.centroids @ seen.query.T)[looked], atol=1e-5)


@pytest.mark.parametrize("tokens", [1, 33, 70])
def test_with_smaller_margins_it_is_a_lower_bound(tokens: int) -> None:
    coded = Coded(seed=4)
    query = queries(tokens)
    similar = coded.similarities(query)
    exact = np.array([similar[:, coded.span(row)].max(axis=1, initial=-np.inf).sum() for row in range(ROWS)])
    last, below = np.full(ROWS, -np.inf), 0
    for margin in (0, 1, 5, 20, 60, 120, 255):
        seen = look(coded, query, 3, 1)
        margins = np.full(tokens, margin, np.uint8)
        margins[0] = min(255, margin + 10)  # each query token has its own
        found = all_rerank(coded, seen, margins)
        for row in range(ROWS):
            near = seen.score_bytes[coded.nearest[coded.span(row)], :tokens].astype(np.int64)
            used = near >= np.maximum(near.max(axis=0, initial=0) - margins, 0)
            slow = np.where(used.T, similar[:, coded.span(row)], -np.inf).max(axis=1, initial=-np.inf).sum()
            np.testing.assert_allclose(found[row], slow, atol=1e-4)
        assert (found <= exact + 1e-4).all() and (found >= last - 1e-4).all()
        below += int((found < exact - 1e-3).sum())
        last = found
    assert below > 20  # else this data would not put the bound to the test


def test_a_lower_bound_uses_far_fewer_tokens() -> None:
    # Row 5 has 1,100 tokens; a margin of 0 must take those of the best centroid alone.
    coded = Coded(seed=4)
    seen = look(coded, queries(1), GROUPS, 1)
    near = seen.score_bytes[coded.nearest[coded.span(5)], 0]
    best = coded.similarities(queries(1))[0, coded.span(5)][near == near.max()].max()
    np.testing.assert_allclose(all_rerank(coded, seen, np.zeros(1, np.uint8))[5], best, atol=1e-4)
    assert (near == near.max()).sum() < 100


@pytest.mark.parametrize("bits, dims", [(4, 32), (2, 64)])
@pytest.mark.parametrize("known", [CENTROIDS, 40])
@pytest.mark.parametrize("filtered", [False, True])
@pytest.mark.parametrize("room", [0, 3, 2000])
def test_similarities_of_retrieved_tokens(known: int, filtered: bool, room: int, bits: int, dims: int) -> None:
    coded = Coded(seed=6, bits=bits, dims=dims)
    seen = look(coded, queries(3, dims=dims), 4, 12)
    allowed = np.random.default_rng(7).random(ROWS) < 0.5 if filtered else np.ones(ROWS, np.bool_)
    list_ptr = frozen(coded.list_ptr[: known + 1].copy())
    best, met = np.empty(ROWS, np.float32), np.empty(ROWS, np.int32)
    row_of = np.repeat(np.arange(ROWS), np.diff(coded.offsets))
    whole, units = shorts(seen.query * coded.steps)
    for token in range(3):
        heap_scores, heap_rows = new_heaps(1, room)
        flags = np.zeros(ROWS, np.bool_)
        count = gather_tokens(
            token,
            whole,
            units[token],
            seen.probed[token],
            seen.probed_scores[token],
            list_ptr,
            coded.list_rows,
            *coded.tokens,
            coded.sizes,
            coded.stretches,
            coded.levels,
            allowed if filtered else NO_MASK,
            filtered,
            best,
            flags,
            met,
            heap_scores[0],
            heap_rows[0],
        )
        retrieved = np.flatnonzero(np.isin(coded.nearest, seen.probed[token][seen.probed[token] < known]) & allowed[row_of])
        similar = coded.similarities(seen.query)[token]
        rows = sorted(set(row_of[retrieved].tolist()))
        assert sorted(met[:count].tolist()) == np.flatnonzero(flags).tolist() == rows
        for row in rows:
            np.testing.assert_allclose(best[row], similar[retrieved[row_of[retrieved] == row]].max(), atol=1e-5)
        highest = retrieved[np.argsort(-similar[retrieved])][:room]
        assert sorted(heap_rows[0][heap_rows[0] >= 0].tolist()) == sorted(highest.tolist())


def test_gains_over_the_imputed_value_by_hand() -> None:
    best = np.array([9, 0.5, 2, 0.25], np.float32)
    gains, joined, touched = np.zeros(4, np.float32), np.zeros(4, np.bool_), np.full(4, -1, np.int32)
    seen = np.array([False, True, True, True])
    total = add_gains(best, seen, np.array([2, 1, 3], np.int32), 3, 0.5, gains, joined, touched, 0)
    assert total == 3 and touched.tolist() == [2, 1, 3, -1]
    assert gains.tolist() == [0, 0, 1.5, 0]  # row 1 has just the imputed value, row 3 less: it counts as not retrieved
    assert not seen.any()
    seen[[0, 2]] = True
    total = add_gains(best, seen, np.array([0, 2, 7], np.int32), 2, 1, gains, joined, touched, total)
    assert total == 4 and touched.tolist() == [2, 1, 3, 0]
    assert gains.tolist() == [8, 0, 2.5, 0]
    assert not seen.any() and joined.all()


def test_lists_by_hand() -> None:
    offsets, nearest = np.array([0, 4, 4, 6, 7]), np.array([2, 0, 2, 2, 2, 4, 2], np.uint16)
    list_ptr = count_lists(offsets, nearest, 6)
    assert list_ptr.tolist() == [0, 1, 1, 4, 4, 5, 5]
    list_rows = np.full(5, -1, np.int32)
    fill_lists(offsets, nearest, list_ptr, list_rows)
    assert list_rows.tolist() == [0, 0, 2, 3, 2]


def test_lists_name_each_row_once() -> None:
    coded = Coded(seed=8)
    for centroid in range(CENTROIDS):
        rows = [row for row in range(ROWS) if centroid in coded.nearest[coded.span(row)]]
        assert coded.list_rows[coded.list_ptr[centroid] : coded.list_ptr[centroid + 1]].tolist() == rows


def slow_pool(vectors: Floats, factor: int) -> tuple[list[NDArray[np.float64]], list[int]]:
    """Join the two most similar groups until few enough are left: the mean of each group and its first token."""
    groups = [[token] for token in range(len(vectors))]
    sums = [vector.astype(np.float64) for vector in vectors]
    while len(groups) > max(1, -(-len(vectors) // factor)):
        units = np.array([total / np.linalg.norm(total) for total in sums])
        similar = np.where(np.tri(len(units), k=-1) > 0, units @ units.T, -np.inf)
        a, b = (int(at) for at in np.unravel_index(similar.argmax(), similar.shape))
        groups[b], sums[b] = groups[b] + groups[a], sums[b] + sums[a]
        del groups[a], sums[a]
    order = np.argsort([min(group) for group in groups])
    return [sums[i] / len(groups[i]) for i in order], [min(groups[i]) for i in order]


@pytest.mark.parametrize("factor", [1, 2, 3, 5, 100])
def test_pooling_joins_the_most_similar_tokens(factor: int) -> None:
    random = np.random.default_rng(factor)
    lengths = [7, 0, 1, 2, 12, 25, 3]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    vectors = (queries(50, seed=factor) * random.uniform(0.5, 3, (50, 1))).astype(np.float32)
    before = vectors.copy()
    kept_offsets, pooled, first = pool_tokens(offsets, vectors, factor)
    assert vectors.tolist() == before.tolist()
    assert np.diff(kept_offsets).tolist() == [-(-length // factor) for length in lengths]
    for text in range(len(lengths)):
        means, names = slow_pool(vectors[offsets[text] : offsets[text + 1]], factor)
        span = slice(kept_offsets[text], kept_offsets[text + 1])
        assert (first[span] - offsets[text]).tolist() == names
        np.testing.assert_allclose(pooled[span], np.reshape(means, (-1, DIMS)), atol=1e-5)


def test_pooling_by_hand() -> None:
    tokens = [[1, 0, 0, 0], [0, 1, 0, 0], [0.8, 0.6, 0, 0], [0, 0, 1, 0]]
    # Token 2 is nearer to token 0 (0.8) than to token 1 (0.6); their mean (0.9, 0.3) is nearer to 1 than anything to token 3.
    offsets, pooled, first = pool_tokens(np.array([0, 4]), np.array(tokens, np.float32), 2)
    assert (offsets.tolist(), first.tolist()) == ([0, 2], [0, 3])
    np.testing.assert_allclose(pooled, np.array([[0.6, 1.6 / 3, 0, 0], [0, 0, 1, 0]]), rtol=1e-6)


def test_pooling_takes_zero_vectors() -> None:
    vectors = np.zeros((4, DIMS), np.float32)
    vectors[1] = queries(1)[0]
    _, pooled, first = pool_tokens(np.array([0, 4]), vectors, 2)
    assert np.isfinite(pooled).all() and len(first) == 2

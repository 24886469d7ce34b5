"""The multi lens: three searchers against MaxSim over all decoded tokens, XTR by hand, and files that grow and merge."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError

from trilens.encode.encoder import Encoded, Progress
from trilens.errors import BadInput
from trilens.index import multi as module
from trilens.index.codebook import CODE_ARRAYS, Codebook, Page, centroid_count
from trilens.index.multi import MultiConfig, MultiLens, MultiPart
from trilens.index.multi_params import MultiParams, default_params, parse_params
from trilens.index.multi_search import MOST_QUERY_TOKENS, MultiSearcher
from trilens.index.topk import TopK
from trilens.represent import Multi

Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]

DIMS, CLUSTERS, ROWS = 32, 80, 700
EMPTY_ROWS = [0, 13, 14, 350, ROWS - 1]
EVERYTHING = MultiParams("plaid", reach=10_000, probes=100_000, candidates=ROWS - len(EMPTY_ROWS) - 1, margin=10)
METHODS = {
    "exact": MultiParams("exact"),
    "plaid": MultiParams("plaid", reach=8, probes=8, candidates=60),
    "xtr": MultiParams("xtr", reach=8, probes=8, candidates=0, tokens=200),
    "xtr by k'": MultiParams("xtr", reach=8, probes=8, candidates=0, nth=100),
    "xtr and MaxSim": MultiParams("xtr", reach=8, probes=8, candidates=60),
}
every_method = pytest.mark.parametrize("params", METHODS.values(), ids=METHODS)


class NoEncoder:
    """Vectors are made by the tests."""

    fingerprint = "none"

    def encode_docs(self, texts: Sequence[str], progress: Progress | None = None) -> Encoded:
        raise NotImplementedError

    def encode_queries(self, texts: Sequence[str]) -> Encoded:
        raise NotImplementedError


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Threads that wait for each other take most of the time where so few tokens are clustered."""
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    yield
    faiss.omp_set_num_threads(threads)


def lens(**options: Any) -> MultiLens:
    return MultiLens(NoEncoder(), MultiConfig(**options))


LENS = lens()


def unit(vectors: NDArray[np.floating]) -> Floats:
    units: Floats = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return units


def ragged(vectors: NDArray[np.floating], lengths: Sequence[int]) -> Encoded:
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    return Encoded(multi=Multi(offsets, vectors.astype(np.float32), np.arange(len(vectors), dtype=np.int32)))


def texts(seed: int, lengths: Sequence[int], centres: int = 0) -> Encoded:
    """Token vectors of length 1, each text about three of the clusters, which are the same for every seed."""
    random = np.random.default_rng(seed)
    middle = np.random.default_rng(centres).normal(size=(CLUSTERS, DIMS))
    about = [random.choice(random.choice(CLUSTERS, 3, replace=False), length) for length in lengths]
    return ragged(unit(middle[np.concatenate(about)] + 0.5 * random.normal(size=(sum(lengths), DIMS))), lengths)


def take(encoded: Encoded, rows: NDArray[np.integer]) -> Encoded:
    assert encoded.multi is not None
    return Encoded(multi=encoded.multi.take(rows))


def tokens_of(encoded: Encoded, row: int) -> Floats:
    assert encoded.multi is not None
    return encoded.multi.vectors[encoded.multi.offsets[row] : encoded.multi.offsets[row + 1]]


def stretched(encoded: Encoded, seed: int = 0) -> Encoded:
    """The same directions with lengths from 0.5 to 3."""
    assert encoded.multi is not None
    vectors = encoded.multi.vectors
    far = np.random.default_rng(seed).uniform(0.5, 3, (len(vectors), 1)).astype(np.float32)
    return Encoded(multi=replace(encoded.multi, vectors=vectors * far))


def some_lengths(seed: int, rows: int, most: int = 24) -> list[int]:
    return [int(length) for length in np.random.default_rng(seed).integers(1, most, rows)]


def doc_lengths() -> list[int]:
    lengths = some_lengths(1, ROWS)
    for row in EMPTY_ROWS:
        lengths[row] = 0
    return lengths


DOCS = texts(2, doc_lengths())
QUERY_LENGTHS = [1, 31, 32, 33, 70, *some_lengths(3, 35)]
QUERIES = texts(4, QUERY_LENGTHS)


@dataclass
class Index:
    """Some parts and the pages that they share."""

    parts: list[MultiPart]
    pages: list[Page]

    def searcher(self, live: Sequence[Mask | None] | None = None) -> MultiSearcher:
        return LENS.searcher(self.parts, live or [None] * len(self.parts), self.pages)

    def decode(self) -> list[Floats]:
        """The tokens of every row."""
        codebook = Codebook(self.pages)
        rows = []
        for part in self.parts:
            decoded = codebook.decode(part.codes)
            rows += [decoded[start:end] for start, end in pairwise(part.offsets)]
        return rows


def share(encoded: Encoded, pages: Sequence[Page], folder: Path, by: MultiLens = LENS) -> list[Page]:
    """The pages, with one more if the batch calls for it."""
    return [*pages, by.open_shared(folder)] if by.share(encoded, pages, folder) else list(pages)


def build(encoded: Encoded, pages: Sequence[Page], folder: Path, by: MultiLens = LENS) -> MultiPart:
    by.build(encoded, folder, pages)
    return by.open(folder)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("index")
    pages = share(DOCS, [], folder / "page")
    assert len(pages[0].leaders) > 8  # more than the methods reach
    return Index([build(DOCS, pages, folder / "part")], pages)


@pytest.fixture(scope="module")
def in_parts(index: Index, tmp_path_factory: pytest.TempPathFactory) -> Index:
    """The same rows in four parts, of which one has a single row and one no token."""
    folder = tmp_path_factory.mktemp("parts")
    edges = [0, 13, 15, 16, 400, ROWS]
    parts = [build(take(DOCS, np.arange(start, end)), index.pages, folder / str(start)) for start, end in pairwise(edges)]
    return Index(parts, index.pages)


def slow_maxsim(queries: Encoded, rows: Sequence[Floats]) -> NDArray[np.float64]:
    """(queries, rows)."""
    assert queries.multi is not None
    scores = np.empty((len(queries.multi), len(rows)))
    for query in range(len(scores)):
        asked = tokens_of(queries, query).astype(np.float64)
        scores[query] = [(asked @ row.T.astype(np.float64)).max(axis=1, initial=-np.inf).sum() for row in rows]
    return scores


def require_best(top: TopK, scores: NDArray[np.float64], atol: float = 1e-4) -> None:
    """The answer has the highest of all scores, in order, with rows that have them."""
    k = top.rows.shape[1]
    ordered = -np.sort(-scores, axis=1)[:, :k]
    for query in range(len(scores)):
        found = int((top.rows[query] >= 0).sum())
        assert found == min(k, int(np.isfinite(scores[query]).sum()))
        assert (top.rows[query, found:] == -1).all() and (top.scores[query, found:] == -np.inf).all()
        assert len(set(top.rows[query, :found].tolist())) == found
        np.testing.assert_allclose(top.scores[query, :found], ordered[query, :found], atol=atol)
        np.testing.assert_allclose(scores[query, top.rows[query, :found]], ordered[query, :found], atol=atol)


def require_own_scores(top: TopK, scores: NDArray[np.float64], atol: float = 1e-4) -> None:
    """What was found has its own score, in order, each row once."""
    for query in range(len(scores)):
        found = top.rows[query][top.rows[query] >= 0]
        np.testing.assert_allclose(top.scores[query, : len(found)], scores[query, found], atol=atol)
        assert (np.diff(top.scores[query, : len(found)]) <= 0).all()
        assert len(set(found.tolist())) == len(found)


def recall(top: TopK, truth: TopK) -> float:
    return float(np.mean([np.isin(rows, best).mean() for rows, best in zip(top.rows, truth.rows, strict=True)]))


def same(top: TopK, other: TopK) -> bool:
    return top.rows.tobytes() == other.rows.tobytes() and top.scores.tobytes() == other.scores.tobytes()


def test_exact_is_maxsim_over_all_decoded_tokens(index: Index, in_parts: Index) -> None:
    scores = slow_maxsim(QUERIES, index.decode())
    assert np.isneginf(scores[:, EMPTY_ROWS]).all()
    for searcher in (index.searcher(), in_parts.searcher()):
        require_best(searcher.search(QUERIES, 10, exact=True), scores)
        require_best(searcher.search(QUERIES, 10, params=METHODS["exact"]), scores)


def test_codes_change_little(index: Index) -> None:
    # Against the vectors as they were: what four bits lose is far less than what tells good rows from others.
    assert DOCS.multi is not None
    truth = slow_maxsim(QUERIES, np.split(DOCS.multi.vectors, DOCS.multi.offsets[1:-1]))
    top = index.searcher().search(QUERIES, 10, exact=True)
    best = np.argsort(-truth, axis=1)[:, :10]
    assert np.mean([np.isin(rows, other).mean() for rows, other in zip(top.rows, best, strict=True)]) > 0.95


def test_plaid_finds_nearly_all_and_scores_by_maxsim(index: Index, in_parts: Index) -> None:
    scores = slow_maxsim(QUERIES, index.decode())
    for searcher in (index.searcher(), in_parts.searcher()):
        truth = searcher.search(QUERIES, 10, exact=True)
        top = searcher.search(QUERIES, 10)
        assert recall(top, truth) >= 0.97
        require_own_scores(top, scores)
        less = searcher.search(QUERIES, 10, params=METHODS["plaid"])
        assert 0.7 <= recall(less, truth) < 1  # 1 would mean that this data does not put the searcher to the test
        require_own_scores(less, scores)


def test_plaid_is_exact_if_it_may_look_at_everything(index: Index, in_parts: Index) -> None:
    for searcher in (index.searcher(), in_parts.searcher()):
        truth = searcher.search(QUERIES, 10, exact=True)
        assert same(searcher.search(QUERIES, 10, params=EVERYTHING), truth)
        # even if no margin is left, the last step scores all tokens
        none = searcher.search(QUERIES, 10, params=replace(EVERYTHING, margin=0))
        assert recall(none, truth) >= 0.85


@pytest.mark.parametrize("margin", [0.05, 0.1, 0.3])
def test_a_wider_margin_loses_no_row(index: Index, tmp_path: Path, margin: float) -> None:
    # Short rows are far from some tokens of a long query. All rows are candidates here, so what is lost is lost by the margin;
    # but a row of one token has its MaxSim with any margin, and one of two tokens nearly.
    short = Index([build(texts(30, [1] * 300 + [2] * 300), index.pages, tmp_path)], index.pages)
    queries = texts(31, [32] * 20)
    truth = short.searcher().search(queries, 10, exact=True)
    top = short.searcher().search(queries, 10, params=replace(EVERYTHING, candidates=599, margin=margin))
    assert recall(top, truth) >= 0.97


def test_plaid_finds_nearly_all_of_vectors_of_other_lengths(tmp_path: Path) -> None:
    docs, queries = stretched(DOCS), stretched(QUERIES)
    pages = share(docs, [], tmp_path / "page")
    assert not pages[0].normalised
    far = Index([build(docs, pages, tmp_path / "part")], pages)
    scores = slow_maxsim(queries, far.decode())
    truth = far.searcher().search(queries, 10, exact=True)
    require_best(truth, scores, atol=1e-3)
    top = far.searcher().search(queries, 10)
    require_own_scores(top, scores, atol=1e-3)
    # Lengths that have nothing to do with the direction are the hardest case: a long token of a far centroid may be the best.
    assert recall(top, truth) >= 0.8
    assert recall(far.searcher().search(queries, 10, params=MultiParams(margin=0.5)), truth) >= 0.97


def test_queries_of_unequal_lengths_are_answered_as_well_as_others(index: Index, in_parts: Index) -> None:
    """As models with weighted queries give them, over documents of length 1."""
    queries = stretched(QUERIES)
    scores = slow_maxsim(queries, index.decode())
    for searcher in (index.searcher(), in_parts.searcher()):
        truth = searcher.search(queries, 10, exact=True)
        require_best(truth, scores)
        top = searcher.search(queries, 10)
        require_own_scores(top, scores)
        assert recall(top, truth) >= 0.97
        assert same(searcher.search(queries, 10, params=EVERYTHING), truth)


@pytest.mark.parametrize("bits, dims", [(1, 128), (2, 64)])
def test_fewer_bits_are_searched_as_well(tmp_path: Path, bits: int, dims: int) -> None:
    random = np.random.default_rng(bits)
    middle = random.normal(size=(40, dims))
    docs = ragged(unit(middle[random.integers(0, 40, 2000)] + 0.5 * random.normal(size=(2000, dims))), [10] * 200)
    queries = ragged(unit(middle[random.integers(0, 40, 100)] + 0.5 * random.normal(size=(100, dims))), [10] * 10)
    few = lens(bits=bits, centroids=64)
    pages = share(docs, [], tmp_path / "page", few)
    rough = Index([build(docs, pages, tmp_path / "part", few)], pages)
    assert few.figures(rough.parts, pages)["bits"] == bits and rough.parts[0].codes.residuals.shape == (2000, 16)
    scores = slow_maxsim(queries, rough.decode())
    truth = rough.searcher().search(queries, 10, exact=True)
    require_best(truth, scores)
    top = rough.searcher().search(queries, 10, params=MultiParams("plaid", candidates=100))
    require_own_scores(top, scores)
    assert recall(top, truth) >= 0.9


@every_method
def test_a_batch_is_its_queries_one_by_one(index: Index, params: MultiParams) -> None:
    searcher = index.searcher()
    together = searcher.search(QUERIES, 10, params=params)
    for query in range(0, len(QUERY_LENGTHS), 3):
        alone = searcher.search(take(QUERIES, np.array([query])), 10, params=params)
        assert alone.rows[0].tolist() == together.rows[query].tolist()
        assert alone.scores[0].tolist() == together.scores[query].tolist()


@every_method
def test_several_parts_answer_as_one(index: Index, in_parts: Index, params: MultiParams) -> None:
    one = index.searcher().search(QUERIES, 10, params=params)
    several = in_parts.searcher().search(QUERIES, 10, params=params)
    assert several.rows.tolist() == one.rows.tolist()
    np.testing.assert_allclose(several.scores, one.scores, atol=1e-5)


def test_several_parts_answer_as_one_with_few_candidates(index: Index, in_parts: Index) -> None:
    for candidates in (12, 20, 32):
        params = MultiParams("plaid", reach=4, probes=4, candidates=candidates)
        one = index.searcher().search(QUERIES, 10, params=params)
        several = in_parts.searcher().search(QUERIES, 10, params=params)
        assert several.rows.tolist() == one.rows.tolist()


@every_method
@pytest.mark.parametrize("k", [1, 2, 300, ROWS - len(EMPTY_ROWS), ROWS + 5])
def test_any_number_of_rows_can_be_asked_for(index: Index, in_parts: Index, params: MultiParams, k: int) -> None:
    queries = take(QUERIES, np.arange(6))
    for searcher in (index.searcher(), in_parts.searcher()):
        top = searcher.search(queries, k, params=params)
        assert top.rows.shape == top.scores.shape == (6, k)
        count = min(k, ROWS - len(EMPTY_ROWS))
        assert (top.rows[:, :count] >= 0).all() and (top.rows[:, count:] == -1).all()
        assert not np.isin(top.rows, EMPTY_ROWS).any()  # rows without tokens are never found
        assert all(len(set(rows[:count].tolist())) == count for rows in top.rows)
    if not default_params(params, k, 0).imputes and k >= 300:
        scores = slow_maxsim(queries, index.decode())
        (require_best if k > 300 or params.method == "exact" else require_own_scores)(top, scores)


@every_method
@pytest.mark.parametrize("share_of_rows", [0.9, 0.3, 0.02])
def test_deleted_rows_and_those_filtered_out_are_not_found(
    index: Index, in_parts: Index, params: MultiParams, share_of_rows: float
) -> None:
    mask = np.random.default_rng(5).random(ROWS) < share_of_rows
    edges = np.cumsum([len(part) for part in in_parts.parts])[:-1]
    answers = [
        index.searcher([mask]).search(QUERIES, 10, params=params),
        index.searcher().search(QUERIES, 10, mask, params=params),
        in_parts.searcher(np.split(mask, edges)).search(QUERIES, 10, params=params),
        in_parts.searcher().search(QUERIES, 10, mask, params=params),
    ]
    for top in answers:
        assert mask[top.rows[top.rows >= 0]].all()
        count = min(10, int(mask.sum()) - int(mask[EMPTY_ROWS].sum()))
        assert ((top.rows >= 0).sum(axis=1) == count).all()
        assert not np.isin(top.rows, EMPTY_ROWS).any()
    assert same(answers[0], answers[1]) and same(answers[2], answers[3])
    if not default_params(params, 1, 0).imputes:
        scores = np.where(mask, slow_maxsim(QUERIES, index.decode()), -np.inf)
        for top in answers:
            (require_best if params.method == "exact" else require_own_scores)(top, scores)


@every_method
def test_a_filter_that_leaves_nothing(index: Index, params: MultiParams) -> None:
    for nothing in (np.zeros(ROWS, np.bool_), np.isin(np.arange(ROWS), EMPTY_ROWS)):
        top = index.searcher().search(QUERIES, 3, nothing, params=params)
        assert (top.rows == -1).all() and (top.scores == -np.inf).all()


@every_method
def test_a_filter_on_rows_far_from_the_query_is_answered_in_full(index: Index, params: MultiParams) -> None:
    scores = slow_maxsim(take(QUERIES, np.array([2])), index.decode())[0]
    scores[EMPTY_ROWS] = np.inf
    mask = np.isin(np.arange(ROWS), np.argsort(scores)[:100])
    top = index.searcher().search(take(QUERIES, np.array([2])), 10, mask, params=params)
    assert (top.rows >= 0).all() and mask[top.rows].all()


def test_equal_rows_are_found_in_their_order(index: Index, tmp_path: Path) -> None:
    twice = Encoded(multi=Multi.concat([DOCS.multi, DOCS.multi])) if DOCS.multi else Encoded()
    double = Index([build(twice, index.pages, tmp_path)], index.pages)
    for params in METHODS.values():
        top = double.searcher().search(QUERIES, 20, params=params)
        for rows, scores in zip(top.rows.tolist(), top.scores.tolist(), strict=True):
            assert rows == sorted(rows, key=lambda row: (-scores[rows.index(row)], row))
    exact = double.searcher().search(QUERIES, 20, exact=True)
    assert (exact.rows[:, 1::2] == exact.rows[:, ::2] + ROWS).all()


@every_method
def test_a_query_without_tokens_finds_nothing(index: Index, params: MultiParams) -> None:
    assert QUERIES.multi is not None
    queries = ragged(QUERIES.multi.vectors[:5], [0, 5, 0])
    top = index.searcher().search(queries, 4, params=params)
    assert (top.rows[[0, 2]] == -1).all() and (top.rows[1] >= 0).all()


@every_method
def test_a_query_of_zeros_is_answered(index: Index, params: MultiParams) -> None:
    top = index.searcher().search(ragged(np.zeros((3, DIMS)), [3]), 4, params=params)
    assert (top.rows >= 0).all()
    np.testing.assert_allclose(top.scores, 0, atol=1e-6)


@every_method
def test_nothing_to_search(index: Index, tmp_path: Path, params: MultiParams) -> None:
    for searcher in (LENS.searcher([], [], []), LENS.searcher([], [], index.pages)):
        assert (searcher.search(QUERIES, 3, params=params).rows == -1).all()
    blank = build(ragged(np.zeros((0, DIMS)), [0, 0]), index.pages, tmp_path)
    assert (LENS.searcher([blank], [None], index.pages).search(QUERIES, 3, params=params).rows == -1).all()


def test_scores_and_tokens_of_chosen_rows(index: Index, in_parts: Index) -> None:
    scores, decoded = slow_maxsim(QUERIES, index.decode()), index.decode()
    rows = np.random.default_rng(6).integers(-1, ROWS, (len(QUERY_LENGTHS), 30))
    rows[:, :3] = [13, -1, ROWS - 2]
    expected = np.where(rows >= 0, np.take_along_axis(scores, np.maximum(rows, 0), axis=1), -np.inf)
    for searcher in (index.searcher(), in_parts.searcher()):
        np.testing.assert_allclose(searcher.score(QUERIES, rows), expected, atol=1e-4)
        for row in (0, 1, 12, 13, 14, 15, 16, 399, 400, ROWS - 1):
            assert searcher.decode(row).tolist() == decoded[row].tolist()
            assert len(searcher.codes(row)) == len(decoded[row])
        assert searcher.dim == DIMS


# Four centroids, the first four directions; every token is one of them, perhaps with ¼ of direction 4 or 5 added.
# The similarities of the query tokens A and B with the centroids are 1 ½ ¼ 0 and 0 ¼ ½ 1; A gains ¼ by direction 4, B by 5.
ASKED = {"A": [1, 0.5, 0.25, 0, 1, 0], "B": [0, 0.25, 0.5, 1, 0, 1]}
HELD: list[list[tuple[int, int | None]]] = [
    [(0, None), (1, None)],  # A 1, ½
    [(0, 4), (2, None)],  # A 1¼; B ½
    [(3, None), (1, 4)],  # A ¾; B 1
    [(3, 5)],  # B 1¼
    [(2, None), (2, 5)],  # B ½, ¾
    [],
]
MAXSIM = {0: 1 + 0.25, 1: 1.25 + 0.5, 2: 0.75 + 1, 3: 0 + 1.25, 4: 0.25 + 0.75}


def hand_page() -> Page:
    eye = np.eye(DIMS, dtype=np.float32)
    quarter = np.full(DIMS, 0.25, np.float32)
    cutoffs, levels = np.full(15, 1e9, np.float32), np.zeros(16, np.int8)
    cutoffs[0], levels[1] = 0.5, 1  # code 0 is nothing, code 1 is a step of ¼
    leaders, sizes = unit(np.stack([eye[0] + eye[1], eye[2] + eye[3]])), np.ones(256, np.float32)
    flags = (np.zeros((), np.float32), np.array(False))
    return Page(leaders, np.array([0, 2, 4]), eye[:4], quarter, quarter, sizes, cutoffs, levels, *flags)


def hand_docs(rows: Sequence[int]) -> Encoded:
    eye = np.eye(DIMS, dtype=np.float32)
    held = [HELD[row] for row in rows]
    vectors = [eye[c] + (0 if more is None else 0.25 * eye[more]) for row in held for c, more in row]
    return ragged(np.reshape(vectors, (-1, DIMS)), [len(row) for row in held])


def hand_query() -> Encoded:
    return ragged(np.pad(np.array(list(ASKED.values())), ((0, 0), (0, DIMS - 6))), [2])


@pytest.fixture(params=[[[0, 1, 2, 3, 4, 5]], [[0, 1, 2], [3, 4, 5]], [[0], [], [1, 2, 3, 4], [5]]], ids=["one", "two", "four"])
def by_hand(request: pytest.FixtureRequest, tmp_path: Path) -> Index:
    """The six rows in one part, two or four."""
    hand_page().save(tmp_path / "page")
    pages = [Page.open(tmp_path / "page")]
    return Index([build(hand_docs(rows), pages, tmp_path / str(i)) for i, rows in enumerate(request.param)], pages)


def found(top: TopK) -> dict[int, float]:
    assert (np.diff(top.scores[0][top.rows[0] >= 0]) <= 0).all()
    return {row: score for row, score in zip(top.rows[0].tolist(), top.scores[0].tolist(), strict=True) if row >= 0}


def test_the_example_is_what_it_says(by_hand: Index) -> None:
    assert [row.tolist() for row in by_hand.decode()] == [tokens_of(hand_docs(range(6)), row).tolist() for row in range(6)]
    nearest = np.concatenate([part.codes.nearest for part in by_hand.parts])
    assert nearest.tolist() == [0, 1, 0, 2, 3, 1, 3, 2, 2]
    assert found(by_hand.searcher().search(hand_query(), 6, exact=True)) == pytest.approx(MAXSIM)


@pytest.mark.parametrize(
    "probes, nth, imputed, scores",
    [
        # With 2 probes A meets 1¼ 1 ¾ ½ and B meets 1¼ 1 ¾ ½ ½.
        (2, 1, [1.25, 1.25], {0: 2.5, 1: 2.5, 2: 2.5, 3: 2.5, 4: 2.5}),
        (2, 2, [1, 1], {0: 1 + 1, 1: 1.25 + 1, 2: 1 + 1, 3: 1 + 1.25, 4: 1 + 1}),
        (2, 3, [0.75, 0.75], {0: 1 + 0.75, 1: 1.25 + 0.75, 2: 0.75 + 1, 3: 0.75 + 1.25, 4: 0.75 + 0.75}),
        (2, 4, [0.5, 0.5], {0: 1 + 0.5, 1: 1.25 + 0.5, 2: 0.75 + 1, 3: 0.5 + 1.25, 4: 0.5 + 0.75}),
        # A has no fifth: then the last centroid that it probed, centroid 1, tells.
        (2, 5, [0.5, 0.5], {0: 1 + 0.5, 1: 1.25 + 0.5, 2: 0.75 + 1, 3: 0.5 + 1.25, 4: 0.5 + 0.75}),
        # With 1 probe A meets 1¼ 1 and B too; row 4 is met by none.
        (1, 2, [1, 1], {0: 1 + 1, 1: 1.25 + 1, 2: 1 + 1, 3: 1 + 1.25, 4: 1 + 1}),
        # With 4 all tokens are met: A 1¼ 1 ¾ ½ ¼ ¼ ¼ 0 0, B 1¼ 1 ¾ ½ ½ ¼ ¼ 0 0. The last is 0, and scores are MaxSim.
        (4, 5, [0.25, 0.5], {0: 1 + 0.5, 1: 1.25 + 0.5, 2: 0.75 + 1, 3: 0.25 + 1.25, 4: 0.25 + 0.75}),
        (4, 9, [0, 0], MAXSIM),
    ],
)
def test_a_missing_similarity_is_the_nth_best(
    by_hand: Index, probes: int, nth: int, imputed: list[float], scores: dict[int, float]
) -> None:
    params = MultiParams("xtr", reach=2, probes=probes, candidates=0, nth=nth)
    searcher = by_hand.searcher()
    settings = searcher.settings(params, 5)
    look = searcher.look(tokens_of(hand_query(), 0), settings)
    np.testing.assert_allclose(searcher.imputed(look, settings), imputed, atol=1e-5)
    for k in (5, 6):
        assert found(searcher.search(hand_query(), k, params=params)) == pytest.approx(scores, abs=1e-5)
    best = found(searcher.search(hand_query(), 2, params=params))
    assert sorted(best.values()) == pytest.approx(sorted(scores.values())[-2:], abs=1e-5)
    assert all(scores[row] == pytest.approx(score, abs=1e-5) for row, score in best.items())


@pytest.mark.parametrize(
    "probes, tokens, imputed, scores",
    [
        # Centroids 0 and 3, the best for A and B, have 2 tokens each; 1 and 2, the next, have 2 and 3.
        (2, 2, [1, 1], {0: 1 + 1, 1: 1.25 + 1, 2: 1 + 1, 3: 1 + 1.25, 4: 1 + 1}),
        (2, 3, [0.5, 0.5], {0: 1 + 0.5, 1: 1.25 + 0.5, 2: 0.75 + 1, 3: 0.5 + 1.25, 4: 0.5 + 0.75}),
        (2, 1000, [0.5, 0.5], {0: 1 + 0.5, 1: 1.25 + 0.5, 2: 0.75 + 1, 3: 0.5 + 1.25, 4: 0.5 + 0.75}),
        (4, 1000, [0, 0], MAXSIM),
    ],
)
def test_a_missing_similarity_is_estimated_as_warp_does(
    by_hand: Index, probes: int, tokens: int, imputed: list[float], scores: dict[int, float]
) -> None:
    params = MultiParams("xtr", reach=2, probes=probes, candidates=0, tokens=tokens)
    searcher = by_hand.searcher()
    settings = searcher.settings(params, 5)
    look = searcher.look(tokens_of(hand_query(), 0), settings)
    np.testing.assert_allclose(searcher.imputed(look, settings), imputed, atol=1e-5)
    assert found(searcher.search(hand_query(), 5, params=params)) == pytest.approx(scores, abs=1e-5)


def test_the_estimate_counts_tokens(by_hand: Index) -> None:
    # B goes through the centroids 3, 2, 1 with 2, 3 and 2 tokens (of 2, 2 and 2 rows): five are reached at centroid 2, for
    # which B has ½. A goes through 0, 1, 2 with 2, 2 and 3: five are reached at centroid 2, for which A has ¼.
    params = MultiParams("xtr", reach=2, probes=3, candidates=0, tokens=5)
    searcher = by_hand.searcher()
    settings = searcher.settings(params, 5)
    look = searcher.look(tokens_of(hand_query(), 0), settings)
    np.testing.assert_allclose(searcher.imputed(look, settings), [0.25, 0.5], atol=1e-5)


def test_the_nth_best_is_of_the_allowed_rows(by_hand: Index) -> None:
    # Without row 1 A meets 1 ¾ ½ and B meets 1¼ 1 ¾ ½.
    params = MultiParams("xtr", reach=2, probes=2, candidates=0, nth=2)
    allowed = np.array([True, False, True, True, True, True])
    expected = {0: 1 + 1, 2: 0.75 + 1, 3: 0.75 + 1.25, 4: 0.75 + 1}
    assert found(by_hand.searcher().search(hand_query(), 5, allowed, params=params)) == pytest.approx(expected, abs=1e-5)
    live = np.split(allowed, np.cumsum([len(part) for part in by_hand.parts])[:-1])
    assert found(by_hand.searcher(live).search(hand_query(), 5, params=params)) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("candidates", [1, 3, 5, 100])
def test_with_candidates_xtr_scores_by_maxsim(by_hand: Index, candidates: int) -> None:
    for options in ({"nth": 2}, {"tokens": 2}, {}):
        params = MultiParams("xtr", reach=2, probes=2, candidates=candidates, **options)
        top = found(by_hand.searcher().search(hand_query(), 3, params=params))
        assert len(top) == 3 and top == pytest.approx({row: MAXSIM[row] for row in top})
    assert found(by_hand.searcher().search(hand_query(), 5, params=params)) == pytest.approx(MAXSIM)


def slow_xtr(index: Index, query: Floats, probes: int, nth: int) -> NDArray[np.float64]:
    """Retrieve the tokens near the best centroids; what is missing counts as the nth best, or as the last centroid."""
    codebook, decoded = Codebook(index.pages), index.decode()
    nearest = np.concatenate([part.codes.nearest for part in index.parts])
    row_of = np.repeat(np.arange(len(decoded)), [len(row) for row in decoded])
    scores = np.zeros(len(decoded))
    for token in query.astype(np.float64):
        near = token @ codebook.centroids.T
        probed = np.argsort(-near)[:probes]
        similar = np.where(np.isin(nearest, probed), np.concatenate(decoded) @ token, -np.inf)
        ordered = np.sort(similar[np.isfinite(similar)])
        imputed = ordered[-nth] if len(ordered) >= nth else near[probed[-1]]
        best = np.full(len(decoded), imputed)
        np.maximum.at(best, row_of, similar)
        scores += best
    scores[[len(row) == 0 for row in decoded]] = -np.inf
    return scores


@pytest.mark.parametrize("asked", [QUERIES, stretched(QUERIES)], ids=["of length 1", "of unequal lengths"])
@pytest.mark.parametrize("nth", [1, 50, 400, 100_000])
def test_xtr_is_its_slow_twin(index: Index, in_parts: Index, nth: int, asked: Encoded) -> None:
    params = MultiParams("xtr", reach=10_000, probes=20, candidates=0, nth=nth)
    queries = take(asked, np.arange(0, len(QUERY_LENGTHS), 4))
    assert queries.multi is not None
    scores = np.array([slow_xtr(index, tokens_of(queries, query), 20, nth) for query in range(len(queries.multi))])
    for searcher in (index.searcher(), in_parts.searcher()):
        # 16 bits of the query, and a similarity from its parts: a little less exact than MaxSim
        require_best(searcher.search(queries, 10, params=params), scores, atol=2e-3)


def test_pooled_tokens_are_half_as_many_and_as_long(tmp_path: Path) -> None:
    half = lens(pool=2)
    pages = share(DOCS, [], tmp_path / "page", half)
    part = build(DOCS, pages, tmp_path / "part", half)
    assert np.diff(part.offsets).tolist() == [-(-length // 2) for length in doc_lengths()]
    pooled = half.tokens(DOCS)
    np.testing.assert_allclose(np.linalg.norm(pooled.vectors, axis=1), 1, atol=1e-5)
    assert pages[0].normalised
    whole = LENS.tokens(DOCS)
    assert whole is DOCS.multi
    # a pooled token is named by its first, and every text keeps its own
    text_of = np.repeat(np.arange(ROWS), doc_lengths())
    assert text_of[pooled.tokens].tolist() == np.repeat(np.arange(ROWS), np.diff(pooled.offsets)).tolist()
    few = Index([part], pages)
    require_best(few.searcher().search(QUERIES, 10, exact=True), slow_maxsim(QUERIES, few.decode()))
    assert DOCS.multi is not None
    truth = slow_maxsim(QUERIES, np.split(DOCS.multi.vectors, DOCS.multi.offsets[1:-1]))
    best = truth.argmax(axis=1)
    top = few.searcher().search(QUERIES, 10, exact=True)
    assert np.mean([row in rows for row, rows in zip(best, top.rows, strict=True)]) >= 0.9


def test_pooling_keeps_lengths_that_are_not_one() -> None:
    assert DOCS.multi is not None
    far = stretched(DOCS)
    assert far.multi is not None
    pooled = lens(pool=2).tokens(far)
    one_text = slice(pooled.offsets[1], pooled.offsets[2])
    before = tokens_of(far, 1)
    assert np.linalg.norm(pooled.vectors[one_text], axis=1).mean() == pytest.approx(
        np.linalg.norm(before, axis=1).mean(), rel=0.4
    )
    assert np.abs(np.linalg.norm(pooled.vectors, axis=1) - 1).max() > 0.5


def flat(seed: int, tokens: int, centres: int = 0) -> Encoded:
    """Texts of ten tokens."""
    random = np.random.default_rng(seed)
    middle = np.random.default_rng(centres).normal(size=(CLUSTERS, DIMS))
    vectors = middle[random.integers(0, CLUSTERS, tokens)] + 0.5 * random.normal(size=(tokens, DIMS))
    return ragged(unit(vectors), [10] * (tokens // 10))


def test_the_first_tokens_train_the_codebook(tmp_path: Path) -> None:
    assert not LENS.share(ragged(np.zeros((0, DIMS)), [0, 0]), [], tmp_path / "none")
    assert not (tmp_path / "none").exists()
    pages = share(flat(1, 1000), [], tmp_path / "first")
    assert len(pages) == 1
    wanted = centroid_count(1000)
    assert wanted == 128 and 0.9 * wanted <= len(pages[0].centroids) <= 1.1 * wanted
    chosen = share(flat(1, 1000), [], tmp_path / "chosen", lens(centroids=10))
    assert len(chosen[0].centroids) in (9, 10, 11)


@pytest.mark.parametrize("centroids", [64, None])
@pytest.mark.parametrize("tokens", [500, 4000])
def test_a_batch_like_the_first_adds_nothing(tmp_path: Path, centroids: int | None, tokens: int) -> None:
    some = lens(centroids=centroids)
    pages = share(flat(1, 4000), [], tmp_path / "first", some)
    for seed in (2, 3, 4):
        assert not some.share(flat(seed, tokens), pages, tmp_path / str(seed))
        assert not (tmp_path / str(seed)).exists()


def test_a_batch_without_tokens_adds_nothing(index: Index, tmp_path: Path) -> None:
    assert not LENS.share(ragged(np.zeros((0, DIMS)), [0]), index.pages, tmp_path / "more")


def test_a_much_larger_batch_adds_a_page(tmp_path: Path) -> None:
    pages = share(flat(1, 400), [], tmp_path / "first")
    before = len(pages[0].centroids)
    pages = share(flat(2, 10_000), pages, tmp_path / "second")
    assert len(pages) == 2
    assert before + len(pages[1].centroids) == pytest.approx(centroid_count(10_000), rel=0.1)
    assert Codebook(pages).encode(tokens(flat(3, 1000)))[1].mean() < Codebook(pages[:1]).encode(tokens(flat(3, 1000)))[1].mean()
    # who chose a number of centroids gets no more of the same
    chosen = lens(centroids=64)
    first = share(flat(1, 4000), [], tmp_path / "chosen", chosen)
    assert not chosen.share(flat(2, 20_000), first, tmp_path / "no more")


def tokens(encoded: Encoded) -> Floats:
    assert encoded.multi is not None
    return encoded.multi.vectors


@pytest.mark.parametrize("centroids", [64, None])
def test_a_quite_different_batch_adds_a_page(tmp_path: Path, centroids: int | None) -> None:
    some = lens(centroids=centroids)
    pages = share(flat(1, 4000), [], tmp_path / "first", some)
    strange = flat(2, 4000, centres=9)
    both = share(strange, pages, tmp_path / "second", some)
    assert len(both) == 2
    before, after = (Codebook(some_pages).encode(tokens(strange))[1].mean() for some_pages in (pages, both))
    assert after < 0.8 * before
    used = Codebook(both).nearest(tokens(strange))
    assert (used >= len(pages[0].centroids)).mean() > 0.5


def test_pages_come_to_an_end(tmp_path: Path) -> None:
    # Two kinds of documents in turn: after a while the codebook knows both.
    some = lens(centroids=128)
    pages: list[Page] = []
    for seed in range(12):
        pages = share(flat(seed, 2000, centres=seed % 2), pages, tmp_path / str(seed), some)
    assert len(pages) <= 6
    assert not some.share(flat(99, 2000, centres=1), pages, tmp_path / "last")


def test_one_zero_vector_does_not_make_a_page_of_another_kind(tmp_path: Path) -> None:
    some = lens(centroids=64)
    pages = share(flat(1, 4000), [], tmp_path / "first", some)
    assert pages[0].normalised
    strange = flat(2, 4000, centres=9)
    tokens(strange)[17] = 0
    both = share(strange, pages, tmp_path / "second", some)
    # Centroids of both pages are compared with the same tokens, so they must have the same length.
    np.testing.assert_allclose(np.linalg.norm(both[1].centroids, axis=1), 1, atol=1e-4)


def test_a_tiny_first_batch_is_made_up_for(tmp_path: Path) -> None:
    pages = share(texts(1, [3]), [], tmp_path / "tiny")
    for seed in range(4):
        pages = share(flat(seed, 3000), pages, tmp_path / str(seed))
    fresh = share(flat(0, 3000), [], tmp_path / "fresh")
    other = tokens(flat(50, 2000))
    assert Codebook(pages).encode(other)[1].mean() < 2 * Codebook(fresh).encode(other)[1].mean()
    assert len(pages) <= 3


def test_drift_tells_that_later_tokens_fit_worse(tmp_path: Path) -> None:
    docs, strange = flat(1, 4000), flat(2, 4000, centres=9)
    some = lens(centroids=64)
    pages = share(docs, [], tmp_path / "page", some)
    parts = [build(docs, pages, tmp_path / "docs", some)]
    figures = some.figures(parts, pages)
    assert figures["tokens"] == 4000 and figures["dimensions"] == DIMS and figures["bits"] == 4
    assert figures["centroids"] == len(pages[0].centroids) and figures["centroids of a fresh codebook"] == 64
    assert figures["drift"] == pytest.approx(1, abs=0.1)
    assert figures["drift"] == pytest.approx(figures["error"] / figures["error at training"], rel=0.01)
    assert "advice" not in figures
    drifts = [figures["drift"]]
    for batch in range(3):
        parts.append(build(strange, pages, tmp_path / str(batch), some))
        drifts.append(some.figures(parts, pages)["drift"])
    assert drifts == sorted(drifts) and drifts[1] > 1.5 and drifts[3] > drifts[1] + 0.5
    assert "--retrain" in some.figures(parts, pages)["advice"]
    # with a page of their own they fit
    both = share(strange, pages, tmp_path / "second", some)
    mended = [parts[0], build(strange, both, tmp_path / "mended", some)]
    assert some.figures(mended, both)["drift"] < some.figures(parts[:2], pages)["drift"] - 0.3


def test_figures_of_nothing(index: Index, tmp_path: Path) -> None:
    assert LENS.figures([], []) == {"tokens": 0}
    blank = build(ragged(np.zeros((0, DIMS)), [0, 0]), [], tmp_path)
    assert LENS.figures([blank], []) == {"tokens": 0}
    assert LENS.figures([blank], index.pages) == {"tokens": 0}


def require_same_part(part: MultiPart, other: MultiPart) -> None:
    for name in ("offsets", "list_ptr", "list_rows"):
        first, second = getattr(part, name), getattr(other, name)
        assert (first.dtype, first.tolist()) == (second.dtype, second.tolist())
    for name in CODE_ARRAYS:
        first, second = getattr(part.codes, name), getattr(other.codes, name)
        assert (first.dtype, first.shape, first.tobytes()) == (second.dtype, second.shape, second.tobytes())


@pytest.mark.parametrize("copy_rows", [4096, 7])
def test_a_merge_is_a_build_of_the_kept_rows(
    index: Index, in_parts: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copy_rows: int
) -> None:
    monkeypatch.setattr(module, "COPY_ROWS", copy_rows)
    mask = np.random.default_rng(7).random(ROWS) < 0.6
    keep = np.split(mask, np.cumsum([len(part) for part in in_parts.parts])[:-1])
    LENS.merge(in_parts.parts, keep, tmp_path / "merged", index.pages)
    merged = LENS.open(tmp_path / "merged")
    rebuilt = build(take(DOCS, np.flatnonzero(mask)), index.pages, tmp_path / "rebuilt")
    require_same_part(merged, rebuilt)
    assert merged.error == pytest.approx(rebuilt.error, rel=0.05)
    answers = [LENS.searcher([part], [None], index.pages).search(QUERIES, 10) for part in (merged, rebuilt)]
    assert same(*answers)
    LENS.merge(in_parts.parts, [np.ones(len(part), np.bool_) for part in in_parts.parts], tmp_path / "all", index.pages)
    require_same_part(LENS.open(tmp_path / "all"), index.parts[0])
    assert LENS.open(tmp_path / "all").error == pytest.approx(index.parts[0].error, rel=1e-4)


def test_a_merge_may_leave_nothing(in_parts: Index, tmp_path: Path) -> None:
    LENS.merge(in_parts.parts, [np.zeros(len(part), np.bool_) for part in in_parts.parts], tmp_path, in_parts.pages)
    merged = LENS.open(tmp_path)
    assert (len(merged), len(merged.codes), merged.error) == (0, 0, 0)
    assert (LENS.searcher([merged], [None], in_parts.pages).search(QUERIES, 3).rows == -1).all()


@pytest.fixture(scope="module")
def grown(index: Index, tmp_path_factory: pytest.TempPathFactory) -> Index:
    """A part that is older than the second page of the codebook, and one that uses it."""
    folder = tmp_path_factory.mktemp("grown")
    strange = texts(20, some_lengths(21, 400), centres=9)
    pages = share(strange, index.pages, folder / "page")
    assert len(pages) == 2
    newer = build(strange, pages, folder / "part")
    assert len(newer.list_ptr) == len(Codebook(pages).centroids) + 1 > len(index.parts[0].list_ptr)
    return Index([index.parts[0], newer], pages)


MIXED = Encoded(multi=Multi.concat([encoded.multi for encoded in (QUERIES, texts(22, [8] * 20, centres=9)) if encoded.multi]))


def test_parts_older_than_a_page_answer_with_the_others(index: Index, grown: Index) -> None:
    decoded = grown.decode()
    assert [row.tolist() for row in decoded[:50]] == [row.tolist() for row in index.decode()[:50]]
    scores = slow_maxsim(MIXED, decoded)
    searcher = grown.searcher()
    truth = searcher.search(MIXED, 10, exact=True)
    require_best(truth, scores)
    top = searcher.search(MIXED, 10)
    require_own_scores(top, scores)
    assert recall(top, truth) >= 0.95
    assert (truth.rows[-20:] >= ROWS).mean() > 0.9  # the strange queries find the newer part
    for params in METHODS.values():
        found_rows = searcher.search(MIXED, 10, params=params).rows
        assert (found_rows >= 0).all() and (found_rows[-20:, 0] >= ROWS).mean() > 0.9


def test_a_merge_of_older_and_newer_parts_keeps_all_tokens(grown: Index, tmp_path: Path) -> None:
    keep = [np.random.default_rng(8).random(len(part)) < 0.7 for part in grown.parts]
    LENS.merge(grown.parts, keep, tmp_path, grown.pages)
    merged = Index([LENS.open(tmp_path)], grown.pages)
    rows = np.flatnonzero(np.concatenate(keep))
    decoded = grown.decode()
    assert [row.tolist() for row in merged.decode()] == [decoded[row].tolist() for row in rows]
    assert len(merged.parts[0].list_ptr) == len(Codebook(grown.pages).centroids) + 1
    before = grown.searcher().search(MIXED, 10, np.concatenate(keep), exact=True)
    after = merged.searcher().search(MIXED, 10, exact=True)
    assert rows[after.rows].tolist() == before.rows.tolist()
    for params in METHODS.values():
        first = grown.searcher().search(MIXED, 5, np.concatenate(keep), params=params)
        second = merged.searcher().search(MIXED, 5, params=params)
        assert np.mean(rows[second.rows] == first.rows) > 0.95


def test_parts_from_before_the_first_token(index: Index, tmp_path: Path) -> None:
    blank = build(ragged(np.zeros((0, DIMS)), [0, 0, 0]), [], tmp_path / "blank")
    assert (len(blank), len(blank.codes)) == (3, 0)
    mixed = Index([blank, index.parts[0]], index.pages)
    alone = index.searcher()
    for params in METHODS.values():
        top = mixed.searcher().search(QUERIES, 5, params=params)
        assert (top.rows - 3).tolist() == alone.search(QUERIES, 5, params=params).rows.tolist()
    assert mixed.searcher().decode(1).shape == (0, DIMS)
    LENS.merge(mixed.parts, [np.ones(3, np.bool_), np.ones(ROWS, np.bool_)], tmp_path / "merged", index.pages)
    merged = LENS.open(tmp_path / "merged")
    assert len(merged) == ROWS + 3 and merged.codes.residuals.tobytes() == index.parts[0].codes.residuals.tobytes()
    LENS.merge([blank, blank], [np.ones(3, np.bool_)] * 2, tmp_path / "blanks", [])
    assert len(LENS.open(tmp_path / "blanks")) == 6
    assert (LENS.searcher([blank], [None], []).search(QUERIES, 2).rows == -1).all()


def test_the_same_texts_make_the_same_files(index: Index, tmp_path: Path) -> None:
    pages = share(DOCS, [], tmp_path / "page")
    build(DOCS, pages, tmp_path / "part")
    build(DOCS, index.pages, tmp_path / "again")
    files = sorted(path.name for path in (tmp_path / "part").iterdir())
    assert files == sorted(path.name for path in (tmp_path / "again").iterdir())
    assert all((tmp_path / "part" / name).read_bytes() == (tmp_path / "again" / name).read_bytes() for name in files)


def test_building_prints_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pages = share(flat(1, 300), [], tmp_path / "page")
    build(flat(1, 300), pages, tmp_path / "part")
    assert tuple(capfd.readouterr()) == ("", "")


@every_method
def test_the_same_search_gives_the_same_bytes(in_parts: Index, params: MultiParams) -> None:
    searcher = in_parts.searcher()
    before = searcher.search(QUERIES, 10, params=params)
    assert same(searcher.search(QUERIES, 10, params=params), before)
    # whatever is asked in between leaves no trace
    for other in (*METHODS.values(), EVERYTHING):
        searcher.search(take(QUERIES, np.arange(3)), 50, params=other)
    searcher.search(QUERIES, 3, np.random.default_rng(9).random(ROWS) < 0.5)
    searcher.search(QUERIES, 300, exact=True)
    assert same(searcher.search(QUERIES, 10, params=params), before)
    assert same(in_parts.searcher().search(QUERIES, 10, params=params), before)


def test_default_parameters_depend_on_nothing_but_what_is_asked(index: Index) -> None:
    first = [default_params(MultiParams(), k, rows) for k in (1, 10, 1000) for rows in (0, 1000, 10**6)]
    index.searcher().search(QUERIES, 1000)
    assert [default_params(MultiParams(), k, rows) for k in (1, 10, 1000) for rows in (0, 1000, 10**6)] == first
    few, many = default_params(MultiParams(), 10, 1000), default_params(MultiParams(), 1000, 1000)
    assert few.candidates >= 10 and many.candidates >= 1000
    assert default_params(MultiParams(), 10, 10**6).probes > few.probes
    assert default_params(MultiParams("xtr"), 10, 1000).imputes and not few.imputes
    assert default_params(MultiParams(probes=7), 10, 1000).probes == 7
    searcher = index.searcher()
    said = MultiParams(**asdict(searcher.settings(None, 10)))
    assert same(searcher.search(QUERIES, 10), searcher.search(QUERIES, 10, params=said))


def one_line(call: Callable[[], object]) -> str:
    with pytest.raises(BadInput) as caught:
        call()
    message = str(caught.value)
    assert message and "\n" not in message
    return message


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("pool", [1, 2])
def test_vectors_that_are_no_numbers_are_refused(index: Index, tmp_path: Path, bad: float, pool: int) -> None:
    docs = flat(1, 100)
    tokens(docs)[3, 2] = bad
    some = lens(pool=pool)
    assert "NaN or infinite" in one_line(lambda: some.share(docs, [], tmp_path / "page"))
    assert "NaN or infinite" in one_line(lambda: some.build(docs, tmp_path / "part", index.pages))


@every_method
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_queries_that_are_no_numbers_are_refused(index: Index, params: MultiParams, bad: float) -> None:
    queries = take(QUERIES, np.array([1]))
    tokens(queries)[3, 2] = bad
    assert "NaN or infinite" in one_line(lambda: index.searcher().search(queries, 5, params=params))


def test_other_dimensions_are_refused(index: Index) -> None:
    message = one_line(lambda: index.searcher().search(ragged(np.ones((2, 64)), [2]), 5))
    assert message == "query tokens have 64 dimensions; expected 32, as the documents"


@pytest.mark.parametrize("bits, dims, multiple", [(4, 48, 32), (4, 8, 32), (2, 32, 64), (1, 64, 128), (4, 33, 32)])
def test_dimensions_that_do_not_fill_the_bytes_are_refused(tmp_path: Path, bits: int, dims: int, multiple: int) -> None:
    docs = ragged(np.ones((4, dims)), [4])
    message = one_line(lambda: lens(bits=bits).share(docs, [], tmp_path))
    assert f"{dims} dimensions" in message and f"multiple of {multiple}" in message


def test_a_query_that_is_too_long_is_refused(index: Index) -> None:
    long = texts(1, [MOST_QUERY_TOKENS + 1])
    for params in METHODS.values():
        message = one_line(lambda params=params: index.searcher().search(long, 5, params=params))  # type: ignore[misc]
        assert message == f"the query has {MOST_QUERY_TOKENS + 1} tokens; expected at most {MOST_QUERY_TOKENS}"
    longest = texts(1, [MOST_QUERY_TOKENS])
    scores = slow_maxsim(longest, index.decode())
    for params in (METHODS["exact"], METHODS["plaid"], METHODS["xtr and MaxSim"]):
        require_own_scores(index.searcher().search(longest, 5, params=params), scores, atol=1e-2)


def test_no_rows_cannot_be_asked_for(index: Index) -> None:
    assert "k is 0" in one_line(lambda: index.searcher().search(QUERIES, 0))


@pytest.mark.parametrize(
    "options, name",
    [
        ({"reach": 0}, "reach"),
        ({"probes": 0}, "probes"),
        ({"probes": -3}, "probes"),
        ({"candidates": -1}, "candidates"),
        ({"margin": -0.1}, "margin"),
        ({"margin": float("nan")}, "margin"),
        ({"nth": -1}, "nth"),
        ({"tokens": -1}, "tokens"),
        ({"method": "warp"}, "method"),
        ({"reach": 2.5}, "reach"),  # would fail deep inside, or not at all
        ({"probes": 2.5}, "probes"),
        ({"nth": 2.5}, "nth"),
    ],
)
def test_impossible_parameters_are_refused(options: dict[str, Any], name: str) -> None:
    assert name in one_line(lambda: MultiParams(**options))


def test_parameters_from_the_command_line() -> None:
    assert parse_params('{"method": "xtr", "nth": 5}') == MultiParams("xtr", nth=5)
    assert parse_params("{}") == MultiParams()
    for text in ("", "xtr", "[1]", '{"probe": 3}', '{"probes": "3"}', '{"reach": 0}', '"x"', "3"):
        one_line(lambda text=text: parse_params(text))  # type: ignore[misc]


@pytest.mark.parametrize("options", [{"bits": 3}, {"bits": 8}, {"centroids": 0}, {"pool": 0}, {"probes": 3}])
def test_impossible_options_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(ValidationError):
        MultiConfig.model_validate(options)

"""The dense lens: exact search by hand, the IVF index against exact search, and explanations word by word."""

import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from trilens import Collection
from trilens.encode.encoder import Encoded
from trilens.encode.model import ModelEncoder
from trilens.errors import BadInput
from trilens.index.dense_part import DensePart
from trilens.index.exact import exact_dense
from trilens.index.topk import TopK
from trilens.lenses.dense import DenseConfig, DenseLens
from trilens.represent import Dense

from .explained import require_sum

ROWS, DIMS, CLUSTERS = 5000, 32, 60
Mask = NDArray[np.bool_]
Vectors = NDArray[np.float32]


ENCODER = ModelEncoder("", ()).heads_encoder("dense")  # without a model: the tests make the vectors
EXACT = DenseLens(ENCODER)
NEAR = DenseLens(ENCODER, DenseConfig(ann_rows=256))


def clustered(random: np.random.Generator, rows: int) -> Vectors:
    """Unit vectors around centres that are the same for every call."""
    centres = np.random.default_rng(0).normal(size=(CLUSTERS, DIMS))
    vectors = centres[random.integers(0, CLUSTERS, rows)] + random.normal(size=(rows, DIMS))
    unit: Vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return unit


DOCS = clustered(np.random.default_rng(1), ROWS)
QUERIES = Encoded(dense=Dense(clustered(np.random.default_rng(2), 100)))


def build(lens: DenseLens, vectors: Vectors, folder: Path) -> DensePart:
    lens.build(Encoded(dense=Dense(vectors)), folder)
    return lens.open(folder)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> DensePart:
    part = build(NEAR, DOCS, tmp_path_factory.mktemp("large"))
    assert part.ann is not None
    return part


def recall(top: TopK, truth: TopK) -> float:
    shared = [np.intersect1d(found[found >= 0], best).size for found, best in zip(top.rows, truth.rows, strict=True)]
    return sum(shared) / top.rows.size


def truth(k: int, allowed: Mask | None = None) -> TopK:
    assert QUERIES.dense is not None
    return exact_dense(QUERIES.dense, Dense(DOCS), k, allowed)


def require_own_scores(top: TopK) -> None:
    assert QUERIES.dense is not None
    scores = QUERIES.dense.vectors @ DOCS.T
    np.testing.assert_allclose(top.scores, np.take_along_axis(scores, top.rows, axis=1), atol=1e-6)
    assert (np.diff(top.scores, axis=1) <= 0).all()
    assert all(len(set(rows.tolist())) == len(rows) for rows in top.rows)


def test_small_parts_are_searched_exactly_by_hand(tmp_path: Path) -> None:
    first = build(EXACT, np.array([[1, 0], [0, 1]], np.float32), tmp_path / "first")
    second = build(EXACT, np.array([[3, 0], [1, 1]], np.float32), tmp_path / "second")
    assert first.ann is second.ann is None
    query = Encoded(dense=Dense(np.array([[1, 2]], np.float32)))
    top = EXACT.searcher([first, second], [None, None]).search(query, 5)
    assert top.rows.tolist() == [[2, 3, 1, 0, -1]]  # 3; 1 + 2; 2; 1
    assert top.scores.tolist() == [[3, 3, 2, 1, -np.inf]]
    live = [np.array([True, False]), None]
    assert EXACT.searcher([first, second], live).search(query, 3).rows.tolist() == [[2, 3, 0]]
    allowed = np.array([False, True, False, True])
    assert EXACT.searcher([first, second], [None, None]).search(query, 3, allowed).rows.tolist() == [[3, 1, -1]]


def test_the_index_finds_nearly_all(large: DensePart) -> None:
    top = NEAR.searcher([large], [None]).search(QUERIES, 10)
    assert 0.9 <= recall(top, truth(10)) < 1  # 1 would mean that the data is too easy
    require_own_scores(top)


def test_exact_leaves_the_index_out(large: DensePart) -> None:
    top = NEAR.searcher([large], [None]).search(QUERIES, 10, exact=True)
    assert top.rows.tolist() == truth(10).rows.tolist()


@pytest.mark.parametrize("share", [0.9, 0.3])
def test_the_index_passes_over_deleted_rows_and_those_filtered_out(large: DensePart, share: float) -> None:
    mask = np.random.default_rng(3).random(ROWS) < share
    deleted = NEAR.searcher([large], [mask]).search(QUERIES, 10)
    filtered = NEAR.searcher([large], [None]).search(QUERIES, 10, mask)
    assert deleted.rows.tolist() == filtered.rows.tolist()
    assert mask[filtered.rows].all()
    assert recall(filtered, truth(10, mask)) >= 0.9
    require_own_scores(filtered)


@pytest.mark.parametrize("rows", [0, 5, 400])
def test_a_filter_that_leaves_few_rows_is_answered_exactly(large: DensePart, rows: int) -> None:
    mask = np.zeros(ROWS, np.bool_)
    mask[np.random.default_rng(4).choice(ROWS, rows, replace=False)] = True
    top = NEAR.searcher([large], [None]).search(QUERIES, 10, mask)
    assert top.rows.tolist() == truth(10, mask).rows.tolist()


def test_a_filter_on_one_cluster_is_answered_in_full(large: DensePart) -> None:
    # Most queries probe lists without a single allowed row: those must not come back short.
    mask = DOCS @ DOCS[0] > np.sort(DOCS @ DOCS[0])[-700]
    top = NEAR.searcher([large], [None]).search(QUERIES, 10, mask)
    assert (top.rows >= 0).all() and mask[top.rows].all()


@pytest.mark.parametrize("k", [500, ROWS, ROWS + 7])
def test_many_rows_can_be_asked_for(large: DensePart, k: int) -> None:
    top = NEAR.searcher([large], [None]).search(QUERIES, k)
    assert top.rows.tolist() == truth(k).rows.tolist()


def test_without_faiss_large_parts_are_searched_exactly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts with an index file and parts that were built without faiss; the advice says how to search them faster."""
    build(NEAR, DOCS, tmp_path / "with")
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "faiss", None)  # importing it fails
        parts = [NEAR.open(tmp_path / "with"), build(NEAR, DOCS, tmp_path / "without")]
        assert [part.ann for part in parts] == [None, None]
        for part in parts:
            top = NEAR.searcher([part], [None]).search(QUERIES, 10)
            assert top.rows.tolist() == truth(10).rows.tolist()
            assert "pip install 'trilens[faiss]'" in NEAR.figures([part])["advice"]
    assert NEAR.figures([NEAR.open(tmp_path / "with")]) == {}
    assert "optimize --retrain" in NEAR.figures(parts[1:])["advice"]
    assert EXACT.figures(parts) == {}


def test_small_and_large_parts_answer_together(large: DensePart, tmp_path: Path) -> None:
    assert QUERIES.dense is not None
    small = build(NEAR, QUERIES.dense.vectors[:50], tmp_path)
    assert small.ann is None
    top = NEAR.searcher([small, large, small], [None, None, np.zeros(50, np.bool_)]).search(QUERIES, 10)
    assert top.rows[:50, 0].tolist() == list(range(50))  # half of the queries are in the small part
    alone = [NEAR.searcher([part], [None]).search(QUERIES, 10) for part in (small, large)]
    rows = np.hstack([alone[0].rows, alone[1].rows + 50])
    scores = np.hstack([alone[0].scores, alone[1].scores])
    best = np.argsort(-scores, axis=1, kind="stable")[:, :10]
    assert top.rows.tolist() == np.take_along_axis(rows, best, axis=1).tolist()


def test_a_batch_is_its_queries_one_by_one(large: DensePart) -> None:
    assert QUERIES.dense is not None
    searcher = NEAR.searcher([large], [None])
    together = searcher.search(QUERIES, 10)
    for query in range(0, 100, 9):
        alone = searcher.search(Encoded(dense=QUERIES.dense.take(np.array([query]))), 10)
        np.testing.assert_allclose(alone.scores[0], together.scores[query], atol=1e-6)
        assert alone.rows[0].tolist() == together.rows[query].tolist()


def test_a_merge_keeps_the_order_of_the_rows(large: DensePart, tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    small = build(NEAR, clustered(random, 100), tmp_path / "small")
    keep = [random.random(100) < 0.5, random.random(ROWS) < 0.5]
    NEAR.merge([small, large], keep, tmp_path / "merged")
    merged = NEAR.open(tmp_path / "merged")
    survivors = np.concatenate([small.dense.vectors[keep[0]], DOCS[keep[1]]])
    assert merged.dense.vectors.tolist() == survivors.tolist()
    rebuilt = build(NEAR, survivors, tmp_path / "rebuilt")
    answers = [NEAR.searcher([part], [None]).search(QUERIES, 10) for part in (merged, rebuilt)]
    assert merged.ann is not None and rebuilt.ann is not None
    assert answers[0].rows.tolist() == answers[1].rows.tolist()


def test_a_merge_may_leave_nothing(tmp_path: Path) -> None:
    part = build(EXACT, DOCS[:3], tmp_path / "part")
    EXACT.merge([part], [np.zeros(3, np.bool_)], tmp_path / "merged")
    merged = EXACT.open(tmp_path / "merged")
    assert (len(merged), merged.dense.dim) == (0, DIMS)
    assert (EXACT.searcher([merged], [None]).search(QUERIES, 2).rows == -1).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_vectors_that_are_no_numbers_are_refused(tmp_path: Path, bad: float) -> None:
    vectors = DOCS[:3].copy()
    vectors[1, 2] = bad
    with pytest.raises(BadInput, match="NaN or infinite"):
        build(EXACT, vectors, tmp_path)


def test_other_dimensions_are_refused(tmp_path: Path) -> None:
    part = build(EXACT, DOCS[:3], tmp_path)
    with pytest.raises(BadInput, match=f"query vectors have 3 dimensions; expected {DIMS}"):
        EXACT.searcher([part], [None]).search(Encoded(dense=Dense(np.ones((1, 3), np.float32))), 1)


def test_other_dimensions_are_refused_by_an_index_too(large: DensePart) -> None:
    with pytest.raises(BadInput, match=f"query vectors have 3 dimensions; expected {DIMS}"):
        NEAR.searcher([large], [None]).search(Encoded(dense=Dense(np.ones((1, 3), np.float32))), 1)


@pytest.mark.parametrize(
    "options", [{"ann_rows": 255}, {"probed_share": 0}, {"probed_share": 1.1}, {"probes": 0}, {"probes": 1.1}, {"lists": 3}]
)
def test_impossible_options_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(BadInput):
        DenseConfig.model_validate(options)


def test_the_probed_share_has_two_names() -> None:
    """`probes` is its name in catalogs."""
    assert DenseConfig.model_validate({"probes": 0.5}) == DenseConfig(probed_share=0.5)
    assert DenseConfig(probed_share=0.5).model_dump(by_alias=True) == {"ann_rows": 50_000, "probes": 0.5}


def test_the_mean_of_query_and_passage_has_length_1() -> None:
    queries, passages = (Encoded(dense=Dense(np.array([[x, y]], np.float32))) for x, y in ((1, 0), (0, 1)))
    mixed = EXACT.mix_passages(queries, passages).dense
    assert mixed is not None
    np.testing.assert_allclose(mixed.vectors, [[0.5**0.5, 0.5**0.5]], rtol=1e-6)


def test_explanations_fall_back_to_occlusion(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a model that does not pool by the mean, words are left out one by one."""
    exact = collection.explain("old engine", "car", lenses=["dense"])
    monkeypatch.setattr(type(collection.model.encoder), "doc_states", lambda self, text: None)
    found = collection.explain("old engine", "car", lenses=["dense"])
    assert found.approximate and not exact.approximate
    require_sum(found, exact.score)
    assert found.parts[-1].kind == "rest"
    best = max(found.parts[:-1], key=lambda part: part.score)
    assert best.label.lower() in ("engine", "engines", "car", "cars", "old", "mechanic")

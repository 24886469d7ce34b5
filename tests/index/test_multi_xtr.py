"""XTR search by hand and against its slow twin."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from trilens.index.codebook import Codebook, Page
from trilens.index.multi_params import MultiParams
from trilens.index.topk import TopK
from trilens.represent import Multi

from .token_index import (
    DIMS,
    QUERIES,
    QUERY_LENGTHS,
    Floats,
    TokenIndex,
    build,
    ragged,
    require_best,
    stretched,
    tokens_of,
    unit,
)

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


def hand_docs(rows: Sequence[int]) -> Multi:
    eye = np.eye(DIMS, dtype=np.float32)
    held = [HELD[row] for row in rows]
    vectors = [eye[c] + (0 if more is None else 0.25 * eye[more]) for row in held for c, more in row]
    return ragged(np.reshape(vectors, (-1, DIMS)), [len(row) for row in held])


def hand_query() -> Multi:
    return ragged(np.pad(np.array(list(ASKED.values())), ((0, 0), (0, DIMS - 6))), [2])


@pytest.fixture(params=[[[0, 1, 2, 3, 4, 5]], [[0, 1, 2], [3, 4, 5]], [[0], [], [1, 2, 3, 4], [5]]], ids=["one", "two", "four"])
def by_hand(request: pytest.FixtureRequest, tmp_path: Path) -> TokenIndex:
    """The six rows in one part, two or four."""
    hand_page().save(tmp_path / "page")
    pages = [Page.open(tmp_path / "page")]
    return TokenIndex([build(hand_docs(rows), pages, tmp_path / str(i)) for i, rows in enumerate(request.param)], pages)


def found(top: TopK) -> dict[int, float]:
    assert (np.diff(top.scores[0][top.rows[0] >= 0]) <= 0).all()
    return {row: score for row, score in zip(top.rows[0].tolist(), top.scores[0].tolist(), strict=True) if row >= 0}


def test_the_example_is_what_it_says(by_hand: TokenIndex) -> None:
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
        # A has no fifth: the score of its last probed centroid, centroid 1, is used.
        (2, 5, [0.5, 0.5], {0: 1 + 0.5, 1: 1.25 + 0.5, 2: 0.75 + 1, 3: 0.5 + 1.25, 4: 0.5 + 0.75}),
        # With 1 probe A meets 1¼ 1 and B too; row 4 is met by none.
        (1, 2, [1, 1], {0: 1 + 1, 1: 1.25 + 1, 2: 1 + 1, 3: 1 + 1.25, 4: 1 + 1}),
        # With 4 all tokens are met: A 1¼ 1 ¾ ½ ¼ ¼ ¼ 0 0, B 1¼ 1 ¾ ½ ½ ¼ ¼ 0 0. The last is 0, and scores are MaxSim.
        (4, 5, [0.25, 0.5], {0: 1 + 0.5, 1: 1.25 + 0.5, 2: 0.75 + 1, 3: 0.25 + 1.25, 4: 0.25 + 0.75}),
        (4, 9, [0, 0], MAXSIM),
    ],
)
def test_a_missing_similarity_is_the_nth_best(
    by_hand: TokenIndex, probes: int, nth: int, imputed: list[float], scores: dict[int, float]
) -> None:
    params = MultiParams(method="xtr", reach=2, probes=probes, candidates=0, nth=nth)
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
    by_hand: TokenIndex, probes: int, tokens: int, imputed: list[float], scores: dict[int, float]
) -> None:
    params = MultiParams(method="xtr", reach=2, probes=probes, candidates=0, tokens=tokens)
    searcher = by_hand.searcher()
    settings = searcher.settings(params, 5)
    look = searcher.look(tokens_of(hand_query(), 0), settings)
    np.testing.assert_allclose(searcher.imputed(look, settings), imputed, atol=1e-5)
    assert found(searcher.search(hand_query(), 5, params=params)) == pytest.approx(scores, abs=1e-5)


def test_the_estimate_counts_tokens(by_hand: TokenIndex) -> None:
    # B goes through the centroids 3, 2, 1 with 2, 3 and 2 tokens (of 2, 2 and 2 rows): five are reached at centroid 2, for
    # which B has ½. A goes through 0, 1, 2 with 2, 2 and 3: five are reached at centroid 2, for which A has ¼.
    params = MultiParams(method="xtr", reach=2, probes=3, candidates=0, tokens=5)
    searcher = by_hand.searcher()
    settings = searcher.settings(params, 5)
    look = searcher.look(tokens_of(hand_query(), 0), settings)
    np.testing.assert_allclose(searcher.imputed(look, settings), [0.25, 0.5], atol=1e-5)


def test_the_nth_best_is_of_the_allowed_rows(by_hand: TokenIndex) -> None:
    # Without row 1 A meets 1 ¾ ½ and B meets 1¼ 1 ¾ ½.
    params = MultiParams(method="xtr", reach=2, probes=2, candidates=0, nth=2)
    allowed = np.array([True, False, True, True, True, True])
    expected = {0: 1 + 1, 2: 0.75 + 1, 3: 0.75 + 1.25, 4: 0.75 + 1}
    assert found(by_hand.searcher().search(hand_query(), 5, allowed, params=params)) == pytest.approx(expected, abs=1e-5)
    live = np.split(allowed, np.cumsum([len(part) for part in by_hand.parts])[:-1])
    assert found(by_hand.searcher(live).search(hand_query(), 5, params=params)) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("candidates", [1, 3, 5, 100])
def test_with_candidates_xtr_scores_by_maxsim(by_hand: TokenIndex, candidates: int) -> None:
    for options in ({"nth": 2}, {"tokens": 2}, {}):
        params = MultiParams(method="xtr", reach=2, probes=2, candidates=candidates, **options)
        top = found(by_hand.searcher().search(hand_query(), 3, params=params))
        assert len(top) == 3 and top == pytest.approx({row: MAXSIM[row] for row in top})
    assert found(by_hand.searcher().search(hand_query(), 5, params=params)) == pytest.approx(MAXSIM)


def slow_xtr(index: TokenIndex, query: Floats, probes: int, nth: int) -> NDArray[np.float64]:
    """Retrieve the tokens near the best centroids; impute the nth best similarity, or the score of the last centroid."""
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
def test_xtr_is_its_slow_twin(index: TokenIndex, in_parts: TokenIndex, nth: int, asked: Multi) -> None:
    params = MultiParams(method="xtr", reach=10_000, probes=20, candidates=0, nth=nth)
    queries = asked.take(np.arange(0, len(QUERY_LENGTHS), 4))
    scores = np.array([slow_xtr(index, tokens_of(queries, query), 20, nth) for query in range(len(queries))])
    for searcher in (index.searcher(), in_parts.searcher()):
        # 16 bits of the query, and a similarity from its parts: a little less exact than MaxSim
        require_best(searcher.search(queries, 10, params=params), scores, atol=2e-3)

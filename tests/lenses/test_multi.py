"""The multi lens: quantisation and pooling of token vectors, refusals, and explanations as token pairs."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trilens import Collection, Document, MultiParams
from trilens.encode.encoder import Encoded
from trilens.errors import BadInput
from trilens.lenses.alignment import Alignment
from trilens.lenses.lens import ExplainTarget
from trilens.lenses.multi import MultiConfig, MultiSearcher

from ..bundled import with_multi
from ..index.token_index import (
    DOCS,
    LENS,
    QUERIES,
    ROWS,
    TokenIndex,
    build,
    doc_lengths,
    lens_of,
    one_line,
    ragged,
    recall,
    require_best,
    require_own_scores,
    same,
    share,
    slow_maxsim,
    stretched,
    tokens_of,
    unit,
)
from .explained import QUERIES as QUESTIONS
from .explained import require_sum
from .test_multi_pages import flat


@pytest.mark.parametrize("bits, dims", [(1, 128), (2, 64)])
def test_fewer_bits_are_searched_as_well(tmp_path: Path, bits: int, dims: int) -> None:
    random = np.random.default_rng(bits)
    middle = random.normal(size=(40, dims))
    docs = ragged(unit(middle[random.integers(0, 40, 2000)] + 0.5 * random.normal(size=(2000, dims))), [10] * 200)
    queries = ragged(unit(middle[random.integers(0, 40, 100)] + 0.5 * random.normal(size=(100, dims))), [10] * 10)
    few = lens_of(bits=bits, centroids=64)
    pages = share(docs, [], tmp_path / "page", few)
    rough = TokenIndex([build(docs, pages, tmp_path / "part", few)], pages)
    assert few.figures(rough.parts, pages)["bits"] == bits and rough.parts[0].codes.residuals.shape == (2000, 16)
    scores = slow_maxsim(queries, rough.decode())
    truth = rough.searcher().search(queries, 10, exact=True)
    require_best(truth, scores)
    top = rough.searcher().search(queries, 10, params=MultiParams(method="plaid", candidates=100))
    require_own_scores(top, scores)
    assert recall(top, truth) >= 0.9


def test_pooled_tokens_are_half_as_many_and_as_long(tmp_path: Path) -> None:
    half = lens_of(pool=2)
    pages = share(DOCS, [], tmp_path / "page", half)
    part = build(DOCS, pages, tmp_path / "part", half)
    assert np.diff(part.offsets).tolist() == [-(-length // 2) for length in doc_lengths()]
    pooled = half.tokens(Encoded(multi=DOCS))
    np.testing.assert_allclose(np.linalg.norm(pooled.vectors, axis=1), 1, atol=1e-5)
    assert pages[0].normalised
    whole = LENS.tokens(Encoded(multi=DOCS))
    assert whole is DOCS
    # a pooled token has the id of its first token, and no pool spans two texts
    text_of = np.repeat(np.arange(ROWS), doc_lengths())
    assert text_of[pooled.tokens].tolist() == np.repeat(np.arange(ROWS), np.diff(pooled.offsets)).tolist()
    few = TokenIndex([part], pages)
    require_best(few.searcher().search(QUERIES, 10, exact=True), slow_maxsim(QUERIES, few.decode()))
    truth = slow_maxsim(QUERIES, np.split(DOCS.vectors, DOCS.offsets[1:-1]))
    best = truth.argmax(axis=1)
    top = few.searcher().search(QUERIES, 10, exact=True)
    assert np.mean([row in rows for row, rows in zip(best, top.rows, strict=True)]) >= 0.9


def test_pooling_keeps_lengths_that_are_not_one() -> None:
    far = stretched(DOCS)
    pooled = lens_of(pool=2).tokens(Encoded(multi=far))
    one_text = slice(pooled.offsets[1], pooled.offsets[2])
    before = tokens_of(far, 1)
    assert np.linalg.norm(pooled.vectors[one_text], axis=1).mean() == pytest.approx(
        np.linalg.norm(before, axis=1).mean(), rel=0.4
    )
    assert np.abs(np.linalg.norm(pooled.vectors, axis=1) - 1).max() > 0.5


def test_building_prints_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pages = share(flat(1, 300), [], tmp_path / "page")
    build(flat(1, 300), pages, tmp_path / "part")
    assert tuple(capfd.readouterr()) == ("", "")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("pool", [1, 2])
def test_vectors_that_are_no_numbers_are_refused(index: TokenIndex, tmp_path: Path, bad: float, pool: int) -> None:
    docs = flat(1, 100)
    docs.vectors[3, 2] = bad
    some = lens_of(pool=pool)
    assert "NaN or infinite" in one_line(lambda: some.share(Encoded(multi=docs), [], tmp_path / "page"))
    assert "NaN or infinite" in one_line(lambda: some.build(Encoded(multi=docs), tmp_path / "part", index.pages))


@pytest.mark.parametrize("bits, dims, multiple", [(4, 48, 32), (4, 8, 32), (2, 32, 64), (1, 64, 128), (4, 33, 32)])
def test_dimensions_that_do_not_fill_the_bytes_are_refused(tmp_path: Path, bits: int, dims: int, multiple: int) -> None:
    docs = ragged(np.ones((4, dims)), [4])
    message = one_line(lambda: lens_of(bits=bits).share(Encoded(multi=docs), [], tmp_path))
    assert f"{dims} dimensions" in message and f"multiple of {multiple}" in message


@pytest.mark.parametrize("options", [{"bits": 3}, {"bits": 8}, {"centroids": 0}, {"pool": 0}, {"probes": 3}])
def test_impossible_options_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(BadInput):
        MultiConfig.model_validate(options)


def test_the_lens_searches_and_scores_as_its_token_searcher(index: TokenIndex) -> None:
    searcher = LENS.searcher(index.parts, [None], index.pages)
    queries, rows = Encoded(multi=QUERIES), np.tile(np.arange(20), (len(QUERIES), 1))
    assert same(searcher.search(queries, 10), index.searcher().search(QUERIES, 10))
    assert searcher.score(queries, rows).tolist() == index.searcher().score(QUERIES, rows).tolist()
    assert searcher.token_mass(queries).tolist() == pytest.approx(np.diff(QUERIES.offsets).tolist())


def test_the_token_mass_is_the_sum_of_the_weights_of_a_querys_tokens(index: TokenIndex) -> None:
    queries = stretched(QUERIES)
    mass = LENS.searcher(index.parts, [None], index.pages).token_mass(Encoded(multi=queries))
    expected = [np.linalg.norm(tokens_of(queries, query), axis=1).sum() for query in range(len(queries))]
    assert mass.tolist() == pytest.approx(expected, rel=1e-5)


# Explanations

TEXTS = {
    "cats": "The cat sat on the mat and slept through the afternoon.",
    "dogs": "Dogs bark loudly at night; the neighbours complain.",
    "fox": "A quick brown fox jumps over the lazy dog near the river.",
    "marks": "!!! ... ???",
    "long": " ".join(f"Sentence number {n} is about boats and harbours." for n in range(60)) + " A cat sleeps aboard.",
}
XTR = MultiParams(method="xtr", candidates=0, probes=2, reach=2)


@pytest.fixture(scope="module")
def animals(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    path: Path = tmp_path_factory.mktemp("alignment") / "c"
    with Collection.create(path, lenses=["bm25", "multi"], threads=1) as made:
        made.add(Document(doc_id, text) for doc_id, text in TEXTS.items())
    return Collection.open(path, threads=1)


def align(collection: Collection, query: str, doc_id: str, params: MultiParams | None = None) -> Alignment | None:
    """The alignment of a query with the passage that is explained."""
    options: dict[str, Any] = {"params": {"multi": params}} if params else {}
    passage = collection.explain(query, doc_id, lenses=["multi"], **options).passage
    snapshot = collection.snapshot
    key = snapshot.key(doc_id)
    rows, _ = snapshot.rows_of(np.array([key]))
    [row] = [int(row) for row in rows if snapshot.places(np.array([row])).starts[0] == passage.start]
    encoded = collection.model.heads_encoder("multi").encode_queries([query])
    searcher = snapshot.searcher("multi")
    assert isinstance(searcher, MultiSearcher)
    return searcher.align(ExplainTarget(query, encoded, row, passage.text, None, params))


@pytest.mark.parametrize("params", [None, XTR, MultiParams(method="exact")])
def test_contributions_add_up_to_the_score(animals: Collection, params: MultiParams | None) -> None:
    for query in ("sleeping cats", "a noisy dog at night", "harbour"):
        for hit in animals.search([query], 3, lenses=["multi"], params={"multi": params} if params else {})[0]:
            found = align(animals, query, hit.doc_id, params)
            assert found is not None
            assert found.score == pytest.approx(hit.score, abs=1e-4)
            assert float(found.contributions.sum()) == pytest.approx(found.score, abs=1e-6)
            assert [part.score for part in found.parts()] == pytest.approx(found.contributions.tolist())


def test_rare_tokens_of_the_query_weigh_more(animals: Collection) -> None:
    """A part is the product of its facts: a weight, and a similarity of vectors of length 1."""
    explained = animals.explain("the sleeping cat", "cats", lenses=["multi"])
    parts = {part.label: part for part in explained.parts if part.kind == "pair"}
    for part in parts.values():
        weight, similarity = part.facts["query_weight"], part.facts["similarity"]
        assert isinstance(weight, float) and isinstance(similarity, float)
        assert part.score == pytest.approx(weight * similarity)
        assert similarity <= 1.01
    assert parts["cat"].facts["query_weight"] > parts["the"].facts["query_weight"]  # type: ignore[operator]


def test_tokens_are_words_of_the_texts(animals: Collection) -> None:
    found = align(animals, "sleeping cats", "cats")
    assert found is not None
    assert found.query_tokens == ["[CLS]", "sleeping", "cats", "[SEP]"]
    assert found.doc_tokens[:4] == ["[CLS]", "the", "cat", "sat"]
    assert "." not in found.doc_tokens
    assert found.doc_tokens[found.winners[2]] == "cat"


def test_the_best_passage_is_explained(animals: Collection) -> None:
    found = align(animals, "a sleeping cat aboard", "long")
    assert found is not None
    assert "aboard" in found.doc_tokens


def test_a_document_without_tokens_has_no_alignment(tmp_path: Path) -> None:
    model = str(with_multi(tmp_path / "model", skip_special=True))
    with Collection.create(tmp_path / "c", lenses=["multi"], model=model, threads=1) as made:
        made.add([Document("marks", TEXTS["marks"])])
        made.commit()
        assert align(made, "cats", "marks") is None
        explained = made.explain("cats", "marks", lenses=["multi"])
        assert (list(explained.parts), explained.matrix) == ([], None)


def test_an_unknown_document_is_refused(animals: Collection) -> None:
    with pytest.raises(BadInput, match="no document 'nobody'"):
        animals.explain("cats", "nobody", lenses=["multi"])


def test_parts_are_token_pairs(collection: Collection) -> None:
    found = collection.explain("old engine", "car", lenses=["multi"])
    assert found.matrix is not None
    assert found.matrix.values.shape == (len(found.matrix.query_tokens), len(found.matrix.doc_tokens))
    place = found.matrix.query_tokens.index("engine")
    engine = found.parts[place]
    assert (engine.label, engine.kind, engine.query_span) == ("engine", "pair", (4, 10))
    assert engine.score == pytest.approx(float(found.matrix.values[place].max()), abs=1e-5)
    assert [found.passage.text[start:end].lower() for start, end in engine.doc_spans] == [engine.target]


def test_imputed_similarities_are_marked(collection: Collection) -> None:
    params = {"multi": MultiParams(method="xtr", candidates=0, probes=1, reach=1)}
    kinds = set()
    for query in QUESTIONS:
        for hit in collection.search([query], lenses=["multi"], params=params)[0]:
            found = collection.explain(query, hit.doc_id, lenses=["multi"], params=params)
            require_sum(found, hit.score)
            kinds |= {part.kind for part in found.parts}
            assert all((part.target is None) == (part.kind != "pair") for part in found.parts)
    assert {"pair", "imputed"} <= kinds

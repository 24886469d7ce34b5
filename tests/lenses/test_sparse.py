"""The sparse lens: explanations by terms, of stored vectors and of those that are encoded at query time."""

from pathlib import Path

import numpy as np
import pytest

from trilens import Collection, SparseParams
from trilens.encode.encoder import Encoded
from trilens.errors import BadInput
from trilens.lenses.lens import ExplainTarget
from trilens.lenses.sparse import SparseLens

from ..store.tiny import WORDS, TinyEncoder, tiny_model
from .explained import TERM_QUERIES, TERM_TEXTS, require_places, require_term_parts


@pytest.mark.parametrize("params", [None, SparseParams(query="bag")])
def test_parts_add_up_to_the_score(terms: Collection, params: SparseParams | None) -> None:
    require_term_parts(terms, "sparse", params)


def test_own_words_are_told_from_added_ones(terms: Collection) -> None:
    parts = terms.explain("old car", "car", lenses=["sparse"]).parts
    found = {part.label: part for part in parts if part.kind != "rest"}
    own = {label: (bool(part.facts["in_query"]), bool(part.facts["in_doc"])) for label, part in found.items()}
    assert (own["car"], found["car"].kind) == ((True, True), "own")
    assert (own["mechanic"], found["mechanic"].kind) == ((False, True), "expanded")
    assert (False, False) in own.values()
    assert found["car"].score == max(part.score for part in found.values())


def test_places_of_terms(terms: Collection) -> None:
    require_places(terms, "sparse")


def test_what_cannot_be_explained(terms: Collection) -> None:
    with pytest.raises(BadInput, match="no document 'nothing'"):
        terms.explain("car", "nothing", lenses=["sparse"])
    with pytest.raises(BadInput, match="no lens 'smell'"):
        terms.explain("car", "car", lenses=["smell"])


def test_late_scores_are_inner_products_of_the_encoded_texts() -> None:
    encoder = TinyEncoder(weighting=None)
    lens, texts = SparseLens(tiny_model(encoder)), list(TERM_TEXTS.values())
    scores = lens.score_texts(TERM_QUERIES, texts)
    assert scores.shape == (len(TERM_QUERIES), len(texts))
    np.testing.assert_allclose(scores, matrix(encoder, TERM_QUERIES) @ matrix(encoder, texts).T, rtol=1e-5)


def test_late_scores_are_explained_by_terms() -> None:
    lens = SparseLens(tiny_model(TinyEncoder(weighting=None)))
    query, passage = "ship engine", TERM_TEXTS["long"]
    [[score]] = lens.score_texts([query], [passage]).tolist()
    parts = lens.explain_text(ExplainTarget(query, Encoded(), 0, passage, score)).parts
    assert sum(part.score for part in parts) == pytest.approx(score, abs=1e-4)
    assert {"ship", "engine"} <= {part.label for part in parts if part.kind == "own"}


def test_a_bag_of_tokens_needs_no_head(tmp_path: Path) -> None:
    model = tiny_model(TinyEncoder())
    lens = SparseLens(model)
    assert lens.query_encoder(SparseParams(query="bag")) is model.bags
    assert lens.query_encoder(SparseParams()) == lens.query_encoder() == lens.encoder == model.heads_encoder("sparse")


def matrix(encoder: TinyEncoder, texts: list[str]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    sparse = encoder.encode_docs(texts).sparse
    assert sparse is not None
    rows = np.zeros((len(texts), WORDS))
    for row in range(len(texts)):
        span = slice(sparse.indptr[row], sparse.indptr[row + 1])
        rows[row, sparse.terms[span]] = sparse.weights[span]
    return rows

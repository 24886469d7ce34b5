"""The tokens lens: bags of tokens that need no model for documents."""

import pytest

from trilens import Collection, SparseParams
from trilens.lenses.tokens import TokensLens

from ..store.tiny import TinyEncoder, tiny_model
from .explained import require_places, require_term_parts


@pytest.mark.parametrize("params", [None, SparseParams(query="bag")])
def test_parts_add_up_to_the_score(terms: Collection, params: SparseParams | None) -> None:
    require_term_parts(terms, "tokens", params)


def test_only_words_that_the_document_contains_are_shared(terms: Collection) -> None:
    found = terms.explain("old car", "car", lenses=["tokens"])
    parts = [part for part in found.parts if part.kind != "rest"]
    assert all(part.facts["in_doc"] for part in parts)
    assert len({part.facts["doc_weight"] for part in parts}) == 1


def test_places_of_terms(terms: Collection) -> None:
    require_places(terms, "tokens")


def test_documents_are_tokenised_and_queries_are_encoded() -> None:
    model = tiny_model(TinyEncoder())
    lens = TokensLens(model)
    assert lens.encoder is model.bags
    assert lens.query_encoder() == model.heads_encoder("sparse")
    assert lens.query_encoder(SparseParams(query="bag")) is model.bags

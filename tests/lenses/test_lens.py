"""The contract of every lens: the parts of an explanation add up to the score of a search."""

from dataclasses import replace

import numpy as np
import pytest

from trilens import Collection
from trilens.lenses.lens import Colour, Lens, LensConfig, LensParams, LensType, Searcher
from trilens.lenses.registry import lens_type

from .explained import LENSES, QUERIES, QUESTIONS, require_sum


@pytest.mark.parametrize("lens", LENSES)
def test_parts_add_up_to_the_score_of_a_search(collection: Collection, lens: str) -> None:
    for query in QUERIES:
        for hit in collection.search([query], lenses=[lens])[0]:
            found = collection.explain(query, hit.doc_id, lenses=[lens])
            require_sum(found, hit.score)
            assert (found.lens, found.query, found.doc_id, found.approximate) == (lens, query, hit.doc_id, False)
            assert (found.passage.start, found.passage.end) == (hit.start, hit.end)
            assert found.passage.text[found.passage.offset :] == hit.passage
            rest = sum(abs(part.score) for part in found.parts if part.label == "rounding")
            assert rest <= 1e-4 + 1e-6 * abs(hit.score)


@pytest.mark.parametrize("lens", LENSES)
def test_parts_add_up_for_two_hundred_real_pairs(documentation: Collection, lens: str) -> None:
    pairs = [(query, hit) for query in QUESTIONS for hit in documentation.search([query], 14, lenses=[lens])[0]]
    assert len(pairs) >= 200
    for query, hit in pairs:
        require_sum(documentation.explain(query, hit.doc_id, lenses=[lens]), hit.score)


def test_the_check_notices_parts_paired_with_the_facts_of_others(collection: Collection) -> None:
    """Terms beside the weights of other terms still add up; the check has to notice them all the same."""
    found = collection.explain("motor repair of old cars", "car", lenses=["sparse"])
    facts = [part.facts for part in found.parts]
    assert len(facts) > 5
    broken = [replace(part, facts=other) for part, other in zip(found.parts, facts[1:] + facts[:1], strict=True)]
    assert sum(part.score for part in broken) == pytest.approx(found.score, abs=1e-4)
    with pytest.raises(AssertionError):
        require_sum(replace(found, parts=broken), found.score)
    shifted = [replace(part, score=other.score) for part, other in zip(found.parts, found.parts[1:], strict=False)]
    with pytest.raises(AssertionError):
        require_sum(replace(found, parts=shifted), found.score)


@pytest.mark.parametrize("lens", LENSES)
def test_scores_of_rows_are_those_of_an_exhaustive_search(collection: Collection, lens: str) -> None:
    searcher = collection.snapshot.searcher(lens)
    assert isinstance(searcher, Searcher)
    encoded = collection._lenses.encode_queries([lens], QUERIES, {})[lens]
    rows = np.tile(np.arange(collection.snapshot.rows), (len(QUERIES), 1))
    scores = searcher.score(encoded, rows)
    top = searcher.search(encoded, rows.shape[1], exact=True)
    for query in range(len(QUERIES)):
        found = top.rows[query][top.rows[query] >= 0]
        np.testing.assert_allclose(scores[query, found], top.scores[query, : len(found)], rtol=1e-5, atol=1e-5)
    assert np.isneginf(searcher.score(encoded, np.full((len(QUERIES), 1), -1))).all()


@pytest.mark.parametrize("lens", LENSES)
def test_only_sums_over_query_tokens_have_a_token_mass(collection: Collection, lens: str) -> None:
    encoded = collection._lenses.encode_queries([lens], QUERIES, {})[lens]
    mass = collection.snapshot.searcher(lens).token_mass(encoded)
    assert (mass is not None) == (lens == "multi")
    assert mass is None or (mass.shape == (len(QUERIES),) and (mass > 0).all())


def test_a_lens_type_is_stored_under_its_name_unless_it_says_otherwise() -> None:
    def make(_: object) -> Lens:
        raise NotImplementedError

    plain = LensType("smell", "how it smells", Colour("#000", "#fff"), make)
    assert (plain.config_key, plain.stored_as, plain.config, plain.params) == ("smell", "smell", LensConfig, LensParams)
    named = LensType("smell", "how it smells", Colour("#000", "#fff"), make, config_key="nose", stored_as="odour")
    assert (named.config_key, named.stored_as) == ("nose", "odour")


@pytest.mark.parametrize("name", LENSES)
def test_a_lens_type_offers_what_its_lens_can_do(collection: Collection, name: str) -> None:
    known, lens = lens_type(name), collection._lenses[name]
    assert (type(lens).score_texts is not Lens.score_texts) == known.late
    assert (type(lens).explain_text is not Lens.explain_text) == known.late
    assert (type(lens).mix_passages is not Lens.mix_passages) == known.hyde
    assert (type(collection.snapshot.searcher(name)).expand is not Searcher.expand) == bool(known.expansion)

"""The lexical lens: explanations by the tokens of query and document."""

from trilens import Collection
from trilens.lenses.term_settings import IdfParams

from .explained import require_places, require_term_parts


def test_parts_add_up_to_the_score(terms: Collection) -> None:
    require_term_parts(terms, "lexical")


def test_places_of_terms(terms: Collection) -> None:
    require_places(terms, "lexical")


def test_inflections_are_one_term(terms: Collection) -> None:
    found = terms.explain("engines and repairs", "car", lenses=["lexical"])
    spans = {
        part.label: (part.query_span, [found.passage.text[start:end] for start, end in part.doc_spans]) for part in found.parts
    }
    assert spans["engines"] == ((0, 7), ["engine"])
    assert spans["repairs"] == ((12, 19), ["repaired"])
    assert all(part.kind == "own" for part in found.parts if part.kind != "rest")


def test_nothing_in_common(terms: Collection) -> None:
    found = terms.explain("zebra", "rain", lenses=["lexical"])
    assert (found.score, found.parts) == (0, [])


def test_a_search_without_idf_has_parts_without_idf(terms: Collection) -> None:
    assert terms.config.term_weighting.idf
    with_idf = terms.explain("old car", "car", lenses=["lexical"]).parts
    without = terms.explain("old car", "car", lenses=["lexical"], params={"lexical": IdfParams(idf=False)}).parts
    assert all("idf" in part.facts for part in with_idf if part.kind == "own")
    assert not any("idf" in part.facts for part in without)

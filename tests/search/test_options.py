"""Search options: what they accept, and what they resolve to for a collection."""

import numpy as np
import pytest

from trilens import Expansion, Fusion, Hyde, MultiParams, SearchOptions, SparseParams
from trilens.errors import BadFilter, BadInput, BadModel, BadOptions
from trilens.lenses.term_settings import IdfParams
from trilens.search.options import fused_name, parse_params

PRESENT = ["bm25", "dense", "lexical", "multi"]


def test_options_from_text_and_plain_values() -> None:
    options = SearchOptions(
        lenses=["bm25", "dense"],
        fusion="zscore:bm25=2",
        expand="docs=5",
        hyde="http://localhost:1/v1",
        params={"multi": {"probes": 3}, "lexical": SparseParams(idf=False)},
    )
    assert options.lenses == ("bm25", "dense")
    assert options.fusion == Fusion("zscore", {"bm25": 2.0})
    assert options.expand == Expansion(docs=5)
    assert options.hyde == Hyde(url="http://localhost:1/v1")
    assert options.params == {"multi": MultiParams(probes=3), "lexical": IdfParams(idf=False)}


def test_equal_options_compare_equal_and_survive_json() -> None:
    first = SearchOptions(lenses=["bm25"], filter={"a": 1, "b": 2}, fusion="rrf", params={"bm25": {}})
    second = SearchOptions(lenses=("bm25",), filter={"b": 2, "a": 1}, fusion=Fusion(), params={"bm25": {}})
    assert first == second != SearchOptions(lenses=["bm25"])
    full = SearchOptions(fusion="minmax:dense=2", expand="on", params={"multi": {"method": "xtr"}}, rerank="multi", k=3)
    assert SearchOptions(**full.model_dump(mode="json", exclude_defaults=True)) == full


def test_lenses_and_fusion_are_filled_in() -> None:
    assert SearchOptions().resolve(PRESENT, {}).lenses == tuple(PRESENT)
    assert SearchOptions().resolve(PRESENT, {}).fusion == Fusion()
    tuned = {fused_name(["dense", "bm25"]): {"fusion": "minmax:bm25=3"}}
    assert SearchOptions(lenses=["bm25", "dense"]).resolve(PRESENT, tuned).fusion == Fusion("minmax", {"bm25": 3.0})
    assert SearchOptions(lenses=["bm25", "dense"], fusion="none").resolve(PRESENT, tuned).fusion == Fusion()
    of_model = {"bm25+dense": "zscore:bm25=1,dense=4", "bm25+multi": "zscore:bm25=1,multi=2,damp=true"}
    for lenses, expected in (
        (["dense", "bm25"], Fusion("minmax", {"bm25": 3.0})),  # what was tuned for the collection comes first
        (["multi", "bm25"], Fusion("zscore", {"bm25": 1.0, "multi": 2.0}, damp=True)),
        (["dense", "multi"], Fusion()),
    ):
        assert SearchOptions(lenses=lenses).resolve(PRESENT, tuned, lambda: of_model).fusion == expected
    assert SearchOptions(lenses=["bm25", "multi"], fusion="none").resolve(PRESENT, tuned, lambda: of_model).fusion == Fusion()
    for bad in ("best", "zscore:multi=1"):
        with pytest.raises(BadModel, match=r"the model has a bad fusion for bm25\+dense: .*; correct it in trilens.json"):
            SearchOptions(lenses=["bm25", "dense"]).resolve(PRESENT, {}, lambda bad=bad: {"bm25+dense": bad})  # type: ignore[misc]
    weighted = SearchOptions(fusion="dense+sparse").resolve(["dense", "sparse"], {})
    assert weighted.lenses == ("dense", "sparse")
    assert weighted.resolve(["dense", "sparse"], {}) == weighted


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"where": {}}, "option 'where' is not known; expected one of k, offset, lenses, filter, exact, rerank, params"),
        ({"k": True}, "k is True; expected a valid integer"),
        ({"exact": "yes"}, "exact is 'yes'; expected a valid boolean"),
        ({"lenses": "bm25"}, "lenses is 'bm25'; expected a list of lens names"),
        ({"params": {"bm52": {}}}, "params has 'bm52', which is no lens; expected one of bm25, dense"),
        ({"params": {"bm25": {"k1": 2}}}, "params.bm25 has 'k1'; lens bm25 has no search parameters"),
        ({"params": {"multi": {"probes": 0}}}, "params.multi.probes is 0; expected a value greater than or equal to 1"),
        ({"params": {"lexical": SparseParams(query="bag")}}, "params.lexical: option 'query' is not known"),
        ({"params": {"multi": 3}}, "params.multi is 3; expected an object of search parameters"),
        ({"params": []}, "params is .*; expected an object of lenses"),
        ({"expand": {"docs": 0}}, r"expand\.docs is 0; expected a value greater than or equal to 1"),
        ({"expand": True}, 'expand is True; expected "on", or settings'),
        ({"hyde": {"model": "x"}}, r"hyde\.url is missing"),
        ({"hyde": "foo"}, r"hyde\.url is 'foo'; expected an address such as"),
        ({"hyde": 3}, "hyde is 3; expected the address of a language model"),
        ({"lenses": {"bm25"}}, "expected a list of lens names"),
        ({"rerank": ""}, "rerank is ''"),
    ],
)
def test_mistakes_are_one_line(options: dict[str, object], message: str) -> None:
    with pytest.raises(BadOptions, match=message) as error:
        SearchOptions(**options)
    assert "\n" not in str(error.value)


def test_other_mistakes_keep_their_kind() -> None:
    with pytest.raises(BadFilter):
        SearchOptions(filter={"a": {"$about": 1}})
    with pytest.raises(BadInput, match="fusion is 'magic'"):
        SearchOptions(fusion="magic")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lenses": ["bm25"], "params": {"multi": {"probes": 2}}}, "params are given for multi, but .* are bm25"),
        ({"lenses": ["bm25"], "fusion": "zscore"}, "fusion is zscore, but the lenses searched are bm25"),
        ({"lenses": ["bm25", "dense"], "fusion": "rrf:multi=1"}, "gives a weight to multi"),
        ({"lenses": ["bm25"], "rerank": "multi", "fusion": "zscore"}, "expected only a depth, such as rrf:depth=200"),
        ({"lenses": ["dense"], "expand": "on"}, "expand is given, but the lenses searched are dense; it applies to bm25"),
        (
            {"lenses": ["bm25"], "hyde": {"url": "http://localhost:1/v1", "lenses": ["dense"]}},
            "hyde is given, but .* it applies to dense",
        ),
    ],
)
def test_inapplicable_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        SearchOptions(**options).resolve(PRESENT, {})


def test_the_params_of_a_re_ranking_lens_apply_if_they_change_its_exact_scores() -> None:
    options = SearchOptions(lenses=["bm25"], rerank="lexical", params={"lexical": {"idf": False}}, fusion="rrf:depth=7")
    resolved = options.resolve(PRESENT, {})
    assert (resolved.used_lenses, resolved.depth) == (["bm25", "lexical"], 10)
    searched = SearchOptions(lenses=["multi"], rerank="multi", params={"multi": {"method": "xtr"}})
    assert searched.resolve(PRESENT, {}).params == {"multi": MultiParams(method="xtr")}
    with pytest.raises(BadInput, match="params are given for multi, which re-ranks by exact scores"):
        SearchOptions(lenses=["bm25"], rerank="multi", params={"multi": {"probes": 2}}).resolve(PRESENT, {})


def test_numbers_of_numpy_count() -> None:
    assert SearchOptions(k=np.int64(3)).k == 3


def test_hyde_applies_to_a_re_ranking_lens() -> None:
    options = SearchOptions(lenses=["bm25"], rerank="dense", hyde="http://localhost:1/v1")
    assert options.resolve(PRESENT, {}).hyde == options.hyde


def test_params_from_text() -> None:
    assert parse_params("multi:method=xtr, probes=64") == {"multi": {"method": "xtr", "probes": 64}}
    assert parse_params("bm25:analysis.language=german,analysis.stem=false") == {
        "bm25": {"analysis": {"language": "german", "stem": False}}
    }
    assert parse_params('{"multi": {"probes": 2}}') == {"multi": {"probes": 2}}
    for text in ("multi", "multi:a=1,a.b=1", ":probes=2", "multi:probes", "multi:=2", "multi:probes=1,probes=2", "{"):
        with pytest.raises(BadInput, match="expected"):
            parse_params(text)

"""Ways to search, read from text."""

import pytest

from trilens import Expansion, Hyde, MultiParams, SparseParams
from trilens.errors import BadInput
from trilens.evaluate.variants import parse_variant
from trilens.search.fusion import Fusion

LENSES = ["bm25", "dense", "sparse", "multi"]


def test_a_lens_alone() -> None:
    variant = parse_variant("bm25", LENSES)
    options = variant.options
    assert (variant.name, variant.lenses, options.params, options.fusion, options.exact) == (
        "bm25",
        ["bm25"],
        {},
        Fusion(),
        False,
    )


def test_a_lens_with_parameters() -> None:
    xtr = MultiParams(method="xtr", probes=64)
    assert parse_variant("multi:method=xtr,probes=64", LENSES).options.params == {"multi": xtr}
    assert parse_variant("multi:margin=0.2", LENSES).options.params == {"multi": MultiParams(margin=0.2)}
    sparse = SparseParams(query="bag", terms=4)
    assert parse_variant("sparse: query=bag , terms=4", LENSES).options.params == {"sparse": sparse}
    assert parse_variant("dense:exact=true", LENSES).options.exact


def test_a_fusion_of_all_or_some_lenses() -> None:
    assert parse_variant("rrf", LENSES).lenses == LENSES
    variant = parse_variant("zscore:bm25=1,dense=2", LENSES)
    assert (variant.lenses, variant.options.fusion) == (["bm25", "dense"], Fusion("zscore", {"bm25": 1.0, "dense": 2.0}))
    assert parse_variant("all", LENSES).used == ["dense", "sparse", "multi"]  # sparse substitutes lexical


def test_search_options_as_json() -> None:
    variant = parse_variant('rm3={"lenses": ["bm25"], "expand": "docs=5"}', LENSES)
    assert (variant.name, variant.lenses, variant.options.expand) == ("rm3", ["bm25"], Expansion(docs=5))
    reranked = parse_variant('{"lenses": ["bm25"], "rerank": "multi", "fusion": "rrf:depth=200"}', LENSES)
    assert reranked.name == '{"lenses": ["bm25"], "rerank": "multi", "fusion": "rrf:depth=200"}'
    assert (reranked.used, reranked.options.depth) == (["bm25", "multi"], 200)
    fused = {"bm25+dense": "zscore:bm25=1,dense=3,damp=true"}
    default = parse_variant('default={"lenses": ["dense", "bm25"]}', LENSES, fused)
    assert default.options.fusion == Fusion("zscore", {"bm25": 1.0, "dense": 3.0}, damp=True)
    assert parse_variant("rrf", LENSES, fused).options.fusion == Fusion()
    hyde = parse_variant('{"lenses": ["dense"], "hyde": {"url": "http://localhost:1/v1", "model": "tiny"}}', LENSES)
    assert hyde.options.hyde == Hyde(url="http://localhost:1/v1", model="tiny")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("smell", "variant 'smell' does not begin with a lens of the collection (bm25, dense, sparse, multi)"),
        ("multi:probes", "has 'probes'; expected LENS:NAME=VALUE"),
        ("multi:", "has ''; expected LENS:NAME=VALUE"),
        ("multi:probes=1,probes=2", "each name once"),
        ("multi:probes=many", "params.multi.probes is 'many'"),
        ("multi:beauty=1", "params.multi: option 'beauty' is not known"),
        ("bm25:k1=2", "lens bm25 has no search parameters"),
        ("dense:exact=maybe", "exact is 'maybe'"),
        ("zscore:bm25=x", "expected a number"),
        ("", "does not begin with a lens"),
        ("{", "does not begin with a lens"),
        ('x={"lenses": ["bm25"}', "is not JSON"),
        ('{"k": 3}', "sets k"),
        ('{"offset": 3}', "sets offset"),
        ('{"lens": "bm25"}', "option 'lens' is not known"),
        ('{"lenses": ["bm25"], "params": {"multi": {"probes": 2}}}', "params are given for multi"),
    ],
)
def test_what_is_no_variant(text: str, message: str) -> None:
    with pytest.raises(BadInput) as error:
        parse_variant(text, LENSES)
    assert message in str(error.value)

"""Ways to search, from a word."""

import pytest

from trilens.errors import BadInput
from trilens.evaluate.variants import parse_variant
from trilens.index.multi_params import MultiParams
from trilens.index.sparse_params import SparseParams
from trilens.search.fusion import Fusion

LENSES = ["bm25", "dense", "sparse", "multi"]


def test_a_lens_alone() -> None:
    found = parse_variant("bm25", LENSES)
    assert (found.name, found.lenses, found.params, found.fusion, found.exact) == ("bm25", ["bm25"], {}, None, False)


def test_a_lens_with_settings() -> None:
    assert parse_variant("multi:method=xtr,probes=64", LENSES).params == {"multi": MultiParams("xtr", probes=64)}
    assert parse_variant("multi:margin=0.2", LENSES).params == {"multi": MultiParams(margin=0.2)}
    assert parse_variant("sparse: query=bag , terms=4", LENSES).params == {"sparse": SparseParams("bag", terms=4)}
    assert parse_variant("dense:method=exact", LENSES).exact


def test_a_fusion_of_all_or_some_lenses() -> None:
    assert parse_variant("rrf", LENSES).lenses == LENSES
    found = parse_variant("zscore:bm25=1,dense=2", LENSES)
    assert (found.lenses, found.fusion) == (["bm25", "dense"], Fusion("zscore", {"bm25": 1.0, "dense": 2.0}))


def test_the_lens_that_re_ranks_counts_among_the_used() -> None:
    assert parse_variant("rerank-multi", LENSES).used == ["dense", "multi"]
    assert parse_variant("all", LENSES).used == ["dense", "sparse", "multi"]  # sparse stands in for lexical


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("smell", "variant 'smell' does not begin with a lens of the collection (bm25, dense, sparse, multi)"),
        ("multi:probes", "has 'probes'; expected LENS:NAME=VALUE"),
        ("multi:", "has ''; expected LENS:NAME=VALUE"),
        ("multi:probes=1,probes=2", "each name once"),
        ("multi:probes=many", "probes is 'many'"),
        ("multi:beauty=1", "multi settings"),
        ("bm25:k1=2", "the lens bm25 has no setting but method=exact"),
        ("zscore:bm25=x", "expected a number"),
        ("", "does not begin with a lens"),
    ],
)
def test_what_is_no_variant(text: str, says: str) -> None:
    with pytest.raises(BadInput) as error:
        parse_variant(text, LENSES)
    assert says in str(error.value)

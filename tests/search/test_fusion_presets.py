"""Fusions as text."""

import json
from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trilens.errors import BadInput
from trilens.search.fusion import Fusion
from trilens.search.fusion_presets import PRESETS, choose_lenses, fit_preset, parse_fusion

WEIGHTS = st.dictionaries(st.sampled_from(["bm25", "dense", "multi"]), st.floats(0.01, 100), max_size=3)
COMMON = {"damp": st.booleans(), "missing": st.sampled_from(["exact", "worst", "zero"]), "depth": st.integers(1, 1000)}
FUSIONS = st.one_of(
    st.builds(Fusion, st.just("rrf"), WEIGHTS, k=st.sampled_from([60.0, 1.0, 12.5]), **COMMON),
    st.builds(Fusion, st.sampled_from(["weighted", "minmax", "zscore"]), WEIGHTS, per_token=st.booleans(), **COMMON),
)


def test_text_with_options_and_weights() -> None:
    assert parse_fusion("rrf") == Fusion()
    assert parse_fusion("none") == Fusion()
    assert parse_fusion("rrf:k=10,bm25=1,dense=2") == Fusion("rrf", {"bm25": 1.0, "dense": 2.0}, k=10.0)
    assert parse_fusion(" minmax: depth=7 , missing=zero ") == Fusion("minmax", depth=7, missing="zero")
    assert parse_fusion("zscore:missing=worst,depth=50,damp=true") == Fusion("zscore", missing="worst", depth=50, damp=True)


def test_json() -> None:
    assert parse_fusion('{"policy": "minmax", "weights": {"dense": 2}}') == Fusion("minmax", {"dense": 2})
    assert parse_fusion({"policy": "all"}) == PRESETS["all"]


def test_presets_by_name() -> None:
    assert parse_fusion("all").weights == {"dense": 1.0, "lexical": 0.3, "multi": 1.0}
    assert parse_fusion("all").per_token
    assert parse_fusion("all-long").weights == {"dense": 0.15, "lexical": 0.5, "multi": 0.35}
    assert parse_fusion("dense+sparse").weights == {"dense": 1.0, "lexical": 0.3}
    assert parse_fusion("all:multi=2,missing=zero").weights["multi"] == 2


def test_sparse_substitutes_lexical() -> None:
    fitted = fit_preset(parse_fusion("all"), ["dense", "sparse", "multi"])
    assert fitted.weights == {"dense": 1.0, "sparse": 0.3, "multi": 1.0}
    assert fit_preset(parse_fusion("all"), ["dense", "lexical", "sparse", "multi"]) == parse_fusion("all")


def test_the_lenses_of_a_search() -> None:
    assert choose_lenses(None, ["bm25", "dense"]) == ["bm25", "dense"]
    assert choose_lenses(parse_fusion("rrf"), ["bm25", "dense"]) == ["bm25", "dense"]
    assert choose_lenses(parse_fusion("dense+sparse"), ["bm25", "dense", "lexical"]) == ["dense", "lexical"]
    with pytest.raises(BadInput, match="names one lens"):
        choose_lenses(parse_fusion("rrf:bm25=2"), ["bm25", "dense"])


@given(FUSIONS)
def test_what_is_printed_can_be_read(fusion: Fusion) -> None:
    read = parse_fusion(str(fusion))
    assert read.weights == pytest.approx(fusion.weights)
    assert replace(read, weights={}) == replace(fusion, weights={})
    assert parse_fusion(json.dumps(asdict(fusion))) == fusion


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("best", "fusion is 'best'; expected a policy"),
        ("", "fusion is ''; expected a policy"),
        ("rrf:k", "has 'k'; expected NAME=VALUE"),
        ("rrf:k=many", "k=many; expected a number"),
        ("rrf:depth=1.5", "depth=1.5; expected a whole number"),
        ("rrf:k=1,k=2", "has k twice"),
        ("all:per_token=maybe", "expected true or false"),
        ("{", "is not JSON"),
        ('{"police": "rrf"}', "field 'police'"),
        ('{"weights": 3}', "fusion weights are 3"),
        ('{"weights": {"dense": "x"}}', "fusion weight of dense is 'x'"),
        ('{"k": "60"}', "fusion k is '60'"),
        ('{"per_token": 1}', "per_token is 1"),
        ("rrf:per_token=true", "rrf uses ranks, not scores"),
        ("zscore:k=10", "k applies to rrf"),
        ('{"policy": []}', "fusion policy is"),
    ],
)
def test_what_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(BadInput, match=message.replace("[", r"\[")):
        parse_fusion(text)

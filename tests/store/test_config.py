"""The configuration of a collection: validation, and the form in which catalogs store it."""

import json
from typing import Any

import pytest

from trilens.encode.folder import TermWeighting
from trilens.errors import BadInput, UnknownFormat
from trilens.lenses.bm25 import Bm25Config
from trilens.lenses.dense import DenseConfig
from trilens.lenses.multi import MultiConfig
from trilens.lenses.term_settings import SparseConfig
from trilens.store.config import WORD_PASSAGES, CollectionConfig, PassageConfig

# As catalogs of format 4 were first written: with configurations of all lenses, used or not.
STORED: dict[str, Any] = {
    "lenses": ["bm25", "dense"],
    "model": "trilens-mini",
    "model_fingerprint": "trilens-mini 0123456789abcdef",
    "weighing": {
        "rarity": True,
        "own_query": 2.0,
        "repeats": 0.0,
        "sparse_length": 0.0,
        "lexical_length": 0.5,
        "bag_length": 0.0,
        "bag_added": 0.0,
    },
    "bm25": {"k1": 1.5, "b": 0.75, "analysis": {"language": "english"}},
    "dense": {"ann_rows": 1000, "probes": 0.25},
    "sparse": {"weights": "float32"},
    "multi": {"bits": 2, "centroids": None, "pool": 2},
    "passages": {"words": 100, "overlap": 20},
}


def from_stored(**changes: Any) -> CollectionConfig:
    return CollectionConfig.from_stored(json.dumps(STORED | changes))


def test_a_stored_configuration_with_those_of_unused_lenses() -> None:
    config = from_stored()
    assert config.lenses == ("bm25", "dense")
    assert config.of_lens("bm25") == Bm25Config(k1=1.5, b=0.75)
    assert config.passages == PassageConfig(words=100, overlap=20, tokens=0)
    assert config.term_weighting == TermWeighting(idf=True, own_query=2.0, lexical_length=0.5)
    assert config.model_fingerprint == STORED["model_fingerprint"]
    assert set(config.model_extra or {}) == {"bm25", "dense"}
    assert config.of_lens("multi") == MultiConfig()


def test_the_stored_probes_of_dense_are_its_probed_share() -> None:
    assert from_stored().of_lens("dense") == DenseConfig(ann_rows=1000, probed_share=0.25)
    assert json.loads(from_stored().to_stored())["dense"] == STORED["dense"]


def test_the_stored_lens_vectors_is_external() -> None:
    config = from_stored(lenses=["vectors"], passages={"words": 0, "overlap": 0})
    assert config.lenses == ("external",)
    assert config.of_lens("external") == SparseConfig(weights="float32")
    stored = json.loads(config.to_stored())
    assert (stored["lenses"], stored["sparse"]["weights"]) == (["vectors"], "float32")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"lenses": ("bm25",), "bm25": {"k1": 2}},
        {"lenses": ("tokens", "lexical", "multi"), "sparse": {"weights": "float32"}, "multi": {"bits": 1}},
        {"lenses": ("dense",), "dense": {"probed_share": 0.5}},
        {"lenses": ("external",), "passages": {"words": 0, "overlap": 0}},
        {"model": "elsewhere", "term_weighting": TermWeighting(idf=True)},
    ],
)
def test_a_stored_configuration_comes_back(options: dict[str, Any]) -> None:
    config = CollectionConfig.of(**options)
    assert CollectionConfig.from_stored(config.to_stored()) == config


def test_defaults() -> None:
    config = CollectionConfig.of()
    assert (config.lenses, config.model, config.model_fingerprint) == (("bm25", "dense", "multi"), "trilens-mini", "")
    assert [config.of_lens(name) for name in config.lenses] == [Bm25Config(), DenseConfig(), MultiConfig()]
    assert config.heads == ("dense", "multi")


def test_passages_without_a_limit_of_tokens_are_stored_as_by_versions_that_had_none() -> None:
    assert json.loads(CollectionConfig.of(passages=WORD_PASSAGES).to_stored())["passages"] == {"words": 150, "overlap": 30}
    limited = CollectionConfig.of(passages={"tokens": 100})
    assert CollectionConfig.from_stored(limited.to_stored()).passages == PassageConfig(words=150, overlap=30, tokens=100)


@pytest.mark.parametrize(
    ("passages", "max_tokens", "tokens"),
    [({}, 256, 256), ({}, 0, 0), ({"words": 0, "overlap": 0}, 256, 0), ({"tokens": 0}, 256, 0), ({"tokens": 99}, 256, 99)],
)
def test_the_limit_of_tokens_is_by_default_what_the_model_reads(passages: dict[str, int], max_tokens: int, tokens: int) -> None:
    assert PassageConfig(**passages).within(max_tokens).tokens == tokens


@pytest.mark.parametrize(
    ("max_tokens", "expected"), [(256, "expected at most 256, which the model reads"), (0, "the collection has no tokenizer")]
)
def test_a_limit_of_tokens_that_cannot_be_kept(max_tokens: int, expected: str) -> None:
    with pytest.raises(BadInput, match=f"passages.tokens is 300; .*{expected}"):
        PassageConfig(tokens=300).within(max_tokens)


def test_lenses_with_one_configuration_key_share_it() -> None:
    config = CollectionConfig.of(lenses=["sparse", "tokens", "lexical"], sparse={"weights": "float32"})
    assert {config.of_lens(name) for name in ("sparse", "tokens", "lexical")} == {SparseConfig(weights="float32")}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nose": {}}, "option 'nose' is not known; expected one of lenses, model, passages, bm25, dense"),
        (
            {"lenses": ["bm25", "dense"], "multi": {"bits": 2}},
            "option 'multi' configures multi, but the lenses are bm25, dense",
        ),
        ({"sparse": {}}, "option 'sparse' configures sparse or tokens or lexical or external, but the lenses are bm25, dense"),
        ({"lenses": ["smell"]}, "lenses are smell; expected one or more of bm25, dense, .*, each once"),
        ({"lenses": []}, "lenses are none; expected one or more of bm25, dense, .*, each once"),
        ({"lenses": ["bm25", "bm25"]}, "lenses are bm25, bm25; expected one or more of .*, each once"),
        ({"lenses": ["vectors"]}, "lenses are vectors; expected one or more of .*external"),
        ({"lenses": ["external"]}, "the documents of lens external are vectors, not texts: expected it alone"),
        ({"bm25": {"b": 2}}, "bm25.b is 2; expected a value less than or equal to 1"),
        ({"bm25": {"k3": 2}}, "bm25: option 'k3' is not known; expected one of k1, b, analysis"),
        ({"dense": {"lists": 2}}, "dense: option 'lists' is not known; expected one of ann_rows, probed_share"),
        ({"lenses": ["multi"], "multi": {"bits": 3}}, "multi.bits is 3; expected 1, 2 or 4"),
        (
            {"passages": {"words": 0, "tokens": 9}},
            "tokens is 9 with passages of 0 words, which are whole documents",
        ),
        ({"passages": {"words": 5, "overlap": 5}}, "overlap is 5; expected fewer than the 5 words of a passage"),
    ],
)
def test_options_that_cannot_be_used(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message) as caught:
        CollectionConfig.of(**options)
    assert "\n" not in str(caught.value)


def test_a_stored_lens_that_is_not_installed() -> None:
    with pytest.raises(UnknownFormat, match="has the lens 'smell', which is not installed; install its plug-in"):
        from_stored(lenses=["bm25", "smell"])


@pytest.mark.parametrize("text", ["[]", '"bm25"', "3", '{"unknown": 1}', '{"lenses": 3}', '{"lenses": ["bm25"], "nose": 1}'])
def test_a_stored_configuration_that_is_damaged(text: str) -> None:
    with pytest.raises(BadInput):
        CollectionConfig.from_stored(text)

"""Building a model: defaults of its family and tokenizer, and initialisation of untrained heads."""

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="training needs torch: pip install trilens[train]")
pytest.importorskip("sentence_transformers", reason="training needs sentence-transformers: pip install trilens[train]")

from tests.train import tiny
from trilens.encode.families import BGE_EN
from trilens.errors import BadInput, BadModel
from trilens.train.build import build_model, with_heads
from trilens.train.layers import layers_of
from trilens.train.model import description_of, stacks_of


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.bert(tmp_path_factory.mktemp("models") / "bge-tiny-en")


def test_family_defaults(bert: Path) -> None:
    description = description_of(build_model(bert, ["dense", "sparse"]))
    assert (description.name, description.pooling, description.query_prefix) == ("bge-tiny-en", "cls", BGE_EN)
    assert (description.max_query_tokens, description.dim) == (tiny.PLACES, tiny.HIDDEN)
    assert description.sparse is not None and description.multi is None
    assert (description.sparse.shift, description.sparse.dim) == (tiny.BERT_SHIFT, len(tiny.BERT_VOCABULARY) - tiny.BERT_SHIFT)
    changes = {"pooling": "mean", "query_prefix": "", "max_doc_tokens": 12, "sparse": {"shift": 9}}
    changed = description_of(build_model(bert, ["dense", "sparse"], changes=changes))
    assert (changed.pooling, changed.query_prefix, changed.max_doc_tokens) == ("mean", "", 12)
    assert changed.sparse is not None and (changed.sparse.shift, changed.sparse.dim) == (9, len(tiny.BERT_VOCABULARY) - 9)


@pytest.mark.parametrize(
    ("heads", "changes", "message"),
    [
        (["dense"], {"colour": "red"}, "option .colour. is not known"),
        (["dense", "colbert"], {}, "heads.1"),
        (["dense"], {"multi": {"dim": 4}}, "multi is given, but heads is"),
        (["dense"], {"max_doc_tokens": 41}, "max_doc_tokens is 41; expected at most 40"),
        (["dense"], {"dim": 5}, "dim is 5; expected 32"),
        (["multi"], {"multi": {"query_marker": "[Q]"}}, "has no token '\\[Q\\]'"),
    ],
)
def test_invalid_descriptions(bert: Path, heads: Any, changes: dict[str, Any], message: str) -> None:
    with pytest.raises((BadInput, BadModel), match=message):
        build_model(bert, heads, changes=changes)


@pytest.mark.parametrize("towers", ["shared", "separate"])
def test_first_layers_only(bert: Path, towers: Any) -> None:
    whole, small = (build_model(bert, ["dense", "sparse"], towers, layers=layers) for layers in (None, 1))
    for task, stack in stacks_of(small).items():
        of_whole = stacks_of(whole)[task].backbone.model
        assert (len(layers_of(stack.backbone.model)), stack.backbone.config.num_hidden_layers) == (1, 1)
        assert torch.equal(layers_of(stack.backbone.model)[0].output.dense.weight, layers_of(of_whole)[0].output.dense.weight)


def test_unknown_towers(bert: Path) -> None:
    with pytest.raises(BadInput, match="towers is 'two'"):
        build_model(bert, towers="two")  # type: ignore[arg-type]


def test_untrained_heads(bert: Path) -> None:
    model = build_model(bert, ["dense", "multi", "sparse", "lexical"], changes={"multi": {"dim": 8}, "query_prefix": ""}).eval()
    stack = stacks_of(model)["query"]
    weight = tiny.heads_of(model).multi.linear.weight
    torch.testing.assert_close(weight @ weight.T, torch.eye(8), atol=1e-5, rtol=0)
    actual = model(model.preprocess(tiny.TEXTS, task="document"))
    own = actual["bags"].bool()
    assert (actual["lexical"][:, tiny.BERT_SHIFT :][own] > 0).all()
    states = tiny.heads_of(model).sparse.norm(actual["token_embeddings"][actual["attention_mask"].bool()])
    products = states.detach() @ stack.backbone.model.get_input_embeddings().weight.detach()[tiny.BERT_SHIFT :].T
    assert 0.5 < float(products.std()) < 1.5
    assert abs(float(products.mean())) < 0.3
    again = build_model(bert, ["dense", "multi", "sparse", "lexical"], changes={"multi": {"dim": 8}})
    assert torch.equal(tiny.heads_of(again).multi.linear.weight, weight)
    other = build_model(bert, ["multi"], changes={"multi": {"dim": 8}}, seed=1)
    assert not torch.equal(tiny.heads_of(other).multi.linear.weight, weight)


def test_initial_optional_layers_have_no_effect(bert: Path) -> None:
    heads: Any = ["multi", "sparse"]
    plain = build_model(bert, heads, changes={"multi": {"dim": 8}}).eval()
    more = build_model(bert, heads, changes={"multi": {"dim": 8, "weighted": True}, "sparse": {"transform": True}}).eval()
    one, other = (model(model.preprocess(tiny.TEXTS, task="query")) for model in (plain, more))
    torch.testing.assert_close(other["multi"], one["multi"])
    alike = torch.nn.functional.cosine_similarity(other["sparse"], one["sparse"])
    assert alike.min().item() > 0.98


def test_with_heads_adds_layers_and_keeps_trained_ones(bert: Path) -> None:
    heads: Any = ["multi", "sparse"]
    plain = build_model(bert, heads, changes={"multi": {"dim": 8}}).eval()
    described = description_of(plain)
    assert described.multi is not None and described.sparse is not None
    changes = {"multi": {**described.multi.model_dump(), "weighted": True}}
    more = with_heads(plain, ["multi"], changes)
    assert torch.equal(tiny.heads_of(more).multi.linear.weight, tiny.heads_of(plain).multi.linear.weight)
    assert not tiny.heads_of(more).multi.weigh.weight.any()
    with pytest.raises(BadInput, match=r"no place for the trained weights multi.weigh.weight, multi.weigh.bias"):
        with_heads(more, ["multi"], {"multi": described.multi.model_dump()})


def test_weighted_heads_need_a_task(bert: Path) -> None:
    model = build_model(bert, ["multi"], changes={"multi": {"dim": 8, "weighted": True}})
    features = model.preprocess(["red fox"], task="query")
    del features["task"]
    with pytest.raises(BadInput, match="the batch has no task, but query tokens are weighted"):
        model(features)


def test_a_projection_of_dense_vectors(bert: Path) -> None:
    model = build_model(bert, changes={"dim": 6, "dense": {"projection": "tanh", "normalised": False}}).eval()
    actual = model(model.preprocess(tiny.TEXTS, task="document"))
    linear = tiny.heads_of(model).dense.linear
    torch.testing.assert_close(actual["sentence_embedding"], torch.tanh(linear(actual["token_embeddings"][:, 0])))

"""Heads fitted to texts."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="training needs torch: pip install trilens[train]")


from tests.train import tiny
from tests.train.runs import MULTI
from trilens.train.build import build_model
from trilens.train.fitting import fit_heads, fit_matches
from trilens.train.model import stacks_of


def test_heads_fitted_to_texts(no_dropout: Path) -> None:
    """A text's own words have the highest weights, rare words higher ones than frequent words, and towers start equal."""
    texts = [f"the {first} {second}" for first in tiny.WORDS[:8] for second in tiny.WORDS[8:16]]
    changes = {"multi": MULTI, "sparse": {"transform": True, "biased": True}, "max_doc_tokens": 16}
    model = build_model(no_dropout, ["multi", "sparse", "lexical"], "separate", changes)
    fit_heads(model, texts)
    one, other = (stack.heads.state_dict() for stack in stacks_of(model).values())
    assert all(torch.equal(one[name], other[name]) for name in one)
    weight = one["multi.linear.weight"].clone()
    torch.testing.assert_close(weight @ weight.T, torch.eye(len(weight)), atol=1e-5, rtol=0)
    with torch.no_grad():
        actual = model.eval()(model.preprocess(texts, task="document"))
    the, first = (tiny.BERT_VOCABULARY.index(word) for word in ("the", tiny.WORDS[0]))
    own, above = actual["bags"].bool(), actual["sparse"] > actual["sparse"].mean(1, keepdim=True)
    own[:, the - tiny.BERT_SHIFT] = False  # it stands in all texts, so it message nothing of any
    assert above[own].float().mean() > 0.8 and above[~own].float().mean() < 0.3
    assert actual["lexical"][0, first] > actual["lexical"][0, the]


def test_multi_head_fitted_to_matches(no_dropout: Path) -> None:
    """Towers stay equal, the projection keeps its norm, and rare query tokens weigh more than frequent ones."""
    texts = [f"the {first} {second}" for first in tiny.WORDS[:8] for second in tiny.WORDS[8:16]]
    model = build_model(no_dropout, ["multi"], "separate", {"multi": MULTI | {"weighted": True}, "max_doc_tokens": 16})
    fit_heads(model, texts)
    before = stacks_of(model)["query"].heads.state_dict()["multi.linear.weight"].clone()
    fit_matches(model, [(text, text) for text in texts], texts)
    one, other = (stack.heads.state_dict()["multi.linear.weight"] for stack in stacks_of(model).values())
    assert torch.equal(one, other) and not torch.equal(one, before)
    assert one.square().sum().item() == pytest.approx(len(before))
    with torch.no_grad():
        actual = model.eval()(model.preprocess(texts[:1], task="query"))["multi"][0].norm(dim=-1)
    assert actual[2] > actual[1] > 0  # after the token that begins all texts comes "the"

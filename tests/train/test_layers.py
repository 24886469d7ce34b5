"""Lower and upper layers of all encoder types, computed separately."""

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="training needs torch: pip install trilens[train]")
transformers = pytest.importorskip("transformers", reason="training needs transformers: pip install trilens[train]")

from tests.train import tiny
from trilens.errors import BadInput
from trilens.train.build import build_model
from trilens.train.freezing import freeze
from trilens.train.layers import keep_layers, layers_of, lower_states, shared_by_layers, upper_states

LAYERS = 3
LIKE_BERT = {"hidden_size": 16, "num_hidden_layers": LAYERS, "num_attention_heads": 2, "intermediate_size": 24}
LIKE_T5 = {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": LAYERS, "num_heads": 2}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("BertModel", LIKE_BERT),
    "roberta": ("RobertaModel", LIKE_BERT),
    "xlm-roberta": ("XLMRobertaModel", LIKE_BERT),
    "camembert": ("CamembertModel", LIKE_BERT),
    "electra": ("ElectraModel", LIKE_BERT | {"embedding_size": 12}),
    "mpnet": ("MPNetModel", LIKE_BERT),
    "distilbert": ("DistilBertModel", {"dim": 16, "n_layers": LAYERS, "n_heads": 2, "hidden_dim": 24}),
    "t5": ("T5EncoderModel", LIKE_T5),
    "mt5": ("MT5EncoderModel", LIKE_T5),
}


def made(kind: str) -> Any:
    name, settings = KINDS[kind]
    type_ = getattr(transformers, name)
    torch.manual_seed(0)
    model = type_(type_.config_class(vocab_size=30, pad_token_id=1, **settings)).eval()
    for name, weights in model.named_parameters():  # wide, so that errors in using them show
        torch.nn.init.normal_(weights, 1 if "norm" in name.lower() and name.endswith("weight") else 0, 0.3)
    return model


def inputs() -> dict[str, Any]:
    ids = torch.randint(2, 30, (3, 7), generator=torch.Generator().manual_seed(1))
    mask = (torch.arange(7) < torch.tensor([7, 4, 1])[:, None]).long()
    return {"input_ids": torch.where(mask.bool(), ids, 1), "attention_mask": mask}


@pytest.mark.parametrize("kind", KINDS)
def test_lower_and_upper_layers_equal_the_whole_encoder(kind: str) -> None:
    model, given = made(kind), inputs()
    whole, kept = model(**given).last_hidden_state, given["attention_mask"].bool()
    before = layers_of(model)
    for layers in range(1, LAYERS + 1):
        lower = lower_states(model, given, layers).detach()
        lower[~kept] = 0  # padding is not stored
        torch.testing.assert_close(upper_states(model, given, lower, layers)[kept], whole[kept], atol=1e-5, rtol=1e-5)
        wrong = upper_states(model, given, lower + 1, layers)
        assert (wrong - whole)[kept].abs().max() > 1e-3 or layers == LAYERS
    assert layers_of(model) == before


@pytest.mark.parametrize("kind", KINDS)
def test_keep_layers(kind: str, tmp_path: Path) -> None:
    model, given = made(kind), inputs()
    kept = given["attention_mask"].bool()
    seen: list[Any] = []
    layers_of(model)[1].register_forward_hook(lambda _layer, _given, actual: seen.append(actual))
    model(**given)
    keep_layers(model, 2)
    states = model(**given).last_hidden_state
    first, second = (actual if isinstance(actual, torch.Tensor) else actual[0] for actual in seen)
    torch.testing.assert_close(second[kept], first[kept])  # what is left does what it did
    assert len(layers_of(model)) == model.config.num_hidden_layers == 2
    model.save_pretrained(tmp_path)
    again = type(model).from_pretrained(tmp_path).eval()
    torch.testing.assert_close(again(**given).last_hidden_state, states)


def test_keep_layers_truncates_per_layer_config(tmp_path: Path) -> None:
    settings = LIKE_BERT | {"vocab_size": 30, "pad_token_id": 1, "layer_types": ["full_attention"] * LAYERS}
    model = transformers.ModernBertModel(transformers.ModernBertConfig(**settings)).eval()
    keep_layers(model, 2)
    states = model(**inputs()).last_hidden_state
    model.save_pretrained(tmp_path)
    again = transformers.ModernBertModel.from_pretrained(tmp_path).eval()
    torch.testing.assert_close(again(**inputs()).last_hidden_state, states)


@pytest.mark.parametrize("layers", [0, LAYERS + 1])
def test_keep_layers_rejects_invalid_counts(layers: int) -> None:
    with pytest.raises(BadInput, match=f"layers is {layers}; expected 1 to {LAYERS}"):
        keep_layers(made("bert"), layers)


@pytest.mark.parametrize("kind", ["bert", "mpnet", "t5"])
def test_gradients_reach_the_upper_layers_only(kind: str) -> None:
    model, given = made(kind), inputs()
    upper_states(model, given, lower_states(model, given, 1).detach(), 1).square().sum().backward()
    first, second, third = (
        any(p.grad is not None and p.grad.any() for n, p in layer.named_parameters() if "relative" not in n)
        for layer in layers_of(model)
    )
    assert not first and second and third


def test_upper_layers_with_gradient_checkpointing() -> None:
    given = inputs()

    def gradient(again: bool) -> Any:
        model = made("bert").train()
        for module in model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
        if again:
            model.activation_checkpointing_enable({"use_reentrant": False})
        upper_states(model, given, torch.ones(3, 7, 16), 1).square().sum().backward()
        return layers_of(model)[1].output.dense.weight.grad

    torch.testing.assert_close(gradient(True), gradient(False))


def test_unsupported_encoder_types() -> None:
    model = made("bert")
    model.config.model_type = "abacus"
    with pytest.raises(BadInput, match=r"'abacus' cannot resume from the states of a layer; expected one of bert, .*remove"):
        lower_states(model, inputs(), 1)


def test_shared_modules_of_frozen_layers_are_frozen(tmp_path: Path) -> None:
    """Otherwise the frozen layers would change."""
    folder = tiny.bert(tmp_path)
    config = transformers.MPNetConfig(**LIKE_BERT | {"vocab_size": len(tiny.BERT_VOCABULARY)})
    transformers.MPNetModel(config).save_pretrained(folder)
    model = build_model(folder)
    freeze(model, embeddings=True, layers=1)
    backbone: Any = model[0]
    (shared,) = shared_by_layers(backbone.model)
    assert not any(parameter.requires_grad for parameter in shared.parameters())
    freeze(model, embeddings=True)
    assert all(parameter.requires_grad for parameter in shared.parameters())

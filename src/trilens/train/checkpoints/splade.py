"""SPLADE: a masked language model whose token logits become log(1 + ReLU) weights of the vocabulary, with their maximum."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from trilens.errors import BadModel
from trilens.export.published import backbone_of
from trilens.train.backbone import Backbone
from trilens.train.checkpoints.files import read_json, read_tensors, take, trained_stack, weights_file
from trilens.train.checkpoints.sbert import modules_of, tokenizer_length
from trilens.train.model import Stack

MAX_TOKENS = 256  # of the training of the published models


class MaskedHead(NamedTuple):
    """Tensor names of a masked-language head; `words` is its copy of the word embeddings, if there is one."""

    transform: str
    norm: str
    bias: str
    words: str
    embeddings: str


BERT = MaskedHead(
    "cls.predictions.transform.dense",
    "cls.predictions.transform.LayerNorm",
    "cls.predictions.bias",
    "cls.predictions.decoder.weight",
    "bert.embeddings.word_embeddings.weight",
)
ROBERTA = MaskedHead(
    "lm_head.dense", "lm_head.layer_norm", "lm_head.bias", "lm_head.decoder.weight", "roberta.embeddings.word_embeddings.weight"
)
DISTILBERT = MaskedHead(
    "vocab_transform",
    "vocab_layer_norm",
    "vocab_projector.bias",
    "vocab_projector.weight",
    "distilbert.embeddings.word_embeddings.weight",
)
HEADS = {"bert": BERT, "distilbert": DISTILBERT, "roberta": ROBERTA, "xlm-roberta": ROBERTA, "camembert": ROBERTA}


def load(folder: Path, source: str, changes: Mapping[str, Any]) -> tuple[Stack, None]:
    """A sparse head from the masked-language head, over the whole vocabulary."""
    require_supported(folder)
    encoder = backbone_of(folder)
    config = read_json(encoder / "config.json")
    kind, activation = config.get("model_type"), config.get("hidden_act", config.get("activation", "gelu"))
    if kind not in HEADS or activation != "gelu":
        raise BadModel(f"{source} is a {kind} with {activation}; expected SPLADE on one of {', '.join(HEADS)}, with gelu")
    names, file = HEADS[kind], weights_file(encoder)
    tensors = read_tensors(file)
    parts = take(tensors, [f"{layer}.{part}" for layer in (names.transform, names.norm) for part in ("weight", "bias")], file)
    (bias,) = take(tensors, (names.bias,), file)
    require_tied(tensors, names, file)
    backbone = Backbone(str(encoder))
    words = backbone.tokens.size
    weights = dict(
        zip(("sparse.transform.weight", "sparse.transform.bias", "sparse.norm.weight", "sparse.norm.bias"), parts, strict=True)
    )
    lengths = read_json(encoder / "sentence_bert_config.json").get("max_seq_length") or tokenizer_length(encoder) or MAX_TOKENS
    described = {
        "query_prefix": "",
        "doc_prefix": "",
        "max_query_tokens": lengths,
        "max_doc_tokens": lengths,
        "sparse": {
            "shift": 0,
            "top": words,
            "normalised": False,
            "transform": True,
            "biased": True,
            "activation": "log1p",
            "epsilon": float(config.get("layer_norm_eps", 1e-12)),
        },
    }
    return trained_stack(backbone, source, ["sparse"], described, changes, weights | {"sparse.bias": bias[:words]}), None


def require_supported(folder: Path) -> None:
    """Refuse modules other than an encoder and the pooling of SPLADE-v2 and later: the maximum of log(1 + ReLU)."""
    modules = modules_of(folder)
    if extra := [kind for kind, _ in modules if kind not in ("Transformer", "MLMTransformer", "SpladePooling")]:
        raise BadModel(f"{folder} has a module {extra[0]}; expected an encoder and SpladePooling")
    for path in (path for kind, path in modules if kind == "SpladePooling"):
        settings = read_json(folder / path / "config.json")
        pooling, activation = settings.get("pooling_strategy", "max"), settings.get("activation_function", "relu")
        if (pooling, activation) != ("max", "relu"):
            raise BadModel(f"{folder} pools by {pooling} of {activation}; expected max of relu, as SPLADE-v2 and later do")


def require_tied(tensors: Mapping[str, Any], names: MaskedHead, file: Path) -> None:
    """Require that the head multiplies with the word embeddings, as in all published models."""
    words, embeddings = (tensors.get(name) for name in (names.words, names.embeddings))
    if isinstance(words, Tensor) and isinstance(embeddings, Tensor) and not same(words, embeddings):
        raise BadModel(f"{file} has {names.words} that differs from the word embeddings; expected a head tied to them")


def same(first: Tensor, second: Tensor) -> bool:
    """Whether two tensors are equal."""
    return first.shape == second.shape and torch.equal(first, second)

"""Helpers of the tests of published checkpoints."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="training needs torch: pip install trilens[train]")
pytest.importorskip("sentence_transformers", reason="training needs sentence-transformers: pip install trilens[train]")

from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from torch import Tensor
from transformers import (
    BertForMaskedLM,
    DistilBertConfig,
    DistilBertForMaskedLM,
    DPRConfig,
    DPRContextEncoder,
    DPRQuestionEncoder,
)
from transformers.utils import logging

from tests.train import tiny

logging.disable_progress_bar()  # of saving, which tests of the command line would see

DIM = 8


ID = {word: index for index, word in enumerate(tiny.BERT_VOCABULARY)}


def outputs(model: SentenceTransformer, task: str = "document", texts: list[str] | None = None) -> dict[str, Any]:
    model.eval()
    with torch.no_grad():
        features = model.preprocess(texts or tiny.TEXTS, task=task)
        return dict(model(features, task=task))


def states_of(encoder: Any, ids: Tensor) -> Tensor:
    """The states of a single text."""
    with torch.no_grad():
        return encoder.eval()(input_ids=ids[None]).last_hidden_state[0]


def attended(actual: Mapping[str, Any], index: int) -> Tensor:
    ids: Tensor = actual["input_ids"][index][actual["attention_mask"][index].bool()]
    return ids


def same(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=1e-4)


def rename(folder: Path, change: Any, extra: Mapping[str, Tensor] | None = None, binary: bool = False) -> None:
    """Rewrite the tensors of a folder under other names, with additional tensors."""
    tensors = {change(name): tensor for name, tensor in load_file(folder / "model.safetensors").items()} | dict(extra or {})
    (folder / "model.safetensors").unlink()
    if binary:
        torch.save(tensors, folder / "pytorch_model.bin")
    else:
        save_file(
            {name: tensor.contiguous() for name, tensor in tensors.items()}, folder / "model.safetensors", {"format": "pt"}
        )


def edit_json(file: Path, **changes: Any) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def bge_m3(folder: Path) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    tiny.xlm_roberta(folder)
    multi = {"weight": drawn(DIM, tiny.HIDDEN), "bias": drawn(DIM)}
    lexical = {"weight": drawn(1, tiny.HIDDEN), "bias": torch.tensor([0.2])}
    torch.save(multi, folder / "colbert_linear.pt")
    torch.save(lexical, folder / "sparse_linear.pt")
    return multi, lexical


def vsearch(folder: Path, kind: str, shared: bool) -> tuple[Path, list[dict[str, Tensor]]]:
    """Write a folder as `Retriever.save_pretrained` does; the tokenizer is that of the base model."""
    bases = [tiny.bert(folder / f"base{seed}", seed) for seed in range(1 if shared else 2)]
    tensors = [
        {f"bert_model.{name}": tensor for name, tensor in load_file(base / "model.safetensors").items() if "pooler" not in name}
        for base in bases
    ]
    for index, tower in enumerate(tensors if kind == "vdr" else []):
        tower |= {"ln.weight": 1 + drawn(tiny.HIDDEN + index).abs(), "ln.bias": drawn(tiny.HIDDEN + index)[: tiny.HIDDEN]}
        tower["ln.weight"] = tower["ln.weight"][: tiny.HIDDEN].contiguous()
    encoder = {"type": kind, "model_id": str(bases[0]), "max_len": 20}
    if kind == "vdr":
        encoder |= {"norm": False, "shift_vocab_num": tiny.BERT_SHIFT, "topk": 6, "pooling": "max", "pooling_topk": None}
    config = {
        "architectures": ["Retriever"],
        "encoder_q": encoder,
        "encoder_p": encoder | {"max_len": 30},
        "max_length": 512,
        "shared_encoder": shared,
    }
    target = folder / "retriever"
    target.mkdir()
    (target / "config.json").write_text(json.dumps(config))
    both = {f"encoder_q.{name}": tensor for name, tensor in tensors[0].items()}
    both |= {f"encoder_p.{name}": tensor for name, tensor in tensors[-1].items()}
    if shared:
        torch.save(both, target / "pytorch_model.bin")
    else:
        save_file(both, target / "model.safetensors")
    return target, tensors


def dpr_halves(folder: Path, projection: int = 0) -> dict[str, Any]:
    """Write the two folders of a DPR as Facebook publishes it; returns the encoders by their names."""
    config = DPRConfig(**tiny.bert_config().to_diff_dict(), projection_dim=projection)
    published = {}
    base = tiny.bert(folder / "base")
    for seed, (name, kind) in enumerate((("question_encoder", DPRQuestionEncoder), ("ctx_encoder", DPRContextEncoder))):
        torch.manual_seed(seed)
        published[name] = kind(config).eval()
        published[name].save_pretrained(folder / f"dpr-{name}-tiny")
        copy_tokenizer(base, folder / f"dpr-{name}-tiny")
    return published


def copy_tokenizer(source: Path, target: Path) -> None:
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(source / file, target / file)


def colbert(folder: Path, binary: bool = False) -> Tensor:
    """Write a ColBERT as Stanford publishes it; returns its linear layer."""
    linear = drawn(DIM, tiny.HIDDEN)
    tiny.bert(folder)
    rename(folder, lambda name: f"bert.{name}", {"linear.weight": linear}, binary)
    edit_json(folder / "config.json", architectures=["HF_ColBERT"])
    metadata = {
        "query_maxlen": 12,
        "doc_maxlen": 20,
        "dim": DIM,
        "mask_punctuation": True,
        "attend_to_mask_tokens": False,
        "query_token_id": "[unused0]",
        "doc_token_id": "[unused1]",
        "query_token": "[Q]",
        "similarity": "cosine",
    }
    (folder / "artifact.metadata").write_text(json.dumps(metadata))
    return linear


def xtr(folder: Path, layout: str = "beside") -> Tensor:
    """Write an XTR, whose linear layer is in 2_Dense as in google/xtr-base-en, or inside, as PyLate stores it."""
    linear = drawn(DIM, tiny.HIDDEN)
    tiny.t5(folder)
    if layout == "inside":
        rename(folder, str, {"linear.weight": linear})
    else:
        (folder / "2_Dense").mkdir()
        torch.save({"linear.weight": linear}, folder / "2_Dense" / "pytorch_model.bin")
    if layout == "beside and pooled":
        (folder / "1_Pooling").mkdir()
    return linear


def colxtr(folder: Path) -> Tensor:
    """Write a ColXTR as PrimeQA saves it; returns its linear layer."""
    linear = drawn(DIM, tiny.HIDDEN)
    tiny.t5(folder)
    rename(folder, str, {"bottleneck.weight": linear})
    edit_json(folder / "config.json", architectures=["XTR"], dim=DIM)
    return linear


def splade(folder: Path, kind: str = "bert") -> Any:
    """Write a masked language model as Naver publishes SPLADE; returns it."""
    torch.manual_seed(3)
    usual = tiny.bert_config()
    if kind == "bert":
        model = BertForMaskedLM(usual)
        model.cls.predictions.bias.data.normal_()
    else:
        settings = {"dim": tiny.HIDDEN, "n_layers": tiny.LAYERS, "n_heads": 2, "hidden_dim": 48, "initializer_range": 0.3}
        model = DistilBertForMaskedLM(
            DistilBertConfig(vocab_size=usual.vocab_size, max_position_embeddings=tiny.PLACES, **settings)
        )
        model.vocab_projector.bias.data.normal_()
    model.eval().save_pretrained(folder)
    copy_tokenizer(tiny.bert(folder.parent / "base"), folder)
    return model

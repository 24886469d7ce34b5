"""Helpers of the tests of published checkpoints."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="training needs torch: pip install trilens[train]")
pytest.importorskip("sentence_transformers", reason="training needs sentence-transformers: pip install trilens[train]")

from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from torch import Tensor

from tests.train import tiny

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

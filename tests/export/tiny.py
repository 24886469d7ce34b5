"""Small encoders of all types with random weights, as saved by transformers and sentence-transformers."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors

torch = pytest.importorskip("torch", reason="the originals run in torch: pip install trilens[train]")
transformers = pytest.importorskip("transformers", reason="part of trilens[train]")
safetensors = pytest.importorskip("safetensors.numpy", reason="part of trilens[export]")
pytest.importorskip("onnx", reason="part of trilens[export]")

transformers.utils.logging.disable_progress_bar()  # of saving, which tests of the command line would see

SPECIAL = ["[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]", "[Q]", "[D]"]  # the second is the padding, as in RoBERTa
WORDS = [*SPECIAL, ",", ".", *(f"w{index}" for index in range(200))]
DIM, LAYERS, POSITIONS = 32, 2, 330
SHIFT = len(SPECIAL)

LIKE_BERT: dict[str, Any] = {
    "hidden_size": DIM,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": POSITIONS,
}
LIKE_T5: dict[str, Any] = {"d_model": DIM, "d_kv": 6, "d_ff": 48, "num_layers": LAYERS, "num_heads": 4}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("BertModel", LIKE_BERT),
    "bert-relu": ("BertModel", LIKE_BERT | {"hidden_act": "relu"}),
    "roberta": ("RobertaModel", LIKE_BERT),
    "xlm-roberta": ("XLMRobertaModel", LIKE_BERT),
    "camembert": ("CamembertModel", LIKE_BERT),
    "mpnet": ("MPNetModel", LIKE_BERT),
    "distilbert": (
        "DistilBertModel",
        {"dim": DIM, "n_layers": LAYERS, "n_heads": 4, "hidden_dim": 48, "max_position_embeddings": POSITIONS},
    ),
    "t5": ("T5EncoderModel", LIKE_T5),
    "t5-gated": ("T5EncoderModel", LIKE_T5 | {"feed_forward_proj": "gated-gelu"}),
    "mt5": ("MT5EncoderModel", LIKE_T5 | {"feed_forward_proj": "gated-gelu"}),
}


def write_plain(folder: Path, kind: str = "bert", words: int = len(WORDS), seed: int = 7, **changes: Any) -> Any:
    """Write a folder as transformers does; returns the model."""
    name, settings = KINDS[kind]
    made = getattr(transformers, name)
    torch.manual_seed(seed)
    model = made(made.config_class(vocab_size=words, pad_token_id=1, **settings | changes)).eval()
    with torch.no_grad():
        for called, weights in model.named_parameters():
            norm = "norm" in called.lower() and called.endswith("weight")
            weights.normal_(1 if norm else 0, 0.2 if weights.ndim == 1 else 0.3)
    model.save_pretrained(folder)
    write_tokenizer(folder, closing_only="t5" in kind)
    return model


def write_tokenizer(folder: Path, closing_only: bool = False) -> None:
    """Write a tokenizer of `WORDS`; texts end with [SEP] and, except for T5, start with [CLS]."""
    ids = {word: index for index, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens(SPECIAL)
    ends = [(word, ids[word]) for word in ("[CLS]", "[SEP]")]
    single = "$A [SEP]" if closing_only else "[CLS] $A [SEP]"
    tokenizer.post_processor = processors.TemplateProcessing(single=single, special_tokens=ends)
    tokenizer.enable_truncation(8)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))


MULTI = {"dim": 12, "normalised": True, "skip_punctuation": True, "skip_special": False}
DESCRIPTION: dict[str, Any] = {
    "name": "tiny-trained",
    "heads": ["dense", "multi", "sparse", "lexical"],
    "dim": DIM,
    "pooling": "mean",
    "query_prefix": "w1 ",
    "doc_prefix": "",
    "max_query_tokens": 16,
    "max_doc_tokens": 64,
    "multi": MULTI,
    "sparse": {"dim": len(WORDS) - SHIFT, "shift": SHIFT, "top": 20, "normalised": False},
    "lexical": {"dim": len(WORDS)},
    "weighing": {"rarity": True, "own_query": 3.0, "lexical_length": 0.5},
    "licence": "MIT",
    "source": "made by a test",
}


def further_tensors() -> dict[str, Any]:
    """Tensors of weighted queries, and of a transform and biases in the sparse head."""
    rng = np.random.default_rng(6)
    shapes = {
        "multi.weigh.weight": (1, DIM),
        "multi.weigh.bias": (1,),
        "sparse.transform.weight": (DIM, DIM),
        "sparse.transform.bias": (DIM,),
        "sparse.bias": (DESCRIPTION["sparse"]["dim"],),
    }
    return {name: rng.normal(0, 0.2, shape).astype(np.float32) for name, shape in shapes.items()}


def head_tensors(multi_bias: bool = True) -> dict[str, Any]:
    rng = np.random.default_rng(5)
    shapes = {
        "multi.linear.weight": (12, DIM),
        "multi.linear.bias": (12,),
        "sparse.norm.weight": (DIM,),
        "sparse.norm.bias": (DIM,),
        "lexical.linear.weight": (1, DIM),
        "lexical.linear.bias": (1,),
    }
    made = {name: rng.normal(0, 0.4, shape).astype(np.float32) for name, shape in shapes.items()}
    if not multi_bias:
        del made["multi.linear.bias"]
    return made


def write_trained(folder: Path, kind: str = "bert", tensors: dict[str, Any] | None = None, **changes: Any) -> Any:
    """Write a folder as training does: backbone in the root, heads in `1_Heads`."""
    model = write_plain(folder, kind)
    write_heads(folder / "1_Heads", tensors, **changes)
    modules = [("", "trilens.train.model.Backbone"), ("1_Heads", "trilens.train.model.Heads")]
    write_modules(folder, modules)
    return model


def write_towers(folder: Path) -> None:
    """Write a folder as training does with separate towers."""
    write_modules(folder, [("", "sentence_transformers.base.modules.router.Router")])
    structure = {route: [f"{route}_0_Backbone", f"{route}_1_Heads"] for route in ("query", "document")}
    for seed, (backbone, heads) in enumerate(structure.values()):
        write_plain(folder / backbone, seed=seed)
        write_heads(folder / heads, {name: tensor + np.float32(seed) for name, tensor in head_tensors().items()})
    types = {name: f"trilens.train.model.{name.rsplit('_', 1)[-1]}" for names in structure.values() for name in names}
    (folder / "router_config.json").write_text(json.dumps({"types": types, "structure": structure, "parameters": {}}))


def write_heads(folder: Path, tensors: dict[str, Any] | None = None, **changes: Any) -> None:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(DESCRIPTION | changes))
    safetensors.save_file(head_tensors() if tensors is None else tensors, folder / "model.safetensors")


def write_modules(folder: Path, modules: list[tuple[str, str]]) -> None:
    listed = [{"idx": index, "name": str(index), "path": path, "type": kind} for index, (path, kind) in enumerate(modules)]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "modules.json").write_text(json.dumps(listed))


def texts(count: int = 40, longest: int = 30) -> list[str]:
    rng = np.random.default_rng(4)
    return [" ".join(rng.choice(WORDS[SHIFT:], size)) for size in rng.integers(3, longest, count)]


def write_texts(file: Path, count: int = 40) -> Path:
    file.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts(count)))
    return file

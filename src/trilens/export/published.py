"""Layouts of published checkpoints, recognised by their files: what is in a folder beyond a plain encoder.

Only the loaders of `trilens.train.checkpoints` read these layouts. To export the encoder alone would give another model.
"""

import json
from pathlib import Path
from typing import Any

from trilens.errors import BadModel
from trilens.export.checkpoint import CONFIG, SHARDS, WEIGHTS, Checkpoint, read_json
from trilens.export.source import MODULES, last_name, read_modules

M3_FILES = {"multi": "colbert_linear.pt", "lexical": "sparse_linear.pt"}
COLBERT_FILE = "artifact.metadata"
LINEAR, BOTTLENECK = "linear.weight", "bottleneck.weight"
XTR_FOLDER = "2_Dense"
PICKLED = "pytorch_model.bin"
TRAINED = {"Heads", "Router"}
T5 = ("t5", "mt5")
# Parts of checkpoints that no retriever uses: poolers, heads of pre-training, decoders.
NOT_MISSED = (
    *("pooler.", "cls.", "lm_head.", "generator_lm_head.", "vocab_transform.", "vocab_layer_norm.", "vocab_projector."),
    *("decoder.", "shared.", "embeddings.", "encoder.", "transformer."),
)


def layout_of(path: Path, name: str) -> str | None:
    """The layout of a published checkpoint that is more than a plain encoder; None for plain ones and those of trilens.

    `name` is its hub id or path: SPLADE models are told from other masked language models by it.
    """
    if path.is_file():
        return "DPR or VDR file"
    if TRAINED & set(kinds_of(path)):
        return None
    layouts = {
        "BGE-M3": is_m3,
        "VDR": is_vsearch,
        "DPR": is_dpr_half,
        "ColBERT": is_colbert,
        "XTR": lambda folder: is_xtr(folder, name, tensor_names(folder)),
        "SPLADE": lambda folder: is_splade(folder, name),
        "sentence-transformers": is_more_than_pooled,
        PICKLED: is_pickled,
    }
    return next((layout for layout, recognises in layouts.items() if recognises(path)), None)


def is_m3(folder: Path) -> bool:
    """By either of the two layers: with only one, it is a damaged BGE-M3, not another model."""
    return any((folder / name).exists() for name in M3_FILES.values())


def is_vsearch(folder: Path) -> bool:
    """By a config with two encoders."""
    return {"encoder_q", "encoder_p"} <= config_of(folder).keys()


def is_dpr_half(folder: Path) -> bool:
    """Whether this is one of the two folders of Facebook's DPR."""
    return config_of(folder).get("model_type") == "dpr"


def is_colbert(folder: Path) -> bool:
    """By the class name of Stanford's ColBERT, or the metadata file of its trainer."""
    return (folder / COLBERT_FILE).is_file() or "HF_ColBERT" in (config_of(folder).get("architectures") or [])


def is_xtr(folder: Path, name: str, tensors: set[str]) -> bool:
    """A T5 with a linear layer among its tensors, or in a sentence-transformers Dense module.

    GTR differs only in its pooling module, which google/xtr-base-en may have too; there, the model name decides.
    """
    if config_of(folder).get("model_type") not in T5:
        return False
    if {LINEAR, BOTTLENECK} & tensors:
        return True
    pooled = "Pooling" in kinds_of(folder) or (folder / "1_Pooling").is_dir()
    return (folder / XTR_FOLDER).is_dir() and (not pooled or "xtr-" in name.rstrip("/").rsplit("/", 1)[-1].lower())


def is_splade(folder: Path, name: str) -> bool:
    """A masked language model with SPLADE's pooling module or, without modules, SPLADE in its name."""
    if "SpladePooling" in kinds_of(folder):
        return True
    masked = any(kind.endswith("ForMaskedLM") for kind in config_of(folder).get("architectures") or [])
    return masked and not (folder / MODULES).is_file() and "splade" in name.rstrip("/").rsplit("/", 1)[-1].lower()


def is_more_than_pooled(folder: Path) -> bool:
    """A sentence-transformers model with a projection, or with a tokenizer that lower-cases outside of its file."""
    if "Dense" in kinds_of(folder):
        return True
    lengths = backbone_of(folder) / "sentence_bert_config.json"
    return lengths.is_file() and bool(read_json(lengths).get("do_lower_case"))


def is_pickled(folder: Path) -> bool:
    """Weights in the format of torch only."""
    backbone = backbone_of(folder)
    return (backbone / PICKLED).is_file() and not any((backbone / name).is_file() for name in (WEIGHTS, SHARDS))


def config_of(folder: Path) -> dict[str, Any]:
    """The config of a folder; empty if it has none."""
    return read_json(folder / CONFIG) if (folder / CONFIG).is_file() else {}


def kinds_of(folder: Path) -> list[str]:
    """Class names of the sentence-transformers modules of a folder."""
    return [last_name(module["type"]) for module in modules_of(folder)]


def backbone_of(folder: Path) -> Path:
    """The folder of the encoder: sentence-transformers may keep it in a folder of the first module."""
    return folder / str(next((module["path"] for module in modules_of(folder)), ""))


def modules_of(folder: Path) -> list[dict[str, Any]]:
    """The sentence-transformers modules of a folder; empty if it has none."""
    return read_modules(folder / MODULES) if (folder / MODULES).is_file() else []


def tensor_names(folder: Path) -> set[str]:
    """The tensor names of a folder, without the tensors; empty if they are in the format of torch."""
    if (folder / SHARDS).is_file():
        return set(read_json(folder / SHARDS).get("weight_map", {}))
    file = folder / WEIGHTS
    if not file.is_file():
        return set()
    try:
        with file.open("rb") as opened:
            header = json.loads(opened.read(int.from_bytes(opened.read(8), "little")))
    except (OSError, ValueError) as error:
        raise BadModel(f"{file} cannot be read ({error}); restore it") from error
    return set(header) - {"__metadata__"}


def require_no_more(checkpoint: Checkpoint) -> None:
    """Refuse tensors that are neither of the encoder nor of a part that no retriever uses: they would be dropped."""
    if rest := sorted(name for name in checkpoint.tensors if not name.startswith(NOT_MISSED)):
        shape = " × ".join(map(str, checkpoint.tensors[rest[0]].shape))
        more = f" and {len(rest) - 1} more" if len(rest) > 1 else ""
        raise BadModel(
            f"{checkpoint.folder} has {rest[0]} ({shape}){more}, which no known head uses and an export would drop; to "
            "export the pooled vectors of the encoder alone, give --heads dense"
        )

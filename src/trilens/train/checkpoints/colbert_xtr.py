"""ColBERT, XTR and ColXTR: an encoder and a bias-free linear layer over its token states."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from trilens.encode.families import COLBERT, COLXTR, XTR, family_of
from trilens.errors import BadModel
from trilens.train.backbone import Backbone
from trilens.train.checkpoints.files import read_json, read_tensors, take, tensor_names, trained_stack, weights_file
from trilens.train.checkpoints.sbert import modules_of
from trilens.train.model import Stack

METADATA_FILE = "artifact.metadata"
LINEAR, BOTTLENECK = "linear.weight", "bottleneck.weight"
DENSE_FOLDER = "2_Dense"
COLXTR_FIELDS = {"query_prefix": "Query: ", "doc_prefix": "Document: ", "max_query_tokens": 32, "max_doc_tokens": 180}


def recognises_colbert(folder: Path) -> bool:
    """By the class name of Stanford's ColBERT, or the metadata file of its trainer."""
    architectures = read_json(folder / "config.json").get("architectures") or []
    return (folder / METADATA_FILE).is_file() or "HF_ColBERT" in architectures


def load_colbert(folder: Path, source: str, changes: Mapping[str, Any]) -> tuple[Stack, None]:
    """A multi head; lengths, markers and punctuation handling come from the trainer's metadata file if there is one."""
    metadata, file = read_json(folder / METADATA_FILE), weights_file(folder)
    (linear,) = take(read_tensors(file, (LINEAR,)), (LINEAR,), file)
    if metadata.get("dim", len(linear)) != len(linear):
        raise BadModel(f"{file} has {LINEAR} for {len(linear)} dimensions; expected {metadata['dim']}, as in {METADATA_FILE}")
    backbone = Backbone(str(folder))
    query_tokens = metadata.get("query_maxlen") or COLBERT.query_tokens
    multi = COLBERT.model_dump() | {
        "dim": len(linear),
        "query_tokens": query_tokens,
        "mask_token": getattr(backbone.tokenizer, "mask_token", None) or COLBERT.mask_token,
        "attend_to_mask": bool(metadata.get("attend_to_mask_tokens", False)),
        "query_marker": metadata.get("query_token_id") or COLBERT.query_marker,
        "doc_marker": metadata.get("doc_token_id") or COLBERT.doc_marker,
        "skip_punctuation": bool(metadata.get("mask_punctuation", True)),
    }
    described = {
        "query_prefix": "",
        "doc_prefix": "",
        "max_query_tokens": query_tokens,
        "max_doc_tokens": metadata.get("doc_maxlen") or 220,
        "multi": multi,
    }
    return trained_stack(backbone, source, ["multi"], described, changes, {"multi.linear.weight": linear}), None


def recognises_xtr(folder: Path) -> bool:
    """A T5 with a linear layer among its tensors, or in a sentence-transformers Dense module.

    GTR differs only in its pooling module, which google/xtr-base-en may have too; there, the model name decides.
    """
    if read_json(folder / "config.json").get("model_type") not in ("t5", "mt5"):
        return False
    if {LINEAR, BOTTLENECK} & tensor_names(folder):
        return True
    pooled = "Pooling" in [kind for kind, _ in modules_of(folder)] or (folder / "1_Pooling").is_dir()
    return (folder / DENSE_FOLDER).is_dir() and (not pooled or family_of(str(folder)).name == "xtr")


def load_xtr(folder: Path, source: str, changes: Mapping[str, Any]) -> tuple[Stack, None]:
    """A multi head; ColXTR names its layer `bottleneck` and replaces the closing token's vector by the mean of all tokens."""
    name, linear = read_linear(folder)
    colxtr = name == BOTTLENECK
    # XTR was trained on lower-cased texts, but its tokenizer is cased.
    backbone = Backbone(str(folder), do_lower_case=not colxtr)
    fields = COLXTR_FIELDS if colxtr else {"query_prefix": "", "doc_prefix": ""}
    described = fields | {"multi": (COLXTR if colxtr else XTR).model_dump() | {"dim": len(linear)}}
    return trained_stack(backbone, source, ["multi"], described, changes, {"multi.linear.weight": linear}), None


def read_linear(folder: Path) -> tuple[str, Tensor]:
    """The name and the weight of the linear layer."""
    present = {LINEAR, BOTTLENECK} & tensor_names(folder)
    file = weights_file(folder if present else folder / DENSE_FOLDER)
    name = BOTTLENECK if BOTTLENECK in present else LINEAR
    tensors = read_tensors(file)
    (linear,) = take(tensors, (name,), file)
    if "linear.bias" in tensors:
        raise BadModel(f"{file} has linear.bias; expected a linear layer without bias, as in XTR")
    return name, linear

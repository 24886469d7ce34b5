"""ColBERT, XTR and ColXTR: an encoder and a bias-free linear layer over its token states."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from trilens.encode.families import COLBERT, COLXTR, XTR
from trilens.errors import BadModel
from trilens.export.published import BOTTLENECK, COLBERT_FILE, LINEAR, XTR_FOLDER
from trilens.train.backbone import Backbone
from trilens.train.checkpoints.files import read_json, read_tensors, take, tensor_names, trained_stack, weights_file
from trilens.train.model import Stack

COLXTR_FIELDS = {"query_prefix": "Query: ", "doc_prefix": "Document: ", "max_query_tokens": 32, "max_doc_tokens": 180}


def load_colbert(folder: Path, source: str, changes: Mapping[str, Any]) -> tuple[Stack, None]:
    """A multi head; lengths, markers and punctuation handling come from the trainer's metadata file if there is one."""
    metadata, file = read_json(folder / COLBERT_FILE), weights_file(folder)
    (linear,) = take(read_tensors(file, (LINEAR,)), (LINEAR,), file)
    if metadata.get("dim", len(linear)) != len(linear):
        raise BadModel(f"{file} has {LINEAR} for {len(linear)} dimensions; expected {metadata['dim']}, as in {COLBERT_FILE}")
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
    file = weights_file(folder if present else folder / XTR_FOLDER)
    name = BOTTLENECK if BOTTLENECK in present else LINEAR
    tensors = read_tensors(file)
    (linear,) = take(tensors, (name,), file)
    if "linear.bias" in tensors:
        raise BadModel(f"{file} has linear.bias; expected a linear layer without bias, as in XTR")
    return name, linear

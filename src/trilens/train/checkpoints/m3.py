"""BGE-M3: an XLM-R encoder with two additional linear layers, `colbert_linear.pt` and `sparse_linear.pt`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from trilens.encode.families import BGE_M3
from trilens.errors import BadModel
from trilens.export.published import M3_FILES
from trilens.train.backbone import Backbone
from trilens.train.checkpoints.files import read_tensors, take, trained_stack
from trilens.train.checkpoints.sbert import read_module_settings
from trilens.train.model import Stack

MAX_QUERY_TOKENS, MAX_DOC_TOKENS = 512, 8192


def load(folder: Path, source: str, changes: Mapping[str, Any]) -> tuple[Stack, None]:
    """Dense (CLS pooling, normalised), multi (with bias, without a vector for the first token) and lexical heads."""
    if missing := [name for name in M3_FILES.values() if not (folder / name).is_file()]:
        raise BadModel(f"{folder} has no {missing[0]}; expected both {' and '.join(M3_FILES.values())}: restore the checkpoint")
    weights: dict[str, Tensor] = {}
    for head, name in M3_FILES.items():
        weight, bias = take(read_tensors(folder / name), ("weight", "bias"), folder / name)
        weights |= {f"{head}.linear.weight": weight, f"{head}.linear.bias": bias}
    backbone = Backbone(str(folder))
    described = {
        "pooling": read_module_settings(folder).get("pooling", "cls"),
        "query_prefix": "",
        "doc_prefix": "",
        "max_query_tokens": MAX_QUERY_TOKENS,
        "max_doc_tokens": MAX_DOC_TOKENS,
        "multi": BGE_M3.model_dump() | {"dim": len(weights["multi.linear.weight"])},
    }
    return trained_stack(backbone, source, ["dense", "multi", "lexical"], described, changes, weights), None

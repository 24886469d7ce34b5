"""`Backbone`: what every encoder offers to whoever writes its graph, and which type of model is which."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from trilens.errors import BadModel
from trilens.export.bert import NAMES, Bert
from trilens.export.checkpoint import Checkpoint
from trilens.export.layers import Layers, Products
from trilens.export.rounding import Floats
from trilens.export.t5 import T5


class Backbone(Protocol):
    """The weights of an encoder by role. `words` has a row per token; `longest` tokens are read, None: any number."""

    checkpoint: Checkpoint
    words: Floats
    dim: int
    layers: int
    epsilon: float
    longest: int | None

    def products(self, layer: int) -> Products:
        """The matrix products of a layer."""

    def write(self, graph: Layers) -> str:
        """Add everything from `input_ids` and `attention_mask` to the states of the last layer, and name those."""


KINDS: dict[str, Callable[[Checkpoint], Backbone]] = {**dict.fromkeys(NAMES, Bert), "t5": T5, "mt5": T5}


def open_backbone(folder: Path) -> Backbone:
    """The encoder in a Hugging Face folder."""
    if not folder.is_dir():
        raise BadModel(f"there is no folder {folder}; expected one as transformers or sentence-transformers saves it")
    checkpoint = Checkpoint(folder)
    if checkpoint.model_type not in KINDS:
        raise BadModel(f"{folder} has model_type {checkpoint.model_type!r}; expected one of {', '.join(KINDS)}")
    return KINDS[checkpoint.model_type](checkpoint)

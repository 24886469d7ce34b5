"""`BackboneWriter`: the interface of encoder architectures to the graph writer, and the lookup by model type."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from trilens.errors import BadModel
from trilens.export.bert import NAMES, Bert
from trilens.export.checkpoint import Checkpoint
from trilens.export.layers import Layers, Products
from trilens.export.t5 import T5
from trilens.kernels.array_types import Float32s


class BackboneWriter(Protocol):
    """The weights of an encoder, whose graph has the inputs `reads`.

    `words` are the word embeddings; `longest` is the maximum number of tokens, None: no limit.
    """

    checkpoint: Checkpoint
    reads: tuple[str, ...]
    words: Float32s
    dim: int
    layers: int
    epsilon: float
    longest: int | None

    def products(self, layer: int) -> Products:
        """The matrix products of a layer."""

    def write(self, graph: Layers) -> str:
        """Add the encoder from its inputs to the last states, and return the name of those."""


KINDS: dict[str, Callable[[Checkpoint], BackboneWriter]] = {**dict.fromkeys(NAMES, Bert), "t5": T5, "mt5": T5}


def open_backbone(folder: Path) -> BackboneWriter:
    """Open the encoder of a Hugging Face folder."""
    if not folder.is_dir():
        raise BadModel(f"there is no folder {folder}; expected one as transformers or sentence-transformers saves it")
    checkpoint = Checkpoint(folder)
    if checkpoint.model_type not in KINDS:
        raise BadModel(f"{folder} has model_type {checkpoint.model_type!r}; expected one of {', '.join(KINDS)}")
    return KINDS[checkpoint.model_type](checkpoint)

"""Selection of the trained parameters, and gradient checkpointing."""

from collections.abc import Sequence
from typing import Any

from sentence_transformers import SentenceTransformer
from torch import nn

from trilens.encode.folder import Head
from trilens.errors import BadInput
from trilens.train.layers import layers_of, shared_by_layers
from trilens.train.model import stacks_of


def freeze(model: SentenceTransformer, embeddings: bool = True, layers: int = 0) -> None:
    """Freeze the embeddings and the first `layers` layers of each backbone, and modules these layers share with others.

    All other parameters become trainable.
    """
    for backbone in {id(stack.backbone): stack.backbone for stack in stacks_of(model).values()}.values():
        backbone.requires_grad_(True)
        freeze_encoder(backbone.model, embeddings, layers)


def freeze_encoder(encoder: Any, embeddings: bool, layers: int) -> None:
    """Freeze the embeddings and the first `layers` layers of an encoder; the other parameters stay as they are."""
    modules = layers_of(encoder)
    if not 0 <= layers <= len(modules):
        raise BadInput(f"layers is {layers}; expected 0 to {len(modules)}, the number of layers of the backbone")
    frozen: list[nn.Module] = [*modules[:layers], *(shared_by_layers(encoder) if layers else [])]
    if embeddings:
        # Including position and type embeddings, where the model keeps them in one module.
        frozen.append(getattr(encoder, "embeddings", None) or encoder.get_input_embeddings())
    for module in frozen:
        module.requires_grad_(False)


def train_only(model: SentenceTransformer, heads: Sequence[Head], computed: Sequence[Head]) -> None:
    """Train only these heads, and compute only the heads in `computed`."""
    for stack in stacks_of(model).values():
        stack.heads.wanted = tuple(computed)
        for head in stack.heads.description.heads:
            getattr(stack.heads, head).requires_grad_(head in heads)


def recompute_layers(model: SentenceTransformer, on: bool = True) -> None:
    """Enable or disable gradient checkpointing: store only each layer's input and recompute the rest in the backward pass."""
    for stack in stacks_of(model).values():
        encoder: Any = stack.backbone.model
        if on:
            encoder.activation_checkpointing_enable({"use_reentrant": False})
        elif encoder.is_activation_checkpointing:
            encoder.activation_checkpointing_disable()

"""Which parts of a model are trained, and how much memory that takes."""

from typing import Any

from sentence_transformers import SentenceTransformer
from torch import nn

from trilens.errors import BadInput
from trilens.train.layers import layers_of, shared_by_layers
from trilens.train.model import stacks_of


def freeze(model: SentenceTransformer, embeddings: bool = True, layers: int = 0) -> None:
    """Leave the embeddings and the first `layers` layers of each backbone as they are, and what those share with others; all
    else is trained."""
    for backbone in {id(stack.backbone): stack.backbone for stack in stacks_of(model).values()}.values():
        found = layers_of(backbone.model)
        if not 0 <= layers <= len(found):
            raise BadInput(f"layers is {layers}; expected 0 to {len(found)}, as many as the backbone has")
        backbone.requires_grad_(True)
        frozen: list[nn.Module] = [*found[:layers], *(shared_by_layers(backbone.model) if layers else [])]
        if embeddings:
            # With those of places and types, where the model keeps them together.
            frozen.append(getattr(backbone.model, "embeddings", None) or backbone.model.get_input_embeddings())
        for module in frozen:
            module.requires_grad_(False)


def recompute_layers(model: SentenceTransformer, on: bool = True) -> None:
    """Gradient checkpointing: keep only the input of each layer and compute the rest again on the way back, or not."""
    for stack in stacks_of(model).values():
        encoder: Any = stack.backbone.model
        if on:
            encoder.activation_checkpointing_enable({"use_reentrant": False})
        elif encoder.is_activation_checkpointing:
            encoder.activation_checkpointing_disable()

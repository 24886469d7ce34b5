"""Which parts of a model are trained, and how much memory that takes."""

from typing import Any

from sentence_transformers import SentenceTransformer
from torch import nn

from trilens.errors import BadInput
from trilens.train.backbone import Backbone
from trilens.train.model import stacks_of


def freeze(model: SentenceTransformer, embeddings: bool = True, layers: int = 0) -> None:
    """Leave the embeddings and the first `layers` layers of each backbone as they are; all else is trained."""
    for backbone in {id(stack.backbone): stack.backbone for stack in stacks_of(model).values()}.values():
        found = layers_of(backbone)
        if not 0 <= layers <= len(found):
            raise BadInput(f"layers is {layers}; expected 0 to {len(found)}, as many as the backbone has")
        backbone.requires_grad_(True)
        frozen: list[nn.Module] = [*found[:layers]]
        if embeddings:
            # With those of places and types, where the model keeps them together.
            frozen.append(getattr(backbone.model, "embeddings", None) or backbone.model.get_input_embeddings())
        for module in frozen:
            module.requires_grad_(False)


def layers_of(backbone: Backbone) -> list[nn.Module]:
    """The layers of an encoder, first to last."""
    count = backbone.config.num_hidden_layers
    lists = (module for module in backbone.model.modules() if isinstance(module, nn.ModuleList))
    found = next((layers for layers in lists if len(layers) == count), None)
    if found is None:
        raise BadInput(f"{type(backbone.model).__name__} has no list of {count} layers, so none can be frozen; freeze none")
    return list(found)


def recompute_layers(model: SentenceTransformer, on: bool = True) -> None:
    """Gradient checkpointing: keep only the input of each layer and compute the rest again on the way back, or not."""
    for stack in stacks_of(model).values():
        encoder: Any = stack.backbone.model
        if on:
            encoder.gradient_checkpointing_enable({"use_reentrant": False})
        else:
            encoder.gradient_checkpointing_disable()

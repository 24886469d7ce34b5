"""Access to the layers of an encoder: truncating it, and computing lower and upper layers separately.

The encoder's own forward pass runs over a part of its layer list, so attention masks and final norms behave as usual.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from trilens.errors import BadInput

Inputs = Mapping[str, Tensor]
"""`input_ids` and `attention_mask`."""


def layers_of(model: Any) -> list[nn.Module]:
    """The layers of an encoder, in order."""
    owner, name = _place_of_layers(model)
    return list(getattr(owner, name))


def keep_layers(model: Any, layers: int) -> None:
    """Remove all layers above the first `layers`."""
    owner, name = _place_of_layers(model)
    modules = getattr(owner, name)
    if not 1 <= layers <= len(modules):
        raise BadInput(f"layers is {layers}; expected 1 to {len(modules)}, the number of layers of the backbone")
    setattr(owner, name, modules[:layers])
    model.config.num_hidden_layers = layers
    for kinds in ("layer_types", "mlp_layer_types"):  # encoders with different kinds of layers
        if getattr(model.config, kinds, None):
            setattr(model.config, kinds, getattr(model.config, kinds)[:layers])


def shared_by_layers(model: Any) -> list[nn.Module]:
    """Modules shared by all layers: MPNet's relative attention bias; T5 keeps it in its first layer."""
    bias = getattr(_place_of_layers(model)[0], "relative_attention_bias", None)
    return [] if bias is None else [bias]


def lower_states(model: Any, inputs: Inputs, layers: int) -> Tensor:
    """The states (texts, tokens, hidden) after the first `layers` layers, without computing those above."""
    _form_of_layers(model)  # fail early if `upper_states` does not support the encoder
    kept: list[Tensor] = []
    lower = layers_of(model)[:layers]
    hook = lower[-1].register_forward_hook(lambda _layer, _inputs, output: kept.append(_first(output)))
    try:
        with _only(model, lower):
            model(**inputs)
    finally:
        hook.remove()
    return kept[0]


def upper_states(model: Any, inputs: Inputs, states: Tensor, layers: int) -> Tensor:
    """The final states, from the states after the first `layers` layers."""
    all_layers = layers_of(model)
    with _only(model, [_Given(states, all_layers[0], _form_of_layers(model)), *all_layers[layers:]]):
        final: Tensor = model(**inputs).last_hidden_state
    return final


class _Given(nn.Module):
    """Replaces layers whose output states are known; the output has the form of the first layer's."""

    def __init__(self, states: Tensor, first: nn.Module, form: "Form") -> None:
        super().__init__()
        self._output = form(states, first)

    def forward(self, *_: Any, **__: Any) -> Any:
        """The known output, for any input."""
        return self._output


Form = Callable[[Tensor, Any], Any]
"""Builds the output of a layer from its states and the first layer."""


def _with_distances(states: Tensor, first: Any) -> tuple[Tensor, Tensor, None]:
    """T5's first layer also outputs the relative position bias, which all other layers use."""
    tokens = states.shape[1]
    return states, first.layer[0].SelfAttention.compute_bias(tokens, tokens, device=states.device), None


FORMS: dict[str, Form] = {
    **dict.fromkeys(("bert", "camembert", "distilbert", "electra", "roberta", "xlm-roberta"), lambda states, first: states),
    "mpnet": lambda states, first: (states,),
    **dict.fromkeys(("t5", "mt5"), _with_distances),
}
"""Form of a layer's output by model type."""


def _form_of_layers(model: Any) -> Form:
    kind = model.config.model_type
    if kind not in FORMS:
        raise BadInput(
            f"an encoder of type {kind!r} cannot resume from the states of a layer; expected one of {', '.join(FORMS)}: remove "
            "cache_states"
        )
    return FORMS[kind]


def _first(output: Any) -> Tensor:
    return output if isinstance(output, Tensor) else output[0]


@contextmanager
def _only(model: Any, layers: Sequence[nn.Module]) -> Iterator[None]:
    """Temporarily replace the layers of the encoder."""
    owner, name = _place_of_layers(model)
    own = getattr(owner, name)
    setattr(owner, name, nn.ModuleList(layers))
    try:
        yield
    finally:
        setattr(owner, name, own)


def _place_of_layers(model: Any) -> tuple[nn.Module, str]:
    count = model.config.num_hidden_layers
    for owner in model.modules():
        for name, child in owner.named_children():
            if isinstance(child, nn.ModuleList) and len(child) == count:
                return owner, name
    raise BadInput(
        f"{type(model).__name__} has no identifiable list of {count} layers; remove layers, freeze_layers and cache_states "
        "from the recipe"
    )

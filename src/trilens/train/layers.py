"""The layers of an encoder: how many there are, and the states after the first ones apart from what those above make of them.

The encoder's own forward pass runs over a part of its list of layers, so masks and what comes after the last layer are as ever.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from trilens.errors import BadInput

Inputs = Mapping[str, Tensor]
"""`input_ids` and `attention_mask`."""


def layers_of(model: Any) -> list[nn.Module]:
    """The layers of an encoder, first to last."""
    owner, name = _place_of_layers(model)
    return list(getattr(owner, name))


def keep_layers(model: Any, layers: int) -> None:
    """Leave away the layers of an encoder above the first `layers`."""
    owner, name = _place_of_layers(model)
    found = getattr(owner, name)
    if not 1 <= layers <= len(found):
        raise BadInput(f"layers is {layers}; expected 1 to {len(found)}, as many as the backbone has")
    setattr(owner, name, found[:layers])
    model.config.num_hidden_layers = layers
    for kinds in ("layer_types", "mlp_layer_types"):  # of encoders whose layers differ
        if getattr(model.config, kinds, None):
            setattr(model.config, kinds, getattr(model.config, kinds)[:layers])


def shared_by_layers(model: Any) -> list[nn.Module]:
    """What all layers of an encoder use beside their own weights: MPNet's biases of distance; T5 has them in its first."""
    found = getattr(_place_of_layers(model)[0], "relative_attention_bias", None)
    return [] if found is None else [found]


def lower_states(model: Any, inputs: Inputs, layers: int) -> Tensor:
    """The states (texts, tokens, hidden) after the first `layers` layers; those above are not run."""
    _form_of_layers(model)  # states that nothing can go on from would be computed in vain
    kept: list[Tensor] = []
    lower = layers_of(model)[:layers]
    hook = lower[-1].register_forward_hook(lambda _layer, _given, found: kept.append(_first(found)))
    try:
        with _only(model, lower):
            model(**inputs)
    finally:
        hook.remove()
    return kept[0]


def upper_states(model: Any, inputs: Inputs, states: Tensor, layers: int) -> Tensor:
    """The last states, from those after the first `layers` layers."""
    every = layers_of(model)
    with _only(model, [_Given(states, every[0], _form_of_layers(model)), *every[layers:]]):
        found: Tensor = model(**inputs).last_hidden_state
    return found


class _Given(nn.Module):
    """Stands for layers whose states are known, and gives them in the form that the first of the layers would."""

    def __init__(self, states: Tensor, first: nn.Module, form: "Form") -> None:
        super().__init__()
        self._found = form(states, first)

    def forward(self, *_: Any, **__: Any) -> Any:
        """What was given, whatever comes in."""
        return self._found


Form = Callable[[Tensor, Any], Any]
"""What a layer gives, from its states and the first layer."""


def _with_distances(states: Tensor, first: Any) -> tuple[Tensor, Tensor, None]:
    """The first layer of T5 gives the biases of distance, which all other layers use, as well."""
    tokens = states.shape[1]
    return states, first.layer[0].SelfAttention.compute_bias(tokens, tokens, device=states.device), None


FORMS: dict[str, Form] = {
    **dict.fromkeys(("bert", "camembert", "distilbert", "electra", "roberta", "xlm-roberta"), lambda states, first: states),
    "mpnet": lambda states, first: (states,),
    **dict.fromkeys(("t5", "mt5"), _with_distances),
}
"""By type of encoder."""


def _form_of_layers(model: Any) -> Form:
    kind = model.config.model_type
    if kind not in FORMS:
        raise BadInput(
            f"an encoder of type {kind!r} cannot go on from the states of a layer; expected one of {', '.join(FORMS)}: leave "
            "out cache_states"
        )
    return FORMS[kind]


def _first(found: Any) -> Tensor:
    return found if isinstance(found, Tensor) else found[0]


@contextmanager
def _only(model: Any, layers: Sequence[nn.Module]) -> Iterator[None]:
    """The encoder with these layers in place of its own."""
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
        f"{type(model).__name__} has no list of {count} layers that could be told apart; leave out layers, freeze_layers and "
        "cache_states"
    )

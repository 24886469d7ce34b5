"""Fusions from text: `rrf:k=60,bm25=1,dense=2`, the same as JSON, or the name of a published preset such as `all`."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from trilens.errors import BadInput
from trilens.search.fusion import POLICIES, Fusion

# BGE-M3 (section 2.3 of the paper, and the weights of its repository for long documents): raw scores, multi by the mean
# over the query's tokens. The paper's "sparse" is the lens `lexical`.
PRESETS: dict[str, Fusion] = {
    "dense+sparse": Fusion("weighted", {"dense": 1.0, "lexical": 0.3}),
    "dense+sparse-long": Fusion("weighted", {"dense": 0.2, "lexical": 0.8}),
    "all": Fusion("weighted", {"dense": 1.0, "lexical": 0.3, "multi": 1.0}, per_token=True),
    "all-long": Fusion("weighted", {"dense": 0.15, "lexical": 0.5, "multi": 0.35}, per_token=True),
}
SUBSTITUTES = {"lexical": "sparse"}  # a collection without the first is fused with the second
PLAIN = "none"
OPTIONS = {item.name: item for item in fields(Fusion) if item.name not in ("policy", "weights")}
EXPECTED = 'expected a preset or a policy with options, such as "rrf:k=60,bm25=1,dense=2"'


def parse_fusion(given: str | Mapping[str, Any]) -> Fusion:
    """A fusion from text or JSON. "none" is plain rrf, whatever the collection or the model says."""
    if isinstance(given, Mapping):
        return _from_json(given)
    if not isinstance(given, str):
        raise BadInput(f"fusion is {type(given).__name__}; {EXPECTED}")
    text = given.strip()
    if text.startswith("{"):
        try:
            return _from_json(json.loads(text))
        except json.JSONDecodeError as error:
            raise BadInput(f"fusion {text!r} is not JSON ({error}); {EXPECTED}") from error
    name, _, rest = text.partition(":")
    name = name.strip()
    if name == PLAIN and not rest:
        return Fusion()
    options, weights = _options(text, rest)
    if name in PRESETS:
        preset = PRESETS[name]
        return replace(preset, **options, weights={**preset.weights, **weights})
    if name not in POLICIES:
        raise BadInput(
            f"fusion is {text!r}; expected a policy ({', '.join(POLICIES)}), {PLAIN}, or a preset ({', '.join(PRESETS)})"
        )
    return Fusion(name, weights, **options)


def choose_lenses(fusion: Fusion | None, present: Sequence[str]) -> Sequence[str]:
    """The lenses of a search that names none: those that the fusion weights, else all."""
    if not fusion or not fusion.weights:
        return list(present)
    if len(fusion.weights) == 1:
        raise BadInput(f"fusion {fusion} names one lens; give weights to all lenses to fuse, or name the lenses")
    return list(fusion.weights)


def fit_preset(fusion: Fusion, present: Sequence[str]) -> Fusion:
    """The fusion for a collection: the weight of a lens that it lacks goes to the substitute, if the collection has that one.

    This holds for presets and for other fusions.
    """
    weights = dict(fusion.weights)
    for lens, substitute in SUBSTITUTES.items():
        if lens in weights and lens not in present and substitute in present and substitute not in weights:
            weights = {substitute if name == lens else name: weight for name, weight in weights.items()}
    return replace(fusion, weights=weights)


def _from_json(given: Any) -> Fusion:
    if not isinstance(given, Mapping):
        raise BadInput(f"fusion is {given!r}; expected a JSON object with a policy")
    known = {"policy", "weights", *OPTIONS}
    if unknown := [name for name in given if name not in known]:
        raise BadInput(f"fusion has the field {unknown[0]!r}; expected some of {', '.join(sorted(known))}")
    weights = given.get("weights", {})
    if not isinstance(weights, Mapping):
        raise BadInput(f"fusion weights are {weights!r}; expected an object of lenses and numbers")
    options = {**given, "weights": dict(weights)}
    policy = options.pop("policy", "rrf")
    if isinstance(policy, str) and policy in PRESETS:
        preset = PRESETS[policy]
        return replace(preset, **{**options, "weights": {**preset.weights, **options["weights"]}})
    return Fusion(policy, **options)


def _options(text: str, rest: str) -> tuple[dict[str, Any], dict[str, float]]:
    options: dict[str, Any] = {}
    weights: dict[str, float] = {}
    for piece in rest.split(",") if rest.strip() else []:
        name, equals, value = (part.strip() for part in piece.partition("="))
        if not name or not equals or not value:
            raise BadInput(f"fusion {text!r} has {piece.strip()!r}; expected NAME=VALUE: {EXPECTED}")
        if name in options or name in weights:
            raise BadInput(f"fusion {text!r} has {name} twice; expected it once")
        if name not in OPTIONS:
            weights[name] = _number(text, name, value, float)
        elif name == "depth":
            options[name] = _number(text, name, value, int)
        elif isinstance(OPTIONS[name].default, bool):
            options[name] = _boolean(text, name, value)
        else:
            options[name] = value if isinstance(OPTIONS[name].default, str) else _number(text, name, value, float)
    return options, weights


def _number(text: str, name: str, value: str, kind: type[int] | type[float]) -> Any:
    try:
        return kind(value)
    except ValueError as error:
        expected = "a whole number" if kind is int else "a number"
        raise BadInput(f"fusion {text!r} has {name}={value}; expected {expected}") from error


def _boolean(text: str, name: str, value: str) -> bool:
    if value not in ("true", "false"):
        raise BadInput(f"fusion {text!r} has {name}={value}; expected true or false")
    return value == "true"

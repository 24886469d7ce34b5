"""Fusions from text: `rrf:k=60,bm25=1,dense=2`, the same as JSON, or the name of a published recipe such as `all`."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from trilens.errors import BadInput
from trilens.search.fusion import Fusion

# BGE-M3 (section 2.3 of the paper, and the weights of its repository for long documents): raw scores, multi by the mean over
# the query's tokens. What the paper calls sparse is our lens `lexical`.
RECIPES: dict[str, Fusion] = {
    "dense+sparse": Fusion("weighted", {"dense": 1.0, "lexical": 0.3}),
    "dense+sparse-long": Fusion("weighted", {"dense": 0.2, "lexical": 0.8}),
    "rerank-multi": Fusion("rrf", {"dense": 1.0}, depth=200, rerank="multi"),
    "all": Fusion("weighted", {"dense": 1.0, "lexical": 0.3, "multi": 1.0}, per_token=True),
    "all-long": Fusion("weighted", {"dense": 0.15, "lexical": 0.5, "multi": 0.35}, per_token=True),
}
PLAIN = "none"
OPTIONS = {item.name: item for item in fields(Fusion) if item.name not in ("policy", "weights")}
SAYS = 'expected a recipe or a policy with options, such as "rrf:k=60,bm25=1,dense=2"'


def parse_fusion(given: str | Mapping[str, Any]) -> Fusion:
    """A fusion from the command line or from JSON. "none" is the default, whatever was tuned."""
    if isinstance(given, Mapping):
        return _from_json(given)
    if not isinstance(given, str):
        raise BadInput(f"fusion is {type(given).__name__}; {SAYS}")
    text = given.strip()
    if text.startswith("{"):
        try:
            return _from_json(json.loads(text))
        except json.JSONDecodeError as error:
            raise BadInput(f"fusion {text!r} is not JSON ({error}); {SAYS}") from error
    name, _, rest = text.partition(":")
    name = name.strip()
    if name == PLAIN and not rest:
        return Fusion()
    options, weights = _options(text, rest)
    if name in RECIPES:
        recipe = RECIPES[name]
        return replace(recipe, **options, weights={**recipe.weights, **weights})
    if name not in ("rrf", "weighted", "minmax", "zscore", "convex"):
        raise BadInput(f"fusion is {text!r}; expected a policy (rrf, weighted, minmax, zscore, convex), {PLAIN}, {_recipes()}")
    return Fusion(name, weights, **options)  # type: ignore[arg-type]


def fusion_to_json(fusion: Fusion) -> dict[str, Any]:
    """All fields, as `parse_fusion` reads them."""
    return {item.name: getattr(fusion, item.name) for item in fields(Fusion)} | {"weights": dict(fusion.weights)}


def choose_lenses(fusion: Fusion | None, named: Sequence[str] | None, present: Sequence[str]) -> Sequence[str]:
    """The lenses of a search: those named, else those that the fusion weighs, else all."""
    if named is not None:
        return named
    if not fusion or not fusion.weights:
        return list(present)
    if len(fusion.weights) == 1 and not fusion.rerank:
        raise BadInput(f"fusion {fusion} names one lens; name all that are to be fused, or choose them with --lens")
    return list(fusion.weights)


def fit_recipe(fusion: Fusion, present: Sequence[str]) -> Fusion:
    """A fusion that weighs `lexical` in a collection without that lens weighs `sparse` instead, if that is there."""
    if "lexical" not in fusion.weights or "lexical" in present or "sparse" not in present or "sparse" in fusion.weights:
        return fusion
    return replace(fusion, weights={"sparse" if name == "lexical" else name: weight for name, weight in fusion.weights.items()})


def _from_json(given: Any) -> Fusion:
    if not isinstance(given, Mapping):
        raise BadInput(f"fusion is {given!r}; expected a JSON object with a policy")
    known = {"policy", "weights", *OPTIONS}
    if unknown := [name for name in given if name not in known]:
        raise BadInput(f"fusion has the field {unknown[0]!r}; expected some of {', '.join(sorted(known))}")
    weights = given.get("weights", {})
    if not isinstance(weights, Mapping):
        raise BadInput(f"fusion weights are {weights!r}; expected an object of lenses and numbers")
    given = {**given, "weights": dict(weights)}
    if "per_token" in given and not isinstance(given["per_token"], bool):
        raise BadInput(f"fusion per_token is {given['per_token']!r}; expected true or false")
    policy = given.pop("policy", "rrf")
    if isinstance(policy, str) and policy in RECIPES:
        recipe = RECIPES[policy]
        return replace(recipe, **{**given, "weights": {**recipe.weights, **given["weights"]}})
    return Fusion(policy, **given)


def _options(text: str, rest: str) -> tuple[dict[str, Any], dict[str, float]]:
    options: dict[str, Any] = {}
    weights: dict[str, float] = {}
    for piece in rest.split(",") if rest.strip() else []:
        name, equals, value = (part.strip() for part in piece.partition("="))
        if not name or not equals or not value:
            raise BadInput(f"fusion {text!r} has {piece.strip()!r}; expected NAME=VALUE: {SAYS}")
        if name in options or name in weights:
            raise BadInput(f"fusion {text!r} says {name} twice; expected it once")
        if name in ("norm", "missing", "rerank"):
            options[name] = value
        elif name == "per_token":
            options[name] = _truth(text, value)
        elif name == "depth":
            options[name] = _number(text, name, value, int)
        elif name in OPTIONS:
            options[name] = _number(text, name, value, float)
        else:
            weights[name] = _number(text, name, value, float)
    return options, weights


def _number(text: str, name: str, value: str, kind: type[int] | type[float]) -> Any:
    try:
        return kind(value)
    except ValueError as error:
        expected = "a whole number" if kind is int else "a number"
        raise BadInput(f"fusion {text!r} has {name}={value}; expected {expected}") from error


def _truth(text: str, value: str) -> bool:
    if value not in ("true", "false"):
        raise BadInput(f"fusion {text!r} has per_token={value}; expected true or false")
    return value == "true"


def _recipes() -> str:
    return f"or a recipe ({', '.join(RECIPES)})"

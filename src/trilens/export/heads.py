"""The heads of a model as plain arrays, and how a trained folder stores them."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from trilens.encode.folder import ModelConfig, SparseHead
from trilens.errors import BadModel
from trilens.export.checkpoint import read_tensors
from trilens.export.rounding import Floats

WEIGHTS = "model.safetensors"
TRAINED_EPSILON = 1e-5  # that of torch's LayerNorm, which training uses


@dataclass(frozen=True)
class Projection:
    """The `multi` head: a matrix (hidden, dims) for the token states, and whether its products get length 1.

    `mean_for_last`: the closing token's vector is the mean over all attended tokens, its own included, as in ColXTR.
    """

    weight: Floats
    normalised: bool
    bias: Floats | None = None
    mean_for_last: bool = False


@dataclass(frozen=True)
class Vocabulary:
    """The `sparse` head: its layer normalisation, and the largest state that 8 bits have to hold."""

    described: SparseHead
    scale: Floats
    shift: Floats
    epsilon: float
    clip: float = np.inf


@dataclass(frozen=True)
class Lexical:
    """The `lexical` head: weight (hidden, 1) and bias (1)."""

    weight: Floats
    bias: Floats


@dataclass(frozen=True)
class Heads:
    """The heads of a model; None where there is none."""

    dense: bool = True
    multi: Projection | None = None
    sparse: Vocabulary | None = None
    lexical: Lexical | None = None


def read_heads(folder: Path, config: ModelConfig, hidden: int) -> Heads:
    """The trained heads that `config` describes, from the folder that holds them."""
    file = folder / WEIGHTS
    if not file.is_file():
        raise BadModel(f"{file} is missing; expected the weights of the heads {config.heads}: save the model again")
    found = dict(read_tensors(file))

    def tensor(name: str, *shape: int) -> Floats:
        if name not in found:
            raise BadModel(f"{file} has no tensor {name!r}, which the heads {config.heads} need; save the model again")
        if found[name].shape != shape:
            wanted, given = (" × ".join(map(str, sizes)) for sizes in (shape, found[name].shape))
            raise BadModel(f"{name!r} of {file} is {given}; expected {wanted}, as config.json beside it and the backbone say")
        return found[name]

    multi = sparse = lexical = None
    if config.multi:
        bias = tensor("multi.linear.bias", config.multi.dim) if "multi.linear.bias" in found else None
        weight = np.ascontiguousarray(tensor("multi.linear.weight", config.multi.dim, hidden).T)
        multi = Projection(weight, config.multi.normalised, bias, config.multi.mean_for_last)
    if config.sparse:
        norm = tensor("sparse.norm.weight", hidden), tensor("sparse.norm.bias", hidden)
        sparse = Vocabulary(config.sparse, *norm, TRAINED_EPSILON)
    if config.lexical:
        weight = np.ascontiguousarray(tensor("lexical.linear.weight", 1, hidden).T)
        lexical = Lexical(weight, tensor("lexical.linear.bias", 1))
    return Heads("dense" in config.heads, multi, sparse, lexical)

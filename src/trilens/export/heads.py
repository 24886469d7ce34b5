"""The heads of a model as plain arrays, and how a trained folder stores them."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from trilens.encode.folder import DenseHead, ModelConfig, SparseHead
from trilens.errors import BadModel
from trilens.export.checkpoint import read_tensors
from trilens.export.rounding import Floats

WEIGHTS = "model.safetensors"
TRAINED_EPSILON = 1e-5  # that of torch's LayerNorm, which training uses


@dataclass(frozen=True)
class Pooled:
    """The `dense` head: what becomes of the pooled state: a product with a matrix (hidden, dims), tanh, length 1."""

    normalised: bool = True
    weight: Floats | None = None
    bias: Floats | None = None
    tanh: bool = False

    @property
    def plain(self) -> bool:
        """Whether only the direction of the pooled state is left."""
        return self.normalised and self.weight is None


@dataclass(frozen=True)
class Projection:
    """The `multi` head: a matrix (hidden, dims) for the token states, and whether its products get length 1.

    `closing_mean`: the closing token's vector is the mean over all attended tokens, its own included, as in ColXTR.
    """

    weight: Floats
    normalised: bool
    bias: Floats | None = None
    closing_mean: bool = False


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

    dense: Pooled | None = field(default_factory=Pooled)
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

    dense = multi = sparse = lexical = None
    if "dense" in config.heads:
        described = config.dense or DenseHead()
        weight = bias = None
        if described.projection:
            weight = np.ascontiguousarray(tensor("dense.linear.weight", config.dim, hidden).T)
            bias = tensor("dense.linear.bias", config.dim) if "dense.linear.bias" in found else None
        dense = Pooled(described.normalised, weight, bias, described.projection == "tanh")
    if config.multi:
        bias = tensor("multi.linear.bias", config.multi.dim) if "multi.linear.bias" in found else None
        weight = np.ascontiguousarray(tensor("multi.linear.weight", config.multi.dim, hidden).T)
        multi = Projection(weight, config.multi.normalised, bias, config.multi.closing_mean)
    if config.sparse:
        norm = tensor("sparse.norm.weight", hidden), tensor("sparse.norm.bias", hidden)
        sparse = Vocabulary(config.sparse, *norm, TRAINED_EPSILON)
    if config.lexical:
        weight = np.ascontiguousarray(tensor("lexical.linear.weight", 1, hidden).T)
        lexical = Lexical(weight, tensor("lexical.linear.bias", 1))
    return Heads(dense, multi, sparse, lexical)

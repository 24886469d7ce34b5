"""Head weights as numpy arrays, and their storage in a trained folder."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from trilens.encode.folder import DenseHead, ModelConfig, SparseHead
from trilens.errors import BadModel
from trilens.export.checkpoint import read_tensors
from trilens.kernels.array_types import Float32s

WEIGHTS = "model.safetensors"


@dataclass(frozen=True)
class DenseWeights:
    """The `dense` head: an optional projection (hidden, dims) of the pooled state, tanh and normalisation."""

    normalised: bool = True
    weight: Float32s | None = None
    bias: Float32s | None = None
    tanh: bool = False

    @property
    def plain(self) -> bool:
        """Whether only the direction of the pooled state matters."""
        return self.normalised and self.weight is None


@dataclass(frozen=True)
class PerToken:
    """A linear layer with one output: weight (hidden, 1) and bias (1), of the `lexical` head, query weights or a score."""

    weight: Float32s
    bias: Float32s


@dataclass(frozen=True)
class MultiWeights:
    """The `multi` head: a projection (hidden, dims) of the token states, optionally normalised.

    `closing_mean`: the closing token's vector is the mean over all attended tokens, as in ColXTR. `weigh`: the linear layer
    whose softplus is the weight of a query token.
    """

    weight: Float32s
    normalised: bool
    bias: Float32s | None = None
    closing_mean: bool = False
    weigh: PerToken | None = None


@dataclass(frozen=True)
class SparseWeights:
    """The `sparse` head: its layer normalisation, and the clipping of states for 8 bits.

    `transform`: matrix (hidden, hidden) and bias of a preceding linear layer with GELU. `bias`: one value per word.
    """

    described: SparseHead
    scale: Float32s
    shift: Float32s
    epsilon: float
    clip: float = np.inf
    transform: tuple[Float32s, Float32s] | None = None
    bias: Float32s | None = None


@dataclass(frozen=True)
class ScoreWeights:
    """The score of a cross-encoder: `dense` is matrix and bias of a layer with an `activation`, `out` the layer after it."""

    dense: tuple[Float32s, Float32s]
    activation: Literal["Tanh", "Relu"]
    out: PerToken


@dataclass(frozen=True)
class HeadWeights:
    """The heads of a model; None for heads that it does not have. `score` is that of a cross-encoder, which has no other."""

    dense: DenseWeights | None = field(default_factory=DenseWeights)
    multi: MultiWeights | None = None
    sparse: SparseWeights | None = None
    lexical: PerToken | None = None
    score: ScoreWeights | None = None


def read_heads(folder: Path, config: ModelConfig, hidden: int) -> HeadWeights:
    """Read the trained heads that `config` describes."""
    file = folder / WEIGHTS
    if not file.is_file():
        raise BadModel(f"{file} is missing; expected the weights of the heads {config.heads}: save the model again")
    tensors = _Tensors(file, config, hidden)
    dense = multi = sparse = lexical = None
    if "dense" in config.heads:
        described = config.dense or DenseHead()
        weight = bias = None
        if described.projection:
            weight, bias = tensors.linear("dense.linear", config.dim)
        dense = DenseWeights(described.normalised, weight, bias, described.projection == "tanh")
    if config.multi:
        weight, bias = tensors.linear("multi.linear", config.multi.dim)
        weigh = tensors.per_token("multi.weigh") if config.multi.weighted else None
        multi = MultiWeights(weight, config.multi.normalised, bias, config.multi.closing_mean, weigh)
    if config.sparse:
        norm = tensors.read("sparse.norm.weight", hidden), tensors.read("sparse.norm.bias", hidden)
        transform = tensors.affine("sparse.transform", hidden) if config.sparse.transform else None
        biases = tensors.read("sparse.bias", config.sparse.dim) if config.sparse.biased else None
        sparse = SparseWeights(config.sparse, *norm, config.sparse.epsilon, transform=transform, bias=biases)
    if config.lexical:
        lexical = tensors.per_token("lexical.linear")
    return HeadWeights(dense, multi, sparse, lexical)


class _Tensors:
    """The tensors of a file; a missing or misshapen one is an error. Linear layers have `hidden` inputs."""

    def __init__(self, file: Path, config: ModelConfig, hidden: int) -> None:
        self._file, self._config, self._hidden = file, config, hidden
        self._tensors = dict(read_tensors(file))

    def read(self, name: str, *shape: int) -> Float32s:
        """A tensor of this shape."""
        if name not in self._tensors:
            raise BadModel(
                f"{self._file} has no tensor {name!r}, which the heads {self._config.heads} need; save the model again"
            )
        tensor = self._tensors[name]
        if tensor.shape != shape:
            wanted, actual = (" × ".join(map(str, sizes)) for sizes in (shape, tensor.shape))
            raise BadModel(
                f"{name!r} of {self._file} is {actual}; expected {wanted}, according to config.json and the backbone"
            )
        return tensor

    def affine(self, name: str, dims: int) -> tuple[Float32s, Float32s]:
        """Matrix (hidden, dims) and bias of a linear layer."""
        return np.ascontiguousarray(self.read(f"{name}.weight", dims, self._hidden).T), self.read(f"{name}.bias", dims)

    def linear(self, name: str, dims: int) -> tuple[Float32s, Float32s | None]:
        """Matrix and optional bias of a linear layer."""
        if f"{name}.bias" in self._tensors:
            return self.affine(name, dims)
        return np.ascontiguousarray(self.read(f"{name}.weight", dims, self._hidden).T), None

    def per_token(self, name: str) -> PerToken:
        """A linear layer with one output."""
        return PerToken(*self.affine(name, 1))

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
class PerToken:
    """A number for each token, as the `lexical` head and weighted queries have it: weight (hidden, 1) and bias (1)."""

    weight: Floats
    bias: Floats


@dataclass(frozen=True)
class Projection:
    """The `multi` head: a matrix (hidden, dims) for the token states, and whether its products get length 1.

    `closing_mean`: the closing token's vector is the mean over all attended tokens, its own included, as in ColXTR. `weigh` is
    the linear layer, softplus of which is the weight of a query token.
    """

    weight: Floats
    normalised: bool
    bias: Floats | None = None
    closing_mean: bool = False
    weigh: PerToken | None = None


@dataclass(frozen=True)
class Vocabulary:
    """The `sparse` head: its layer normalisation, and the largest state that 8 bits have to hold.

    `transform` is the matrix (hidden, hidden) and the bias of the layer that comes before, with GELU.
    `bias` has a number for each word.
    """

    described: SparseHead
    scale: Floats
    shift: Floats
    epsilon: float
    clip: float = np.inf
    transform: tuple[Floats, Floats] | None = None
    bias: Floats | None = None


@dataclass(frozen=True)
class Heads:
    """The heads of a model; None where there is none."""

    dense: Pooled | None = field(default_factory=Pooled)
    multi: Projection | None = None
    sparse: Vocabulary | None = None
    lexical: PerToken | None = None


def read_heads(folder: Path, config: ModelConfig, hidden: int) -> Heads:
    """The trained heads that `config` describes, from the folder that holds them."""
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
        dense = Pooled(described.normalised, weight, bias, described.projection == "tanh")
    if config.multi:
        weight, bias = tensors.linear("multi.linear", config.multi.dim)
        weigh = tensors.per_token("multi.weigh") if config.multi.weighted else None
        multi = Projection(weight, config.multi.normalised, bias, config.multi.closing_mean, weigh)
    if config.sparse:
        norm = tensors.read("sparse.norm.weight", hidden), tensors.read("sparse.norm.bias", hidden)
        transform = tensors.affine("sparse.transform", hidden) if config.sparse.transform else None
        biases = tensors.read("sparse.bias", config.sparse.dim) if config.sparse.biased else None
        sparse = Vocabulary(config.sparse, *norm, TRAINED_EPSILON, transform=transform, bias=biases)
    if config.lexical:
        lexical = tensors.per_token("lexical.linear")
    return Heads(dense, multi, sparse, lexical)


class _Tensors:
    """The tensors of a file, refused by name where one is missing or of another shape. Linear layers take `hidden` states."""

    def __init__(self, file: Path, config: ModelConfig, hidden: int) -> None:
        self._file, self._config, self._hidden = file, config, hidden
        self._found = dict(read_tensors(file))

    def read(self, name: str, *shape: int) -> Floats:
        """One tensor."""
        if name not in self._found:
            raise BadModel(
                f"{self._file} has no tensor {name!r}, which the heads {self._config.heads} need; save the model again"
            )
        found = self._found[name]
        if found.shape != shape:
            wanted, given = (" × ".join(map(str, sizes)) for sizes in (shape, found.shape))
            raise BadModel(
                f"{name!r} of {self._file} is {given}; expected {wanted}, as config.json beside it and the backbone say"
            )
        return found

    def affine(self, name: str, dims: int) -> tuple[Floats, Floats]:
        """Matrix (hidden, dims) and bias of a linear layer."""
        return np.ascontiguousarray(self.read(f"{name}.weight", dims, self._hidden).T), self.read(f"{name}.bias", dims)

    def linear(self, name: str, dims: int) -> tuple[Floats, Floats | None]:
        """The same for a layer that need not have a bias."""
        if f"{name}.bias" in self._found:
            return self.affine(name, dims)
        return np.ascontiguousarray(self.read(f"{name}.weight", dims, self._hidden).T), None

    def per_token(self, name: str) -> PerToken:
        """A layer that gives one number."""
        return PerToken(*self.affine(name, 1))

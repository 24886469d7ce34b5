"""`Bert`: post-norm encoders such as BERT, RoBERTa, XLM-R, CamemBERT, DistilBERT and MPNet."""

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from trilens.errors import BadModel
from trilens.export.checkpoint import Checkpoint
from trilens.export.distance_bias import distance_bias
from trilens.export.layers import ACTIVATIONS, INPUTS, TYPES, Layers, Products
from trilens.kernels.array_types import Float32s

FARTHEST = 128  # distance from which MPNet uses the same bias


@dataclass(frozen=True)
class TensorNames:
    """Tensor names and config keys of an architecture, and its differences from BERT."""

    prefix: str
    hidden: str = "hidden_size"
    depth: str = "num_hidden_layers"
    attention_heads: str = "num_attention_heads"
    inner: str = "intermediate_size"
    activation: str = "hidden_act"
    layer: str = "encoder.layer"
    parts: tuple[str, str, str] = ("attention.self.query", "attention.self.key", "attention.self.value")
    out: str = "attention.output.dense"
    attended: str = "attention.output.LayerNorm"
    up: str = "intermediate.dense"
    down: str = "output.dense"
    states: str = "output.LayerNorm"
    types: bool = True  # token type embeddings; all tokens of single texts have type 0
    after_padding: bool = False  # positions start at the padding token's id + 1
    biased: bool = False  # relative attention bias


ROBERTA = TensorNames("roberta.", after_padding=True)
NAMES = {
    "bert": TensorNames("bert."),
    "roberta": ROBERTA,
    "xlm-roberta": ROBERTA,
    "camembert": ROBERTA,
    "distilbert": TensorNames(
        "distilbert.",
        hidden="dim",
        depth="n_layers",
        attention_heads="n_heads",
        inner="hidden_dim",
        activation="activation",
        layer="transformer.layer",
        parts=("attention.q_lin", "attention.k_lin", "attention.v_lin"),
        out="attention.out_lin",
        attended="sa_layer_norm",
        up="ffn.lin1",
        down="ffn.lin2",
        states="output_layer_norm",
        types=False,
    ),
    "mpnet": TensorNames(
        "mpnet.",
        parts=("attention.attn.q", "attention.attn.k", "attention.attn.v"),
        out="attention.attn.o",
        attended="attention.LayerNorm",
        types=False,
        after_padding=True,
        biased=True,
    ),
}


class Bert:
    """The weights of the encoder and the structure of its layers."""

    def __init__(self, checkpoint: Checkpoint, pairs: bool = False) -> None:
        """`pairs`: the encoder of a cross-encoder, whose tokens have types if it has embeddings for more than one."""
        self.checkpoint, self.names = checkpoint, NAMES[checkpoint.model_type]
        checkpoint.strip(self.names.prefix)
        config, names = checkpoint.config, self.names
        kind = config.get("position_embedding_type", "absolute")
        if kind != "absolute":
            raise BadModel(f"{checkpoint.folder} has position_embedding_type {kind!r}; expected 'absolute'")
        if (activation := str(config.get(names.activation))) not in ACTIVATIONS:
            raise BadModel(f"{checkpoint.folder} has {names.activation} {activation!r}; expected one of {[*ACTIVATIONS]}")
        self.activation = ACTIVATIONS[activation]
        self.dim, self.layers = checkpoint.number(names.hidden), checkpoint.number(names.depth)
        self.heads, self.inner = checkpoint.number(names.attention_heads), checkpoint.number(names.inner)
        self.epsilon: float = config.get("layer_norm_eps", 1e-12)
        # MPNet hard-codes its padding token; the others have it in their config.
        self.padding = 1 if names.biased else checkpoint.number("pad_token_id") if names.after_padding else -1
        self.words = checkpoint.tensor("embeddings.word_embeddings.weight", -1, self.dim)
        self.positions = checkpoint.tensor("embeddings.position_embeddings.weight", -1, self.dim)
        self.longest: int | None = len(self.positions) - self.padding - 1
        self.types = checkpoint.tensor("embeddings.token_type_embeddings.weight", -1, self.dim) if self.names.types else None
        self.reads = INPUTS + ((TYPES,) if pairs and self.types is not None and len(self.types) > 1 else ())

    def products(self, layer: int) -> Products:
        """See `BackboneWriter`."""
        prefix, names, dim = f"{self.names.layer}.{layer}", self.names, self.dim
        parts = [self._affine(f"{prefix}.{part}", dim, dim) for part in names.parts]
        return {
            f"{layer}.in": (np.hstack([weight for weight, _ in parts]), np.hstack([bias for _, bias in parts])),
            f"{layer}.out": self._affine(f"{prefix}.{names.out}", dim, dim),
            f"{layer}.up": self._affine(f"{prefix}.{names.up}", dim, self.inner),
            f"{layer}.down": self._affine(f"{prefix}.{names.down}", self.inner, dim),
        }

    def write(self, graph: Layers) -> str:
        """See `BackboneWriter`."""
        mask = graph.add("Cast", ["attention_mask"], "mask", to=TensorProto.INT32)
        states = self._norm(graph, self._embed(graph), "embeddings.LayerNorm", "embedded")
        bias = self._distance_bias(graph) if self.names.biased else None
        for layer in range(self.layers):
            states = self._layer(graph, states, mask, bias, layer)
        return states

    def _embed(self, graph: Layers) -> str:
        """The sum of word, position and type embeddings."""
        positions = self.positions
        if self.types is not None and TYPES not in self.reads:
            positions = positions + self.types[0]
        words = graph.word_embeddings(self.words)
        if self.names.after_padding:
            place = self._count(graph, positions)
        else:
            tokens = graph.add("Shape", ["input_ids"], "length", start=1, end=2)
            first = graph.constant("first", [0], np.int64)
            place = graph.add("Slice", [graph.constant("places", positions, np.float32), first, tokens, first], "place")
        total = graph.add("Add", [words, place], "sum")
        if TYPES not in self.reads:
            return total
        kind = graph.add("Gather", [graph.constant("types", self.types, np.float32), TYPES], "kind")
        return graph.add("Add", [total, kind], "sum.kinds")

    def _count(self, graph: Layers, positions: Float32s) -> str:
        """RoBERTa's positions, which skip padding tokens, also those within the text."""
        padding = graph.constant("padding", self.padding, np.int64)
        real = graph.add("Not", [graph.add("Equal", ["input_ids", padding], "is.padding")], "is.real")
        real = graph.add("Cast", [real], "real", to=TensorProto.INT64)
        count = graph.add("CumSum", [real, graph.constant("second.axis", 1, np.int64)], "count.all")
        position = graph.add("Add", [graph.add("Mul", [count, real], "count.real"), padding], "position")
        return graph.add("Gather", [graph.constant("places", positions, np.float32), position], "place")

    def _distance_bias(self, graph: Layers) -> str:
        table = self.checkpoint.tensor("encoder.relative_attention_bias.weight", -1, self.heads)
        return distance_bias(graph, table, FARTHEST)

    def _layer(self, graph: Layers, states: str, mask: str, bias: str | None, layer: int) -> str:
        """Attention and feed-forward, each with a residual connection and layer normalisation."""
        prefix, names = f"{self.names.layer}.{layer}", self.names
        products = self.products(layer)
        graph.fold(products, layer)
        weight, added = products[f"{layer}.in"]
        if bias is not None:
            scale = (self.dim // self.heads) ** -0.5
            context = graph.biased_attention(states, mask, bias, f"{layer}.in", (weight, added), self.heads, scale)
        else:
            assert added is not None
            context = graph.attention(states, mask, f"{layer}.in", (weight, added), self.heads)
        output = graph.product(context, f"{layer}.out", products[f"{layer}.out"])
        states = graph.add("Add", [output, states], f"{layer}.attended.sum")
        states = self._norm(graph, states, f"{prefix}.{names.attended}", f"{layer}.attended")
        inner = graph.product(states, f"{layer}.up", products[f"{layer}.up"])
        inner = graph.add(self.activation, [inner], f"{layer}.gelu")
        output = graph.product(inner, f"{layer}.down", products[f"{layer}.down"])
        states = graph.add("Add", [output, states], f"{layer}.states.sum")
        return self._norm(graph, states, f"{prefix}.{names.states}", f"{layer}.states")

    def _norm(self, graph: Layers, states: str, weights: str, name: str) -> str:
        scale, shift = (self.checkpoint.tensor(f"{weights}.{part}", self.dim) for part in ("weight", "bias"))
        return graph.norm(states, scale, shift, self.epsilon, name)

    def _affine(self, name: str, inner: int, outer: int) -> tuple[Float32s, Float32s]:
        return self.checkpoint.matrix(name, inner, outer), self.checkpoint.tensor(f"{name}.bias", outer)

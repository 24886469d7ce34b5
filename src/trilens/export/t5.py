"""`T5`: the encoder of T5 and mT5: pre-norm with RMS normalisation, relative attention bias, no other biases."""

import numpy as np
from onnx import TensorProto

from trilens.errors import BadModel
from trilens.export.checkpoint import Checkpoint
from trilens.export.distance_bias import distance_bias
from trilens.export.layers import ACTIVATIONS, INPUTS, Layers, Products

# "gated-gelu" has always meant the tanh approximation.
FEED_FORWARD = {"relu": "relu", "gelu": "gelu", "gated-relu": "relu", "gated-gelu": "gelu_new"}


class T5:
    """The weights of the encoder and the structure of its layers."""

    reads: tuple[str, ...] = INPUTS

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint
        feed_forward = checkpoint.config.get("feed_forward_proj", "relu")
        if feed_forward not in FEED_FORWARD:
            raise BadModel(f"{checkpoint.folder} has feed_forward_proj {feed_forward!r}; expected one of {[*FEED_FORWARD]}")
        self.activation, self.gated = ACTIVATIONS[FEED_FORWARD[feed_forward]], feed_forward.startswith("gated-")
        self.dim, self.layers, self.heads, self.inner, head_dim = (
            checkpoint.number(name) for name in ("d_model", "num_layers", "num_heads", "d_ff", "d_kv")
        )
        self.width = self.heads * head_dim
        self.epsilon: float = checkpoint.config.get("layer_norm_epsilon", 1e-6)
        self.farthest: int = checkpoint.config.get("relative_attention_max_distance", 128)
        shared = "shared.weight" if "shared.weight" in checkpoint.tensors else "encoder.embed_tokens.weight"
        self.words = checkpoint.tensor(shared, -1, self.dim)
        self.longest: int | None = None

    def products(self, layer: int) -> Products:
        """See `BackboneWriter`. The two matrices of a gated feed-forward are concatenated."""
        prefix, read = f"encoder.block.{layer}.layer", self.checkpoint.matrix
        up = ("wi_0", "wi_1") if self.gated else ("wi",)
        parts = [read(f"{prefix}.0.SelfAttention.{part}", self.dim, self.width) for part in "qkv"]
        return {
            f"{layer}.in": (np.hstack(parts), None),
            f"{layer}.out": (read(f"{prefix}.0.SelfAttention.o", self.width, self.dim), None),
            f"{layer}.up": (np.hstack([read(f"{prefix}.1.DenseReluDense.{name}", self.dim, self.inner) for name in up]), None),
            f"{layer}.down": (read(f"{prefix}.1.DenseReluDense.wo", self.inner, self.dim), None),
        }

    def write(self, graph: Layers) -> str:
        """See `BackboneWriter`."""
        mask = graph.add("Cast", ["attention_mask"], "mask", to=TensorProto.INT32)
        states = graph.word_embeddings(self.words)
        table = self.checkpoint.tensor("encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", -1, self.heads)
        bias = distance_bias(graph, table, self.farthest)  # the first layer's bias, shared by all layers
        for layer in range(self.layers):
            states = self._layer(graph, states, mask, bias, layer)
        return self._norm(graph, states, "encoder.final_layer_norm", "final")

    def _layer(self, graph: Layers, states: str, mask: str, bias: str, layer: int) -> str:
        """Attention and feed-forward, each on normalised states and with a residual connection."""
        prefix, products = f"encoder.block.{layer}.layer", self.products(layer)
        graph.fold(products, layer)
        x = self._norm(graph, states, f"{prefix}.0.layer_norm", f"{layer}.before")
        context = graph.biased_attention(x, mask, bias, f"{layer}.in", products[f"{layer}.in"], self.heads, scale=1.0)
        output = graph.product(context, f"{layer}.out", products[f"{layer}.out"])
        states = graph.add("Add", [states, output], f"{layer}.attended")
        x = self._norm(graph, states, f"{prefix}.1.layer_norm", f"{layer}.between")
        inner = graph.product(x, f"{layer}.up", products[f"{layer}.up"])
        if self.gated:
            inner, gate = graph.split(inner, [self.inner] * 2, [f"{layer}.inner", f"{layer}.gate"])
            inner = graph.add("Mul", [graph.add(self.activation, [inner], f"{layer}.active"), gate], f"{layer}.gated")
        else:
            inner = graph.add(self.activation, [inner], f"{layer}.active")
        output = graph.product(inner, f"{layer}.down", products[f"{layer}.down"])
        return graph.add("Add", [states, output], f"{layer}.states")

    def _norm(self, graph: Layers, states: str, weights: str, name: str) -> str:
        return graph.rms_norm(states, self.checkpoint.tensor(f"{weights}.weight", self.dim), self.epsilon, name)

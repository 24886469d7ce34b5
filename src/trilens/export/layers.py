"""`Layers`: building blocks of encoders as ONNX nodes; products with an entry in `ranges` are computed in 8 bits."""

from collections.abc import Mapping

import numpy as np
from onnx import TensorProto

from trilens.encode.folder import Precision
from trilens.export.graph import Graph
from trilens.export.quantisation import STORED_MAX, WEIGHT_MAX, Range, round_columns
from trilens.kernels.array_types import Float32s

Affine = tuple[Float32s, Float32s | None]
"""Matrix (in, out) and optional bias of a linear layer."""
Products = dict[str, Affine]
"""The four matrix products of layer n: `n.in` and `n.out` of the attention, `n.up` and `n.down` of the feed-forward."""

INPUTS = ("input_ids", "attention_mask")
TYPES = "token_type_ids"
ACTIVATIONS = {"gelu": "Gelu", "gelu_new": "FastGelu", "gelu_fast": "FastGelu", "gelu_pytorch_tanh": "FastGelu", "relu": "Relu"}
"""ONNX operators of the activations of transformers."""


class Layers(Graph):
    """Embeddings, normalisations, products and attention. `inputs` maps each product to the tensor it multiplies."""

    def __init__(self, precision: Precision, ranges: Mapping[str, Range]) -> None:
        super().__init__()
        self.precision, self.ranges = precision, ranges
        self.inputs: dict[str, str] = {}

    def word_embeddings(self, words: Float32s) -> str:
        """The embedding of each token."""
        if self.precision == "float32":
            return self.add("Gather", [self.constant("words", words, np.float32), "input_ids"], "word")
        levels, scales = round_columns(words.T, STORED_MAX)
        levels_of_tokens = self.add("Gather", [self.constant("words", levels.T, np.int8), "input_ids"], "word.levels")
        levels_of_tokens = self.add("Cast", [levels_of_tokens], "word.cast", to=TensorProto.FLOAT)
        scale = self.add("Gather", [self.constant("words.scale", scales[:, None], np.float32), "input_ids"], "word.scale")
        return self.add("Mul", [levels_of_tokens, scale], "word")

    def norm(self, states: str, scale: Float32s, shift: Float32s, epsilon: float, name: str) -> str:
        """Layer normalisation."""
        parameters = [self.constant(f"{name}.scale", scale, np.float32), self.constant(f"{name}.shift", shift, np.float32)]
        return self.add("LayerNormalization", [states, *parameters], name, axis=-1, epsilon=epsilon)

    def rms_norm(self, states: str, scale: Float32s, epsilon: float, name: str) -> str:
        """Root mean square normalisation: layer normalisation without subtracting the mean."""
        square = self.add("Mul", [states, states], f"{name}.square")
        mean = self.add("ReduceMean", [square], f"{name}.mean", axes=[-1], keepdims=1)
        mean = self.add("Add", [mean, self.constant("epsilon", epsilon, np.float32)], f"{name}.least")
        divided = self.add("Div", [states, self.add("Sqrt", [mean], f"{name}.root")], f"{name}.divided")
        return self.add("Mul", [divided, self.constant(f"{name}.scale", scale, np.float32)], name)

    def fold(self, products: Products, layer: int) -> None:
        """Fold the smoothing of `n.out` into the values of the attention: exact, because attention only averages them."""
        if f"{layer}.out" not in self.ranges:
            return
        (weight, bias), smooth = products[f"{layer}.in"], self.ranges[f"{layer}.out"].smooth
        divisor = np.concatenate([np.ones(weight.shape[1] - len(smooth), np.float32), smooth])
        products[f"{layer}.in"] = (weight / divisor, None if bias is None else bias / divisor)

    def attention(self, states: str, mask: str, name: str, affine: tuple[Float32s, Float32s], heads: int) -> str:
        """Multi-head attention over the unmasked tokens."""
        weight, bias = affine
        self.inputs[name] = states
        added = self.constant(f"{name}.bias", bias, np.float32)
        if name not in self.ranges:
            return self.add("Attention", [states, self.floats(name, weight), added, mask], f"{name}.y", num_heads=heads)
        levels, scale, zero = self.quantise(states, name)
        matrix, scales = self.matrix(name, weight)
        no_shift = self.constant(f"{name}.weight.zero", np.zeros(len(bias)), np.int8)
        inputs = [levels, matrix, added, scale, scales, mask, zero, no_shift]
        return self.add("QAttention", inputs, f"{name}.y", num_heads=heads)

    def biased_attention(
        self, states: str, mask: str, distance_bias: str, name: str, affine: Affine, heads: int, scale: float
    ) -> str:
        """Multi-head attention with a distance bias, which the 8-bit kernel does not support."""
        width = affine[0].shape[1] // 3
        parts = self.split(self.product(states, name, affine), [width] * 3, [f"{name}.{part}" for part in "qkv"])
        inputs = [*parts, "", mask, distance_bias]
        return self.add("MultiHeadAttention", inputs, f"{name}.attended", num_heads=heads, scale=scale)

    def product(self, states: str, name: str, affine: Affine) -> str:
        """A linear layer."""
        weight, bias = affine
        self.inputs[name] = states
        added = [] if bias is None else [self.constant(f"{name}.bias", bias, np.float32)]
        if name not in self.ranges:
            factors = [states, self.floats(name, weight)]
            if not added:
                return self.add("MatMul", factors, f"{name}.y")
            return self.add("Add", [self.add("MatMul", factors, f"{name}.xw"), *added], f"{name}.y")
        levels, scale, zero = self.quantise(states, name)
        matrix, scales = self.matrix(name, weight)
        inputs = [levels, matrix, scale, scales, zero, *(["", *added] if added else [])]
        return self.add("MatMulIntegerToFloat", inputs, f"{name}.y")

    def quantise(self, states: str, name: str) -> tuple[str, str, str]:
        """The input of a product in 8 bits, its scale and its zero point."""
        bounds = self.ranges[name]
        if not name.endswith(".out"):  # already smoothed: see `fold`
            states = self.add("Mul", [states, self.constant(f"{name}.smooth", 1 / bounds.smooth, np.float32)], f"{name}.x")
        scale = self.constant(f"{name}.x.scale", bounds.scale, np.float32)
        zero = self.constant(f"{name}.x.zero", bounds.zero, np.uint8)
        return self.add("QuantizeLinear", [states, scale, zero], f"{name}.levels"), scale, zero

    def matrix(self, name: str, weight: Float32s) -> tuple[str, str]:
        """The 8-bit weights of a product and their scales."""
        levels, scales = round_columns(weight * self.ranges[name].smooth[:, None], WEIGHT_MAX)
        return self.constant(f"{name}.weight", levels, np.int8), self.constant(f"{name}.weight.scale", scales, np.float32)

    def floats(self, name: str, weight: Float32s) -> str:
        """The float weights of a product; weights stored in 8 bits are converted once, when a session is opened."""
        if self.precision == "float32":
            return self.constant(f"{name}.weight", weight, np.float32)
        levels, scales = round_columns(weight, STORED_MAX)
        cast = self.add("Cast", [self.constant(f"{name}.levels", levels, np.int8)], f"{name}.cast", to=TensorProto.FLOAT)
        return self.add("Mul", [cast, self.constant(f"{name}.weight.scale", scales, np.float32)], f"{name}.weight")

"""`Layers`: the parts that encoders are built of, as ONNX nodes. What `ranges` names computes in 8 bits."""

from collections.abc import Mapping
from typing import Literal

import numpy as np
from onnx import TensorProto

from trilens.export.graph import Graph
from trilens.export.rounding import STORED_MAX, WEIGHT_MAX, Floats, Range, round_columns

Precision = Literal["float32", "int8-weights", "int8"]
Affine = tuple[Floats, Floats | None]
"""Matrix (in, out) and bias of a linear layer."""
Products = dict[str, Affine]
"""The four matrix products of layer n: `n.in` and `n.out` of the attention, `n.up` and `n.down`."""

ACTIVATIONS = {"gelu": "Gelu", "gelu_new": "FastGelu", "gelu_fast": "FastGelu", "gelu_pytorch_tanh": "FastGelu", "relu": "Relu"}
"""Names of transformers and of the nodes that compute them."""


class Layers(Graph):
    """Embeddings, normalisations, products and attention. `inputs` has the tensor that each product multiplies."""

    def __init__(self, precision: Precision, ranges: Mapping[str, Range]) -> None:
        super().__init__()
        self.precision, self.ranges = precision, ranges
        self.inputs: dict[str, str] = {}

    def word_embeddings(self, words: Floats) -> str:
        """The row of each token."""
        if self.precision == "float32":
            return self.add("Gather", [self.constant("words", words, np.float32), "input_ids"], "word")
        levels, scales = round_columns(words.T, STORED_MAX)
        found = self.add("Gather", [self.constant("words", levels.T, np.int8), "input_ids"], "word.levels")
        found = self.add("Cast", [found], "word.cast", to=TensorProto.FLOAT)
        scale = self.add("Gather", [self.constant("words.scale", scales[:, None], np.float32), "input_ids"], "word.scale")
        return self.add("Mul", [found, scale], "word")

    def norm(self, states: str, scale: Floats, shift: Floats, epsilon: float, name: str) -> str:
        """Layer normalisation."""
        parameters = [self.constant(f"{name}.scale", scale, np.float32), self.constant(f"{name}.shift", shift, np.float32)]
        return self.add("LayerNormalization", [states, *parameters], name, axis=-1, epsilon=epsilon)

    def rms_norm(self, states: str, scale: Floats, epsilon: float, name: str) -> str:
        """Division by the root of the mean square: layer normalisation that takes off no mean."""
        square = self.add("Mul", [states, states], f"{name}.square")
        mean = self.add("ReduceMean", [square], f"{name}.mean", axes=[-1], keepdims=1)
        mean = self.add("Add", [mean, self.constant("epsilon", epsilon, np.float32)], f"{name}.least")
        divided = self.add("Div", [states, self.add("Sqrt", [mean], f"{name}.root")], f"{name}.divided")
        return self.add("Mul", [divided, self.constant(f"{name}.scale", scale, np.float32)], name)

    def fold(self, products: Products, layer: int) -> None:
        """Let the values come out of the attention smoothed: it only averages them, so this is exact and free."""
        if f"{layer}.out" not in self.ranges:
            return
        (weight, bias), smooth = products[f"{layer}.in"], self.ranges[f"{layer}.out"].smooth
        divisor = np.concatenate([np.ones(weight.shape[1] - len(smooth), np.float32), smooth])
        products[f"{layer}.in"] = (weight / divisor, None if bias is None else bias / divisor)

    def attention(self, states: str, mask: str, name: str, affine: tuple[Floats, Floats], heads: int) -> str:
        """Multi-head attention over the tokens that the mask keeps."""
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
        """The same with a bias for the distance of two tokens, which the kernel that takes 8 bits does not know."""
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
        """The input of a product in 8 bits, with the constants that undo it: scale and level of zero."""
        chosen = self.ranges[name]
        if not name.endswith(".out"):  # those come smoothed: see `fold`
            states = self.add("Mul", [states, self.constant(f"{name}.smooth", 1 / chosen.smooth, np.float32)], f"{name}.x")
        scale = self.constant(f"{name}.x.scale", chosen.scale, np.float32)
        zero = self.constant(f"{name}.x.zero", chosen.zero, np.uint8)
        return self.add("QuantizeLinear", [states, scale, zero], f"{name}.levels"), scale, zero

    def matrix(self, name: str, weight: Floats) -> tuple[str, str]:
        """The weights of an 8-bit product and their scales."""
        levels, scales = round_columns(weight * self.ranges[name].smooth[:, None], WEIGHT_MAX)
        return self.constant(f"{name}.weight", levels, np.int8), self.constant(f"{name}.weight.scale", scales, np.float32)

    def floats(self, name: str, weight: Floats) -> str:
        """The weights of a float product; those stored in 8 bits become floats once, when a session is opened."""
        if self.precision == "float32":
            return self.constant(f"{name}.weight", weight, np.float32)
        levels, scales = round_columns(weight, STORED_MAX)
        cast = self.add("Cast", [self.constant(f"{name}.levels", levels, np.int8)], f"{name}.cast", to=TensorProto.FLOAT)
        return self.add("Mul", [cast, self.constant(f"{name}.weight.scale", scales, np.float32)], f"{name}.weight")

"""`SparseHeadGraph`: the `sparse` head as a separate graph, so that encoding without it neither loads nor runs it."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto

from trilens.encode.folder import STATES, Precision
from trilens.export.encoder_graph import EncoderGraph
from trilens.export.graph import Graph, floats, whole_numbers
from trilens.export.heads import SparseWeights

# Words whose products with all token states are in memory at a time: 8 kilobytes per token.
VOCABULARY_CHUNK = 2048
# Word embeddings are stored in 8 bits, so the states they are multiplied with get 7: see WEIGHT_MAX.
STATE_LEVELS = 63


class SparseHeadGraph(Graph):
    """Computes vocabulary weights from the encoder's token states, with the encoder's word embeddings."""

    def __init__(self, precision: Precision, head: SparseWeights, encoder: EncoderGraph) -> None:
        super().__init__()
        self.precision, self.head = precision, head
        self.shared = [name for name in ("words", "words.scale") if name in encoder.constants]
        self.constants.update((name, encoder.constants[name]) for name in self.shared)
        self.size = head.described.shift + head.described.dim  # there may be more embeddings than tokens

    def model(self, weights: Path) -> bytes:
        """The serialised graph; shared tensors refer to the encoder's file."""
        best = self.best(self.attended(self.states()))
        logits = best if self.precision == "float32" else self.rescale(best)
        if self.head.bias is not None:
            logits = self.add("Add", [logits, self.constant("bias", self.head.bias, np.float32)], "biased")
        described, one = self.head.described, self.constant("one", 1, np.float32)
        name = "raw" if described.normalised else "sparse"
        if described.activation == "log1p":
            activated = self.add("Log", [self.add("Add", [self.add("Relu", [logits], "relu"), one], "more")], name)
        else:
            activated = self.add("Add", [self.add("Elu", [logits], "elu"), one], name)
        if described.normalised:
            self.normalise(activated, "sparse")
        states = floats(STATES, "texts", "tokens", len(self.head.scale))
        mask = whole_numbers("attention_mask", "texts", "tokens")
        model = self.whole("vocabulary", [states, mask], [floats("sparse", "texts", described.dim)])
        content = weights.read_bytes()
        for tensor in model.graph.initializer:
            if tensor.name in self.shared:
                refer(tensor, weights.name, content.index(tensor.raw_data))
        return bytes(model.SerializeToString(deterministic=True))

    def states(self) -> str:
        """The transformed and normalised states; in 7 bits if products are in 8 bits."""
        scale = self.constant("scale", self.head.scale, np.float32)
        shift = self.constant("shift", self.head.shift, np.float32)
        x = self.add("LayerNormalization", [self.transformed(), scale, shift], "x", axis=-1, epsilon=self.head.epsilon)
        if self.precision != "int8":
            return x
        clip = self.head.clip
        low, high = self.constant("low", -clip, np.float32), self.constant("high", clip, np.float32)
        step = self.constant("x.scale", clip / STATE_LEVELS, np.float32)
        zero = self.constant("x.zero", STATE_LEVELS + 1, np.uint8)
        return self.add("QuantizeLinear", [self.add("Clip", [x, low, high], "clipped"), step, zero], "levels")

    def transformed(self) -> str:
        """The states after the head's linear layer and GELU, if it has them."""
        if self.head.transform is None:
            return STATES
        weight, bias = self.head.transform
        product = self.add("MatMul", [STATES, self.constant("transform.weight", weight, np.float32)], "transform.xw")
        linear = self.add("Add", [product, self.constant("transform.bias", bias, np.float32)], "transform.y")
        return self.add("Gelu", [linear], "transform")

    def attended(self, x: str) -> str:
        """Replace masked positions by the first one, so that they do not affect the maximum."""
        first, after = self.constant("first", [0], np.int64), self.constant("after", [1], np.int64)
        kept = self.add("Cast", ["attention_mask"], "kept", to=TensorProto.BOOL)
        kept = self.add("Unsqueeze", [kept, self.constant("third", [2], np.int64)], "kept.column")
        return self.add("Where", [kept, x, self.add("Slice", [x, first, after, after], "start")], "attended")

    def best(self, x: str) -> str:
        """The highest product of each stored word vector with any position."""
        begins = range(self.head.described.shift, self.size, VOCABULARY_CHUNK)
        return self.add(
            "Concat", [self.best_of(x, begin, min(begin + VOCABULARY_CHUNK, self.size)) for begin in begins], "best", axis=1
        )

    def best_of(self, x: str, begin: int, end: int) -> str:
        """The same for the words `begin:end`; the transposition is constant-folded when a session is opened."""
        span = [self.constant(f"{begin}.{place}", [word], np.int64) for place, word in (("begin", begin), ("end", end))]
        words = self.add("Slice", ["words", *span, "first"], f"{begin}.rows")
        words = self.add("Transpose", [words], f"{begin}.words", perm=[1, 0])
        if self.precision == "int8":
            product = self.add("MatMulInteger", [x, words, "x.zero"], f"{begin}.y")
        else:
            if self.precision != "float32":
                words = self.add("Cast", [words], f"{begin}.cast", to=TensorProto.FLOAT)
            product = self.add("MatMul", [x, words], f"{begin}.y")
        return self.add("ReduceMax", [product], f"{begin}.best", axes=[1], keepdims=0)

    def rescale(self, best: str) -> str:
        """Multiply by the scales of word vectors and states; they are positive, so this commutes with the maximum."""
        begin = self.constant("begin", [self.head.described.shift], np.int64)
        end = self.constant("end", [self.size], np.int64)
        scales = self.add("Slice", ["words.scale", begin, end, "first"], "scales.column")
        scales = self.add("Squeeze", [scales, "after"], "scales")
        if self.precision == "int8":
            scales = self.add("Mul", [scales, "x.scale"], "scales.both")
            best = self.add("Cast", [best], "best.cast", to=TensorProto.FLOAT)
        return self.add("Mul", [best, scales], "logits")


def refer(tensor: onnx.TensorProto, file: str, offset: int) -> None:
    """Make a tensor refer to the same bytes in another file (ONNX external data)."""
    where = {"location": file, "offset": str(offset), "length": str(len(tensor.raw_data))}
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in where.items():
        tensor.external_data.add(key=key, value=value)

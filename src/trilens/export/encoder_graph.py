"""`EncoderGraph`: a backbone and its heads as one ONNX graph."""

from collections.abc import Iterable, Mapping
from typing import Literal

import numpy as np
import onnx
from onnx import TensorProto

from trilens.encode.cross_folder import SCORE
from trilens.encode.folder import QUERY_WEIGHTS, STATES, Precision
from trilens.export.backbone import BackboneWriter
from trilens.export.graph import floats, whole_numbers
from trilens.export.heads import DenseWeights, HeadWeights, MultiWeights, PerToken, ScoreWeights
from trilens.export.layers import Layers
from trilens.export.quantisation import Range

Pooling = Literal["mean", "cls"]


class EncoderGraph(Layers):
    """The graph of a model folder; `states` is the name of the last layer's states."""

    def __init__(
        self,
        backbone: BackboneWriter,
        pooling: Pooling,
        precision: Precision,
        ranges: Mapping[str, Range] | None = None,
        heads: HeadWeights | None = None,
    ) -> None:
        super().__init__(precision, ranges or {})
        self.heads = heads or HeadWeights()
        self.states = backbone.write(self)
        self._dim, self._reads = backbone.dim, backbone.reads
        self._dense = [] if self.heads.dense is None else [self._pool(pooling, self.heads.dense)]
        self._others: list[onnx.ValueInfoProto] = []
        if self.heads.multi is not None:
            self._others.append(self._project(self.heads.multi))
            if self.heads.multi.weigh is not None:
                self._others.append(self._weigh(self.heads.multi.weigh, QUERY_WEIGHTS, "Softplus"))
        if self.heads.lexical is not None:
            self._others.append(self._weigh(self.heads.lexical, "lexical", "Relu"))
        if self.heads.sparse is not None:
            self.add("Identity", [self.states], STATES)
            self._others.append(floats(STATES, "texts", "tokens", self._dim))
        if self.heads.score is not None:
            self._others.append(self._score(self.heads.score))

    def model(self, inner: Iterable[str] = ()) -> bytes:
        """The serialised graph; `inner` are names of additional outputs."""
        inputs = [whole_numbers(name, "texts", "tokens") for name in self._reads]
        tapped = [floats(name, "texts", "tokens", None) for name in inner]
        return bytes(
            self.whole("encoder", inputs, [*self._dense, *tapped, *self._others]).SerializeToString(deterministic=True)
        )

    def _pool(self, pooling: Pooling, head: DenseWeights) -> onnx.ValueInfoProto:
        """The `dense` head: CLS or mean pooling, then the head's own layers."""
        if pooling == "cls":
            pooled = self.add("Gather", [self.states, self.constant("zero", 0, np.int64)], "pooled", axis=1)
        else:
            second = self.constant("second", [1], np.int64)
            kept = self.add("Cast", ["attention_mask"], "kept", to=TensorProto.FLOAT)
            kept = self.add("Unsqueeze", [kept, second], "kept.row")
            pooled = self.add("Squeeze", [self.add("MatMul", [kept, self.states], "pooled.row"), second], "pooled")
            if not head.plain:  # sum and mean have the same direction
                count = self.add("ReduceSum", [kept, self.constant("third", [2], np.int64)], "kept.count", keepdims=0)
                count = self.add("Max", [count, self.constant("at.least", 1, np.float32)], "kept.divisor")
                pooled = self.add("Div", [pooled, count], "pooled.mean")
        pooled = self._convert(pooled, head)
        if head.normalised:
            self.normalise(pooled, "dense")
        else:
            self.add("Identity", [pooled], "dense")
        return floats("dense", "texts", self._dim if head.weight is None else head.weight.shape[1])

    def _convert(self, pooled: str, head: DenseWeights) -> str:
        """Apply the head's projection to the pooled state."""
        if head.weight is not None:
            pooled = self.add("MatMul", [pooled, self.constant("dense.weight", head.weight, np.float32)], "dense.xw")
        if head.bias is not None:
            pooled = self.add("Add", [pooled, self.constant("dense.bias", head.bias, np.float32)], "dense.y")
        return self.add("Tanh", [pooled], "dense.tanh") if head.tanh else pooled

    def _project(self, head: MultiWeights) -> onnx.ValueInfoProto:
        """The `multi` head: a projection of each token state."""
        steps = ["product", *["bias"] * (head.bias is not None), *["mean"] * head.closing_mean, *["length"] * head.normalised]
        names = {step: "multi" if step == steps[-1] else "multi.x" if step == "product" else f"multi.{step}" for step in steps}
        weight = self.constant("multi.weight", head.weight, np.float32)
        vectors = self.add("MatMul", [self.states, weight], names["product"])
        if head.bias is not None:
            vectors = self.add("Add", [vectors, self.constant("multi.added", head.bias, np.float32)], names["bias"])
        if head.closing_mean:
            vectors = self._put_mean_last(vectors, names["mean"])
        if head.normalised:
            self.normalise(vectors, names["length"])
        return floats("multi", "texts", "tokens", head.weight.shape[1])

    def _put_mean_last(self, vectors: str, name: str) -> str:
        """Replace the vector of the last attended token by the mean over the attended tokens."""
        axis, third = self.constant("tokens.axis", [1], np.int64), self.constant("third", [2], np.int64)
        weights = self.add("Cast", ["attention_mask"], f"{name}.mask", to=TensorProto.FLOAT)
        row = self.add("Unsqueeze", [weights, axis], f"{name}.row")
        count = self.add("ReduceSum", [row, third], f"{name}.count", keepdims=1)
        count = self.add("Max", [count, self.constant("at.least", 1, np.float32)], f"{name}.divisor")
        mean = self.add("Div", [self.add("MatMul", [row, vectors], f"{name}.sum"), count], f"{name}.vector")
        rank = self.add("CumSum", ["attention_mask", self.constant("tokens.at", 1, np.int64)], f"{name}.rank")
        total = self.add("ReduceSum", ["attention_mask", axis], f"{name}.total", keepdims=1)
        # The running count of attended tokens reaches the total at the last one; the mask excludes padding after it.
        last = self.add("Mul", [rank, "attention_mask"], f"{name}.attended")
        last = self.add(
            "Equal", [last, self.add("Max", [total, self.constant("at.least.one", 1, np.int64)], f"{name}.of")], f"{name}.last"
        )
        last = self.add("Unsqueeze", [last, third], f"{name}.last.column")
        return self.add("Where", [last, mean, vectors], name)

    def _weigh(self, layer: PerToken, name: str, activation: str) -> onnx.ValueInfoProto:
        """A non-negative weight per token: the `lexical` head, or the weights of query tokens."""
        product = self.add("MatMul", [self.states, self.constant(f"{name}.weight", layer.weight, np.float32)], f"{name}.xw")
        linear = self.add("Add", [product, self.constant(f"{name}.bias", layer.bias, np.float32)], f"{name}.y")
        column = self.add(activation, [linear], f"{name}.column")
        self.add("Squeeze", [column, self.constant("last", [-1], np.int64)], name)
        return floats(name, "texts", "tokens")

    def _score(self, head: ScoreWeights) -> onnx.ValueInfoProto:
        """The score of a pair from the state of its first token: a layer with an activation, and a linear one."""
        first = self.add("Gather", [self.states, self.constant("zero", 0, np.int64)], "score.first", axis=1)
        inner = self.add("MatMul", [first, self.constant("score.dense.weight", head.dense[0], np.float32)], "score.dense.xw")
        inner = self.add("Add", [inner, self.constant("score.dense.bias", head.dense[1], np.float32)], "score.dense.y")
        inner = self.add(head.activation, [inner], "score.dense")
        column = self.add("MatMul", [inner, self.constant("score.weight", head.out.weight, np.float32)], "score.xw")
        column = self.add("Add", [column, self.constant("score.bias", head.out.bias, np.float32)], "score.y")
        self.add("Squeeze", [column, self.constant("last", [-1], np.int64)], SCORE)
        return floats(SCORE, "texts")

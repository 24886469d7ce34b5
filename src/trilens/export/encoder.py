"""`EncoderGraph`: a backbone and its heads as the one ONNX graph that a model folder holds."""

from collections.abc import Iterable, Mapping
from typing import Literal

import numpy as np
import onnx
from onnx import TensorProto

from trilens.encode.folder import QUERY_WEIGHTS, STATES
from trilens.export.backbone import Backbone
from trilens.export.graph import floats, whole_numbers
from trilens.export.heads import Heads, PerToken, Pooled, Projection
from trilens.export.layers import Layers, Precision
from trilens.export.rounding import Range

INPUTS = ("input_ids", "attention_mask")
Pooling = Literal["mean", "cls"]


class EncoderGraph(Layers):
    """Written when it is made; `states` names the states of the last layer."""

    def __init__(
        self,
        backbone: Backbone,
        pooling: Pooling,
        precision: Precision,
        ranges: Mapping[str, Range] | None = None,
        heads: Heads | None = None,
    ) -> None:
        super().__init__(precision, ranges or {})
        self.heads = heads or Heads()
        self.states = backbone.write(self)
        self._dim = backbone.dim
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

    def model(self, inner: Iterable[str] = ()) -> bytes:
        """The whole graph; `inner` names tensors to give out as well."""
        inputs = [whole_numbers(name, "texts", "tokens") for name in INPUTS]
        tapped = [floats(name, "texts", "tokens", None) for name in inner]
        return bytes(
            self.whole("encoder", inputs, [*self._dense, *tapped, *self._others]).SerializeToString(deterministic=True)
        )

    def _pool(self, pooling: Pooling, head: Pooled) -> onnx.ValueInfoProto:
        """The `dense` head: mean of the token states, or the first one, and what the head makes of it."""
        if pooling == "cls":
            pooled = self.add("Gather", [self.states, self.constant("zero", 0, np.int64)], "pooled", axis=1)
        else:
            second = self.constant("second", [1], np.int64)
            kept = self.add("Cast", ["attention_mask"], "kept", to=TensorProto.FLOAT)
            kept = self.add("Unsqueeze", [kept, second], "kept.row")
            pooled = self.add("Squeeze", [self.add("MatMul", [kept, self.states], "pooled.row"), second], "pooled")
            if not head.plain:  # the sum and the mean have the same direction
                count = self.add("ReduceSum", [kept, self.constant("third", [2], np.int64)], "kept.count", keepdims=0)
                count = self.add("Max", [count, self.constant("at.least", 1, np.float32)], "kept.divisor")
                pooled = self.add("Div", [pooled, count], "pooled.mean")
        pooled = self._convert(pooled, head)
        if head.normalised:
            self.normalise(pooled, "dense")
        else:
            self.add("Identity", [pooled], "dense")
        return floats("dense", "texts", self._dim if head.weight is None else head.weight.shape[1])

    def _convert(self, pooled: str, head: Pooled) -> str:
        """The pooled state after the head's own layer."""
        if head.weight is not None:
            pooled = self.add("MatMul", [pooled, self.constant("dense.weight", head.weight, np.float32)], "dense.xw")
        if head.bias is not None:
            pooled = self.add("Add", [pooled, self.constant("dense.bias", head.bias, np.float32)], "dense.y")
        return self.add("Tanh", [pooled], "dense.tanh") if head.tanh else pooled

    def _project(self, head: Projection) -> onnx.ValueInfoProto:
        """The `multi` head: each token state in other dimensions."""
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
        """The vectors with the mean over the attended tokens in place of the last attended one."""
        axis, third = self.constant("tokens.axis", [1], np.int64), self.constant("third", [2], np.int64)
        weights = self.add("Cast", ["attention_mask"], f"{name}.mask", to=TensorProto.FLOAT)
        row = self.add("Unsqueeze", [weights, axis], f"{name}.row")
        count = self.add("ReduceSum", [row, third], f"{name}.count", keepdims=1)
        count = self.add("Max", [count, self.constant("at.least", 1, np.float32)], f"{name}.divisor")
        mean = self.add("Div", [self.add("MatMul", [row, vectors], f"{name}.sum"), count], f"{name}.vector")
        rank = self.add("CumSum", ["attention_mask", self.constant("tokens.at", 1, np.int64)], f"{name}.rank")
        total = self.add("ReduceSum", ["attention_mask", axis], f"{name}.total", keepdims=1)
        # The number of attended tokens so far reaches the total at the last one, and stays there on padding.
        last = self.add("Mul", [rank, "attention_mask"], f"{name}.attended")
        last = self.add(
            "Equal", [last, self.add("Max", [total, self.constant("at.least.one", 1, np.int64)], f"{name}.of")], f"{name}.last"
        )
        last = self.add("Unsqueeze", [last, third], f"{name}.last.column")
        return self.add("Where", [last, mean, vectors], name)

    def _weigh(self, layer: PerToken, name: str, activation: str) -> onnx.ValueInfoProto:
        """A weight per token, never below zero: the `lexical` head, or the weights of a query's token vectors."""
        product = self.add("MatMul", [self.states, self.constant(f"{name}.weight", layer.weight, np.float32)], f"{name}.xw")
        linear = self.add("Add", [product, self.constant(f"{name}.bias", layer.bias, np.float32)], f"{name}.y")
        column = self.add(activation, [linear], f"{name}.column")
        self.add("Squeeze", [column, self.constant("last", [-1], np.int64)], name)
        return floats(name, "texts", "tokens")

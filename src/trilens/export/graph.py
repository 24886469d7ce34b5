"""`Graph`: builder of an ONNX graph, node by node."""

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from trilens.errors import BadInput

OPSET, IR_VERSION = 17, 8
CONTRIB = "com.microsoft"  # fused kernels in every CPU build of onnxruntime
CONTRIB_OPS = {"Attention", "FastGelu", "Gelu", "MatMulIntegerToFloat", "MultiHeadAttention", "QAttention"}
LARGEST_BYTES = (1 << 31) - (1 << 20)  # limit of a protobuf message, less some room for the nodes


class Graph:
    """Nodes and constants, in the order in which they were added."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, onnx.TensorProto] = {}

    def constant(self, name: str, value: Any, dtype: Any) -> str:
        """Add a constant; an existing name refers to the same tensor."""
        self.constants.setdefault(
            name, numpy_helper.from_array(np.ascontiguousarray(value, dtype).reshape(np.shape(value)), name)
        )
        return name

    def add(self, kind: str, inputs: list[str], name: str, **attributes: Any) -> str:
        """Add a node with one output of the same name."""
        domain = CONTRIB if kind in CONTRIB_OPS else ""
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, domain=domain, **attributes))
        return name

    def split(self, tensor: str, sizes: list[int], names: list[str]) -> list[str]:
        """Split the last axis into parts of these sizes."""
        widths = self.constant(f"{names[0]}.widths", sizes, np.int64)
        self.nodes.append(helper.make_node("Split", [tensor, widths], names, name=f"{names[0]}.split", axis=-1))
        return names

    def normalise(self, vectors: str, name: str) -> str:
        """Normalise vectors to unit length."""
        length = self.add("ReduceL2", [vectors], f"{name}.length", axes=[-1], keepdims=1)
        length = self.add("Max", [length, self.constant("tiny", 1e-12, np.float32)], f"{name}.divisor")
        return self.add("Div", [vectors, length], name)

    def whole(self, name: str, inputs: list[onnx.ValueInfoProto], outputs: list[onnx.ValueInfoProto]) -> onnx.ModelProto:
        """The checked model with all nodes."""
        stored_bytes = sum(len(tensor.raw_data) for tensor in self.constants.values())
        if stored_bytes > LARGEST_BYTES:
            raise BadInput(
                f"the graph would take {stored_bytes / 1e9:.1f} GB, but an ONNX file holds 2 GB; choose int8-weights or int8"
            )
        graph = helper.make_graph(self.nodes, name, inputs, outputs, list(self.constants.values()))
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIB, 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="trilens")
        onnx.checker.check_model(model)
        return model


def floats(name: str, *shape: str | int | None) -> onnx.ValueInfoProto:
    """A float32 input or output."""
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [*shape])


def whole_numbers(name: str, *shape: str | int | None) -> onnx.ValueInfoProto:
    """An int64 input or output."""
    return helper.make_tensor_value_info(name, TensorProto.INT64, [*shape])

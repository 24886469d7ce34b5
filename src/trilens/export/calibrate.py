"""Calibration: quantisation ranges of a backbone's activations, and token states, from an unquantised pass over texts."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from trilens.encode.folder import Precision
from trilens.encode.runtime import onnx_runtime
from trilens.export.backbone import BackboneWriter
from trilens.export.calibration_texts import TokenisedText
from trilens.export.encoder_graph import EncoderGraph
from trilens.export.graph import LARGEST_BYTES
from trilens.export.layers import TYPES
from trilens.export.quantisation import Range, choose_range
from trilens.kernels.array_types import Float32s

ROWS = 40  # tokens sampled per text
KEPT_BYTES = 1 << 30  # of activations in memory at a time; more are computed in several passes

Advance = Callable[[float], None]


def silent(_amount: float) -> None:
    """Ignore progress."""


def exact_graph(backbone: BackboneWriter) -> EncoderGraph:
    """The float32 graph; if the weights exceed a single file, they are stored in 8 bits, which is precise enough here."""
    weights_bytes = sum(tensor.nbytes for tensor in backbone.checkpoint.tensors.values())
    precision: Precision = "float32" if weights_bytes < LARGEST_BYTES else "int8-weights"
    return EncoderGraph(backbone, "mean", precision)


def run_each(model: bytes, texts: Iterable[TokenisedText], outputs: list[str]) -> Iterator[list[Float32s]]:
    """Run the model on each text separately."""
    onnxruntime = onnx_runtime()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    for text in texts:
        inputs = {"input_ids": np.array([text.ids], np.int64)}
        inputs["attention_mask"] = (np.arange(len(text.ids)) < text.attended).astype(np.int64)[None]
        if text.types is not None:
            inputs[TYPES] = np.array([text.types], np.int64)
        yield session.run(outputs, inputs)


def token_states(backbone: BackboneWriter, texts: Sequence[TokenisedText], advance: Advance = silent) -> list[Float32s]:
    """The states (tokens, hidden) of each text."""
    graph, all_states = exact_graph(backbone), []
    for (states,) in run_each(graph.model([graph.states]), texts, [graph.states]):
        all_states.append(states[0])
        advance(1)
    return all_states


def calibrate(backbone: BackboneWriter, texts: Sequence[TokenisedText], advance: Advance = silent) -> dict[str, Range]:
    """The range of every product's input; `advance` counts products."""
    weights = {name: weight for layer in range(backbone.layers) for name, (weight, _) in backbone.products(layer).items()}
    graph = exact_graph(backbone)
    ranges: dict[str, Range] = {}
    for names in groups([*graph.inputs], weights, len(texts)):
        kept = activations(graph, sorted({graph.inputs[name] for name in names}), texts)
        for name in names:
            ranges[name] = choose_range(kept[graph.inputs[name]], weights[name])
            advance(1)
    return ranges


def groups(names: list[str], weights: dict[str, Float32s], texts: int) -> Iterator[list[str]]:
    """Groups of products whose inputs fit into memory together."""
    group: list[str] = []
    size = 0
    for name in names:
        own = 4 * (ROWS + 2) * texts * len(weights[name])
        if group and size + own > KEPT_BYTES:
            yield group
            group, size = [], 0
        group.append(name)
        size += own
    yield group


def activations(graph: EncoderGraph, tensors: list[str], texts: Sequence[TokenisedText]) -> dict[str, Float32s]:
    """Rows of the named tensors at sampled tokens of each text."""
    rng = np.random.default_rng(0)
    kept: dict[str, list[Float32s]] = {tensor: [] for tensor in tensors}
    for outputs in run_each(graph.model(tensors), texts, tensors):
        count = outputs[0].shape[1]
        # The first and the last token have the largest activations.
        rows = np.unique(np.concatenate([[0, count - 1], rng.permutation(count)[:ROWS]]))
        for tensor, states in zip(tensors, outputs, strict=True):
            kept[tensor].append(states[0][rows])
    return {tensor: np.concatenate(parts) for tensor, parts in kept.items()}

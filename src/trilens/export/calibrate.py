"""The ranges of a backbone's activations, and its token states, from an exact pass over texts."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import onnxruntime

from trilens.export.backbone import Backbone
from trilens.export.encoder import EncoderGraph
from trilens.export.graph import LARGEST_BYTES
from trilens.export.layers import Precision
from trilens.export.rounding import Floats, Range, choose_range
from trilens.export.texts import Given

ROWS = 40  # tokens of each text that ranges are chosen on
KEPT_BYTES = 1 << 30  # of activations held at a time; more are computed in several passes

Advance = Callable[[float], None]


def silent(_amount: float) -> None:
    """Progress that nobody asked for."""


def exact_graph(backbone: Backbone) -> EncoderGraph:
    """The graph in float32; weights that no single file would hold are stored in 8 bits, which is near enough to measure."""
    weights_bytes = sum(tensor.nbytes for tensor in backbone.checkpoint.tensors.values())
    precision: Precision = "float32" if weights_bytes < LARGEST_BYTES else "int8-weights"
    return EncoderGraph(backbone, "mean", precision)


def run_each(model: bytes, texts: Iterable[Given], outputs: list[str]) -> Iterator[list[Floats]]:
    """The outputs for each text alone."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    for text in texts:
        row = np.array([text.ids], np.int64)
        mask = (np.arange(len(text.ids)) < text.seen).astype(np.int64)[None]
        yield session.run(outputs, {"input_ids": row, "attention_mask": mask})


def token_states(backbone: Backbone, texts: Sequence[Given], advance: Advance = silent) -> list[Floats]:
    """The states (tokens, hidden) of each text."""
    graph, found = exact_graph(backbone), []
    for (states,) in run_each(graph.model([graph.states]), texts, [graph.states]):
        found.append(states[0])
        advance(1)
    return found


def calibrate(backbone: Backbone, texts: Sequence[Given], advance: Advance = silent) -> dict[str, Range]:
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


def groups(names: list[str], weights: dict[str, Floats], texts: int) -> Iterator[list[str]]:
    """The products in groups whose inputs are held together."""
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


def activations(graph: EncoderGraph, tensors: list[str], texts: Sequence[Given]) -> dict[str, Floats]:
    """Rows of the named tensors, taken at some tokens of each text."""
    rng = np.random.default_rng(0)
    kept: dict[str, list[Floats]] = {tensor: [] for tensor in tensors}
    for found in run_each(graph.model(tensors), texts, tensors):
        count = found[0].shape[1]
        # The first and the last token carry the largest values of all.
        rows = np.unique(np.concatenate([[0, count - 1], rng.permutation(count)[:ROWS]]))
        for tensor, states in zip(tensors, found, strict=True):
            kept[tensor].append(states[0][rows])
    return {tensor: np.concatenate(parts) for tensor, parts in kept.items()}

"""Make a model folder from a Hugging Face folder of a BERT-type encoder: one ONNX graph, written layer by layer.

    python scripts/make_model.py /path/to/gte-small src/trilens/models/gte-small --texts calibration.jsonl \\
        --licence MIT --source https://huggingface.co/thenlper/gte-small

`--precision int8` (the default) also computes in 8 bits, with the ranges of all activations fixed beforehand from
`--texts` (JSON lines with a "text" each, none of them from a test set). Fixed ranges make a vector independent of the
batch that its text was encoded in. `int8-weights` only stores in 8 bits, `float32` in 32; neither needs texts. The same
input on the same machine gives the same bytes. Needs `pip install trilens[model]`.

All other heads are untrained, and fitted to `--texts`:
`--multi-dims` adds `multi`: the token states projected on their principal components.
`--vdr` adds `sparse`, the head of VDR: the states normalised, less their mean, scaled so that their products with the word
embeddings have deviation 1; of those products the highest over the positions, elu(x) + 1.
`--lexical` adds `lexical`: a linear layer that guesses the inverse document frequency of each token from its state.
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from pydantic import ValidationError
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from trilens.encode.families import VDR, Family, family_of
from trilens.encode.folder import (
    CONFIG_FILE,
    SPARSE_FILE,
    STATES,
    TOKENIZER_FILE,
    Head,
    LexicalHead,
    ModelConfig,
    MultiHead,
    SparseHead,
    first_fault,
)
from trilens.encode.tokens import special_tokens

Floats = NDArray[np.float32]

OPSET, IR_VERSION = 17, 8
CONTRIB = "com.microsoft"  # fused kernels that every build of onnxruntime for the CPU has
CONTRIB_OPS = {"Attention", "QAttention", "MatMulIntegerToFloat", "Gelu"}
# Without VNNI, x86 adds two 8 × 8 bit products in 16 bits. Weights of 7 bits cannot overflow there.
WEIGHT_MAX = 63
STORED_MAX = 127
CALIBRATION_TOKENS, CALIBRATION_ROWS = 256, 40
# SmoothQuant (arXiv:2211.10438), equation 4: how much of an input channel's range moves into the weights.
STRENGTHS = (0.5, 0.6, 0.7, 0.8, 0.9)
# Words whose products with all token states are held at a time: 8 kilobytes per token.
VOCABULARY_CHUNK = 2048
# Word embeddings are stored in 8 bits, so the states that they are multiplied with have 7: see WEIGHT_MAX.
STATE_LEVELS = 63
FIT_TOKENS = 2000
CLIPS = (1.0, 0.8, 0.65, 0.5, 0.4, 0.3, 0.2)
# Strength of the ridge, in units of the mean square of the states: there are more tokens than dimensions, but not many more.
RIDGE = 0.01


@dataclass(frozen=True)
class Range:
    """How the input of one matrix product becomes 8 bits: channels divided by `smooth`, then [low, high] → 0…255."""

    smooth: Floats
    low: float
    high: float

    @property
    def scale(self) -> float:
        """The step between two levels."""
        return (self.high - self.low) / 255

    @property
    def zero(self) -> int:
        """The level of zero."""
        return int(np.clip(np.rint(-self.low / self.scale), 0, 255))

    def round(self, rows: Floats) -> Floats:
        """What is left of `rows` after the conversion, still divided by `smooth`."""
        levels = np.clip(np.rint(rows / self.smooth / self.scale) + self.zero, 0, 255)
        return np.asarray((levels - self.zero) * self.scale, np.float32)


@dataclass(frozen=True)
class Projection:
    """The `multi` head: a matrix (hidden, dims) for the token states, and whether its products get length 1."""

    weight: Floats
    normalised: bool


@dataclass(frozen=True)
class Vocabulary:
    """The `sparse` head: scale and shift of its layer normalisation, and the largest state that 8 bits have to hold."""

    described: SparseHead
    scale: Floats
    shift: Floats
    clip: float


@dataclass(frozen=True)
class Lexical:
    """The `lexical` head: weight (hidden, 1) and bias (1)."""

    weight: Floats
    bias: Floats


@dataclass(frozen=True)
class Heads:
    """The heads beside `dense`; None where there is none."""

    multi: Projection | None = None
    sparse: Vocabulary | None = None
    lexical: Lexical | None = None


def round_columns(weight: Floats, levels: int) -> tuple[NDArray[np.int8], Floats]:
    """A matrix (in, out) as whole numbers and one scale per column."""
    scales = np.maximum(np.abs(weight).max(axis=0) / levels, 1e-12).astype(np.float32)
    return np.rint(weight / scales).astype(np.int8), scales


class Bert:
    """The weights of a BERT-type encoder by role."""

    def __init__(self, folder: Path) -> None:
        self.config: dict[str, Any] = json.loads((folder / "config.json").read_text())
        expected = {"model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute"}
        if differing := {key: self.config.get(key) for key in expected if self.config.get(key) != expected[key]}:
            raise SystemExit(f"{folder} has {differing}; expected {expected}: this graph would compute something else")
        self.tensors: dict[str, Floats] = {
            name.removeprefix("bert."): tensor for name, tensor in load_file(folder / "model.safetensors").items()
        }
        self.words = self.tensors["embeddings.word_embeddings.weight"]
        self.dim: int = self.config["hidden_size"]
        self.layers: int = self.config["num_hidden_layers"]

    def affine(self, name: str) -> tuple[Floats, Floats]:
        """Matrix (in, out) and bias of a linear layer."""
        return np.ascontiguousarray(self.tensors[f"{name}.weight"].T), self.tensors[f"{name}.bias"]

    def products(self, layer: int) -> dict[str, tuple[Floats, Floats]]:
        """The four matrix products of a layer: into and out of the attention, up and down."""
        at = f"encoder.layer.{layer}"
        heads = [self.affine(f"{at}.attention.self.{part}") for part in ("query", "key", "value")]
        return {
            f"{layer}.in": (np.hstack([weight for weight, _ in heads]), np.hstack([bias for _, bias in heads])),
            f"{layer}.out": self.affine(f"{at}.attention.output.dense"),
            f"{layer}.up": self.affine(f"{at}.intermediate.dense"),
            f"{layer}.down": self.affine(f"{at}.output.dense"),
        }


class Nodes:
    """An ONNX graph as it is being written."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, onnx.TensorProto] = {}

    def constant(self, name: str, value: Any, dtype: Any) -> str:
        """A stored tensor; a name that exists already is the same tensor."""
        self.constants.setdefault(
            name, numpy_helper.from_array(np.ascontiguousarray(value, dtype).reshape(np.shape(value)), name)
        )
        return name

    def add(self, kind: str, inputs: list[str], name: str, **attributes: Any) -> str:
        """A node with one output, called like the node."""
        domain = CONTRIB if kind in CONTRIB_OPS else ""
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, domain=domain, **attributes))
        return name

    def normalise(self, vectors: str, name: str) -> str:
        """The vectors at length 1."""
        length = self.add("ReduceL2", [vectors], f"{name}.length", axes=[-1], keepdims=1)
        length = self.add("Max", [length, self.constant("tiny", 1e-12, np.float32)], f"{name}.divisor")
        return self.add("Div", [vectors, length], name)

    def whole(self, name: str, inputs: list[onnx.ValueInfoProto], outputs: list[onnx.ValueInfoProto]) -> onnx.ModelProto:
        """All that was added, as a model."""
        graph = helper.make_graph(self.nodes, name, inputs, outputs, list(self.constants.values()))
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIB, 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="trilens")
        onnx.checker.check_model(model)
        return model


class Graph(Nodes):
    """Writes the encoder as ONNX nodes. Products that `ranges` names compute in 8 bits, all others in float32."""

    def __init__(
        self, bert: Bert, pooling: str, precision: str, ranges: Mapping[str, Range], heads: Heads | None = None
    ) -> None:
        super().__init__()
        self.bert, self.pooling, self.precision, self.ranges, self.heads = bert, pooling, precision, ranges, heads or Heads()
        self.inputs: dict[str, str] = {}  # of each matrix product

    def model(self, outputs: Iterable[str] = ()) -> bytes:
        """The whole graph; `outputs` names inner tensors to give out as well."""
        mask = self.add("Cast", ["attention_mask"], "mask", to=TensorProto.INT32)
        states = self.norm(self.embed(), "embeddings.LayerNorm", "embedded")
        for layer in range(self.bert.layers):
            states = self.layer(states, mask, layer)
        self.pool(states)
        self.states = states
        ids = [helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "tokens"]) for name in INPUTS]
        dense = helper.make_tensor_value_info("dense", TensorProto.FLOAT, ["texts", self.bert.dim])
        inner = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["texts", "tokens", None]) for name in outputs]
        if self.heads.multi is not None:
            inner.append(self.project(states, self.heads.multi))
        if self.heads.lexical is not None:
            inner.append(self.weigh(states, self.heads.lexical))
        if self.heads.sparse is not None:
            self.add("Identity", [states], STATES)
            inner.append(helper.make_tensor_value_info(STATES, TensorProto.FLOAT, ["texts", "tokens", self.bert.dim]))
        return bytes(self.whole("encoder", ids, [dense, *inner]).SerializeToString(deterministic=True))

    def embed(self) -> str:
        """Word, position and type embeddings, summed. Every text has type 0."""
        tensors, words = self.bert.tensors, self.bert.words
        if self.precision == "float32":
            found = self.add("Gather", [self.constant("words", words, np.float32), "input_ids"], "word")
        else:
            levels, scales = round_columns(words.T, STORED_MAX)
            found = self.add("Gather", [self.constant("words", levels.T, np.int8), "input_ids"], "word.levels")
            found = self.add("Cast", [found], "word.cast", to=TensorProto.FLOAT)
            scale = self.add("Gather", [self.constant("words.scale", scales[:, None], np.float32), "input_ids"], "word.scale")
            found = self.add("Mul", [found, scale], "word")
        places = tensors["embeddings.position_embeddings.weight"] + tensors["embeddings.token_type_embeddings.weight"][0]
        tokens = self.add("Shape", ["input_ids"], "length", start=1, end=2)
        first = self.constant("first", [0], np.int64)
        place = self.add("Slice", [self.constant("places", places, np.float32), first, tokens, first], "place")
        return self.add("Add", [found, place], "sum")

    def norm(self, states: str, weights: str, name: str) -> str:
        """Layer normalisation with the parameters called `weights`."""
        scale = self.constant(f"{name}.scale", self.bert.tensors[f"{weights}.weight"], np.float32)
        shift = self.constant(f"{name}.shift", self.bert.tensors[f"{weights}.bias"], np.float32)
        epsilon = self.bert.config["layer_norm_eps"]
        return self.add("LayerNormalization", [states, scale, shift], name, axis=-1, epsilon=epsilon)

    def layer(self, states: str, mask: str, layer: int) -> str:
        """Attention and feed-forward, each added to its input and normalised."""
        at = f"encoder.layer.{layer}"
        products = self.bert.products(layer)
        if f"{layer}.out" in self.ranges:
            self.fold(products, layer)
        context = self.attention(states, mask, f"{layer}.in", *products[f"{layer}.in"])
        output = self.product(context, f"{layer}.out", *products[f"{layer}.out"])
        states = self.add("Add", [output, states], f"{layer}.attended.sum")
        states = self.norm(states, f"{at}.attention.output.LayerNorm", f"{layer}.attended")
        inner = self.add("Gelu", [self.product(states, f"{layer}.up", *products[f"{layer}.up"])], f"{layer}.gelu")
        output = self.product(inner, f"{layer}.down", *products[f"{layer}.down"])
        states = self.add("Add", [output, states], f"{layer}.states.sum")
        return self.norm(states, f"{at}.output.LayerNorm", f"{layer}.states")

    def fold(self, products: dict[str, tuple[Floats, Floats]], layer: int) -> None:
        """Let the values come out of the attention smoothed: it only averages them, so this is exact and free."""
        (weight, bias), smooth = products[f"{layer}.in"], self.ranges[f"{layer}.out"].smooth
        divisor = np.concatenate([np.ones(2 * self.bert.dim, np.float32), smooth])
        products[f"{layer}.in"] = (weight / divisor, bias / divisor)

    def attention(self, states: str, mask: str, name: str, weight: Floats, bias: Floats) -> str:
        """Multi-head attention over the tokens that the mask keeps."""
        self.inputs[name] = states
        heads = self.bert.config["num_attention_heads"]
        added = self.constant(f"{name}.bias", bias, np.float32)
        if name not in self.ranges:
            return self.add("Attention", [states, self.floats(name, weight), added, mask], f"{name}.y", num_heads=heads)
        levels, scale, zero = self.quantise(states, name)
        matrix, scales = self.matrix(name, weight)
        no_shift = self.constant(f"{name}.weight.zero", np.zeros(len(bias)), np.int8)
        inputs = [levels, matrix, added, scale, scales, mask, zero, no_shift]
        return self.add("QAttention", inputs, f"{name}.y", num_heads=heads)

    def product(self, states: str, name: str, weight: Floats, bias: Floats) -> str:
        """A linear layer."""
        self.inputs[name] = states
        added = self.constant(f"{name}.bias", bias, np.float32)
        if name not in self.ranges:
            return self.add("Add", [self.add("MatMul", [states, self.floats(name, weight)], f"{name}.xw"), added], f"{name}.y")
        levels, scale, zero = self.quantise(states, name)
        matrix, scales = self.matrix(name, weight)
        return self.add("MatMulIntegerToFloat", [levels, matrix, scale, scales, zero, "", added], f"{name}.y")

    def quantise(self, states: str, name: str) -> tuple[str, str, str]:
        """The input of a product in 8 bits, with the constants that undo it: scale and level of zero."""
        chosen = self.ranges[name]
        if not name.endswith(".out"):
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

    def pool(self, states: str) -> None:
        """The `dense` head: mean of the token states, or the first one, at length 1."""
        if self.pooling == "cls":
            pooled = self.add("Gather", [states, self.constant("zero", 0, np.int64)], "pooled", axis=1)
        else:  # the sum: dividing by the number of tokens does not change the direction
            second = self.constant("second", [1], np.int64)
            kept = self.add("Cast", ["attention_mask"], "kept", to=TensorProto.FLOAT)
            kept = self.add("Unsqueeze", [kept, second], "kept.row")
            pooled = self.add("Squeeze", [self.add("MatMul", [kept, states], "pooled.row"), second], "pooled")
        self.normalise(pooled, "dense")

    def project(self, states: str, head: Projection) -> onnx.ValueInfoProto:
        """The `multi` head: each token state in fewer dimensions."""
        weight = self.constant("multi.weight", head.weight, np.float32)
        if head.normalised:
            self.normalise(self.add("MatMul", [states, weight], "multi.x"), "multi")
        else:
            self.add("MatMul", [states, weight], "multi")
        return helper.make_tensor_value_info("multi", TensorProto.FLOAT, ["texts", "tokens", head.weight.shape[1]])

    def weigh(self, states: str, head: Lexical) -> onnx.ValueInfoProto:
        """The `lexical` head: a weight per token, never below zero."""
        product = self.add("MatMul", [states, self.constant("lexical.weight", head.weight, np.float32)], "lexical.xw")
        linear = self.add("Add", [product, self.constant("lexical.bias", head.bias, np.float32)], "lexical.y")
        column = self.add("Relu", [linear], "lexical.column")
        self.add("Squeeze", [column, self.constant("last", [-1], np.int64)], "lexical")
        return helper.make_tensor_value_info("lexical", TensorProto.FLOAT, ["texts", "tokens"])


class VocabularyGraph(Nodes):
    """Writes the `sparse` head as a graph of its own, so that encoding without it neither loads nor runs anything more.

    It takes the token states of the encoder and shares its word embeddings.
    """

    def __init__(self, bert: Bert, precision: str, head: Vocabulary, encoder: Graph) -> None:
        super().__init__()
        self.bert, self.precision, self.head = bert, precision, head
        self.shared = [name for name in ("words", "words.scale") if name in encoder.constants]
        self.constants.update((name, encoder.constants[name]) for name in self.shared)
        self.size = len(bert.words)

    def model(self, weights: Path) -> bytes:
        """The whole graph; the tensors that it shares are read from the file of the encoder."""
        best = self.best(self.attended(self.states()))
        logits = best if self.precision == "float32" else self.rescale(best)
        described, one = self.head.described, self.constant("one", 1, np.float32)
        activated = self.add("Add", [self.add("Elu", [logits], "elu"), one], "raw" if described.normalised else "sparse")
        if described.normalised:
            self.normalise(activated, "sparse")
        states = helper.make_tensor_value_info(STATES, TensorProto.FLOAT, ["texts", "tokens", self.bert.dim])
        mask = helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["texts", "tokens"])
        sparse = helper.make_tensor_value_info("sparse", TensorProto.FLOAT, ["texts", described.dim])
        model = self.whole("vocabulary", [states, mask], [sparse])
        content = weights.read_bytes()
        for tensor in model.graph.initializer:
            if tensor.name in self.shared:
                refer(tensor, weights.name, content.index(tensor.raw_data))
        return bytes(model.SerializeToString(deterministic=True))

    def states(self) -> str:
        """The states after the head's layer normalisation; in 7 bits around zero where products have 8."""
        scale = self.constant("scale", self.head.scale, np.float32)
        shift = self.constant("shift", self.head.shift, np.float32)
        epsilon = self.bert.config["layer_norm_eps"]
        x = self.add("LayerNormalization", [STATES, scale, shift], "x", axis=-1, epsilon=epsilon)
        if self.precision != "int8":
            return x
        low, high = (self.constant(name, at, np.float32) for name, at in (("low", -self.head.clip), ("high", self.head.clip)))
        step = self.constant("x.scale", self.head.clip / STATE_LEVELS, np.float32)
        zero = self.constant("x.zero", STATE_LEVELS + 1, np.uint8)
        return self.add("QuantizeLinear", [self.add("Clip", [x, low, high], "clipped"), step, zero], "levels")

    def attended(self, x: str) -> str:
        """Positions that are not attended to repeat the first one, so that they win nothing that it does not."""
        first, after = self.constant("first", [0], np.int64), self.constant("after", [1], np.int64)
        kept = self.add("Cast", ["attention_mask"], "kept", to=TensorProto.BOOL)
        kept = self.add("Unsqueeze", [kept, self.constant("third", [2], np.int64)], "kept.column")
        return self.add("Where", [kept, x, self.add("Slice", [x, first, after, after], "start")], "attended")

    def best(self, x: str) -> str:
        """The highest product of each word, as it is stored, with any position."""
        begins = range(self.head.described.shift, self.size, VOCABULARY_CHUNK)
        return self.add(
            "Concat", [self.best_of(x, begin, min(begin + VOCABULARY_CHUNK, self.size)) for begin in begins], "best", axis=1
        )

    def best_of(self, x: str, begin: int, end: int) -> str:
        """The same for the words `begin:end`. Their rows become columns once, when a session is opened."""
        span = [self.constant(f"{begin}.{place}", [at], np.int64) for place, at in (("begin", begin), ("end", end))]
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
        """Products with stored words as products with words. Scales are above zero, so the maximum may come before them."""
        begin = self.constant("begin", [self.head.described.shift], np.int64)
        end = self.constant("end", [self.size], np.int64)
        scales = self.add("Slice", ["words.scale", begin, end, "first"], "scales.column")
        scales = self.add("Squeeze", [scales, "after"], "scales")
        if self.precision == "int8":
            scales = self.add("Mul", [scales, "x.scale"], "scales.both")
            best = self.add("Cast", [best], "best.cast", to=TensorProto.FLOAT)
        return self.add("Mul", [best, scales], "logits")


def refer(tensor: onnx.TensorProto, file: str, offset: int) -> None:
    """Let a tensor be read from where a file beside it has the same bytes."""
    where = {"location": file, "offset": str(offset), "length": str(len(tensor.raw_data))}
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in where.items():
        tensor.external_data.add(key=key, value=value)


INPUTS = ("input_ids", "attention_mask")


def run_one(model: bytes, texts: Iterable[list[int]], outputs: list[str]) -> Iterator[list[Floats]]:
    """The outputs for each text alone."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    for ids in texts:
        row = np.array([ids], np.int64)
        yield session.run(outputs, {"input_ids": row, "attention_mask": np.ones_like(row)})


def calibrate(bert: Bert, pooling: str, texts: list[list[int]]) -> dict[str, Range]:
    """The range of every product's input, from a float32 pass over the texts."""
    graph = Graph(bert, pooling, "float32", {})
    graph.model()
    names, rng = list(graph.inputs), np.random.default_rng(0)
    tapped = sorted(set(graph.inputs.values()))
    kept: dict[str, list[Floats]] = {tensor: [] for tensor in tapped}
    for found in run_one(Graph(bert, pooling, "float32", {}).model(tapped), texts, tapped):
        count = found[0].shape[1]
        # The first and the last token carry the largest values of all.
        rows = np.unique(np.concatenate([[0, count - 1], rng.permutation(count)[:CALIBRATION_ROWS]]))
        for tensor, states in zip(tapped, found, strict=True):
            kept[tensor].append(states[0][rows])
    weights = {name: weight for at in range(bert.layers) for name, (weight, _) in bert.products(at).items()}
    return {name: choose_range(np.concatenate(kept[graph.inputs[name]]), weights[name]) for name in names}


def token_states(bert: Bert, pooling: str, texts: list[list[int]]) -> Iterator[Floats]:
    """The states (tokens, hidden) of each text, in float32."""
    graph = Graph(bert, pooling, "float32", {})
    graph.model()
    for (states,) in run_one(Graph(bert, pooling, "float32", {}).model([graph.states]), texts, [graph.states]):
        yield states[0]


def principal(states: Iterable[Floats], dims: int) -> Floats:
    """The projection (hidden, dims) that keeps most of the inner products between the token states of the texts."""
    moments = sum(tokens.T.astype(np.float64) @ tokens for tokens in map(unit_length, states))
    vectors = np.linalg.eigh(moments)[1][:, ::-1][:, :dims]
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(dims)])  # eigenvectors are known up to their sign
    return np.asarray(vectors * signs, np.float32)


def unit_length(rows: Floats) -> Floats:
    """Each row at length 1."""
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def fit_vocabulary(bert: Bert, described: SparseHead, states: list[Floats]) -> Vocabulary:
    """The layer normalisation of the `sparse` head.

    Less their mean, because its product is the same for all texts: a few words would be active everywhere. Deviation 1 of
    the products, because elu(x) + 1 tells values below −3 no longer apart.
    """
    every = np.concatenate(states)
    spread = np.sqrt(every.var(axis=1, keepdims=True) + bert.config["layer_norm_eps"])
    rows = (every - every.mean(axis=1, keepdims=True)) / spread
    mean = rows.mean(axis=0)
    sample = (rows - mean)[:: max(1, len(rows) // FIT_TOKENS)]
    words = bert.words[described.shift :]
    gain = 1 / (sample @ words.T).std()
    sample = sample * gain
    return Vocabulary(described, np.full(bert.dim, gain, np.float32), -mean * gain, choose_clip(sample, words))


def choose_clip(rows: Floats, words: Floats) -> float:
    """Where to cut the states before they become 8 bits: the largest ones are rare, and the rest gets finer steps."""
    exact, largest = rows @ words.T, float(np.abs(rows).max())
    tried = []
    for clip in (largest * part for part in CLIPS):
        step = clip / STATE_LEVELS
        rounded = np.rint(np.clip(rows, -clip, clip) / step) * step
        tried.append((float(np.square(rounded.astype(np.float32) @ words.T - exact).sum()), clip))
    return min(tried)[1]


def fit_lexical(states: list[Floats], texts: list[list[int]], special: set[int]) -> Lexical:
    """The linear layer that comes nearest to BM25's inverse document frequency of each token among the texts."""
    found = Counter(token for ids in texts for token in set(ids))
    ids = np.concatenate([np.array(row) for row in texts])
    rare = np.array([np.log1p((len(texts) - found[token] + 0.5) / (found[token] + 0.5)) for token in ids.tolist()])
    own = ~np.isin(ids, list(special))
    rows, wanted = np.concatenate(states)[own].astype(np.float64), rare[own]
    middle, level = rows.mean(axis=0), wanted.mean()
    rows = rows - middle
    moments = rows.T @ rows
    weight = np.linalg.solve(
        moments + RIDGE * np.trace(moments) / len(moments) * np.eye(len(moments)), rows.T @ (wanted - level)
    )
    return Lexical(np.asarray(weight[:, None], np.float32), np.asarray([level - middle @ weight], np.float32))


def choose_range(rows: Floats, weight: Floats) -> Range:
    """Of the smoothing strengths the one whose 8-bit product comes nearest to the exact one."""
    exact = rows @ weight
    reach, pull = np.maximum(np.abs(rows).max(axis=0), 1e-3), np.maximum(np.abs(weight).max(axis=1), 1e-3)
    raw = [np.ones_like(reach), *(reach**strength / pull ** (1 - strength) for strength in STRENGTHS)]
    tried = []
    for factors in raw:
        smooth = (factors / np.exp(np.log(factors).mean())).astype(np.float32)
        smoothed = rows / smooth
        chosen = Range(smooth, min(float(smoothed.min()), 0.0), max(float(smoothed.max()), 0.0))
        levels, scales = round_columns(weight * smooth[:, None], WEIGHT_MAX)
        tried.append((float(np.square(chosen.round(rows) @ (levels * scales) - exact).sum()), chosen))
    return min(tried, key=lambda pair: pair[0])[1]


def read_tokenizer(folder: Path) -> dict[str, Any]:
    """The tokenizer without the padding and truncation that its last user left in it."""
    content: dict[str, Any] = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    return content | {"truncation": None, "padding": None}


def read_texts(file: Path | None, tokenizer: str) -> list[list[int]]:
    """Token ids of the calibration texts, cut to a moderate length."""
    if file is None:
        raise SystemExit("--precision int8 and untrained heads need --texts FILE with some hundred texts")
    texts = [json.loads(line)["text"] for line in file.read_text(encoding="utf-8").splitlines()]
    encoded = (encoding.ids for encoding in Tokenizer.from_str(tokenizer).encode_batch(texts))
    return [ids if len(ids) <= CALIBRATION_TOKENS else [*ids[: CALIBRATION_TOKENS - 1], ids[-1]] for ids in encoded]


def add_multi_options(parser: argparse.ArgumentParser) -> None:
    """An option for each field of `MultiHead`; one that is not given is None, so that the family decides."""
    group = parser.add_argument_group(
        "multi head", "Not given: as the model family has it, else as an untrained head needs it."
    )
    group.add_argument("--multi-dims", dest="dim", type=int, help="make an untrained multi head of this many dimensions")
    flag = argparse.BooleanOptionalAction
    group.add_argument("--normalised", action=flag, help="token vectors of length 1")
    group.add_argument("--query-tokens", type=int, help="fill queries up to this many tokens with the mask token")
    group.add_argument("--mask-token", help="such as [MASK]")
    group.add_argument("--attend-to-mask", action=flag, help="let the other tokens see the mask tokens")
    group.add_argument("--query-marker", help="token after the opening one of queries, such as [unused0]")
    group.add_argument("--doc-marker", help="token after the opening one of documents, such as [unused1]")
    group.add_argument("--skip-punctuation", action=flag, help="no vectors for the punctuation of documents")
    group.add_argument("--skip-special", action=flag, help="no vectors for the opening and closing tokens")
    group.add_argument("--skip-first", action=flag, help="no vector for the opening token")


def multi_head(options: argparse.Namespace, family: Family, tokenizer: str) -> MultiHead | None:
    """The description of the multi head, or None when none was asked for."""
    given = {name: value for name in MultiHead.model_fields if (value := getattr(options, name, None)) is not None}
    if options.dim is None:
        if given:
            raise SystemExit(f"{', '.join(given)} were given, but no multi head is made without --multi-dims; give it as well")
        return None
    defaults = {"normalised": True, "skip_punctuation": True, "skip_special": True}
    if family.multi is not None:
        defaults = family.multi.model_dump() | {"closing_mean": False}  # these graphs do not do that
    head = MultiHead(**defaults | given)
    vocabulary = Tokenizer.from_str(tokenizer)
    for token in (head.mask_token, head.query_marker, head.doc_marker):
        if token is not None and vocabulary.token_to_id(token) is None:
            raise SystemExit(f"{token!r} is not in the vocabulary of {options.folder}; name a token that is")
    return head


def add_vocabulary_options(parser: argparse.ArgumentParser) -> None:
    """Options of the heads that give weights to words."""
    group = parser.add_argument_group("vocabulary heads", "Not given: as the model family has it.")
    group.add_argument("--vdr", action="store_true", help="make an untrained sparse head")
    group.add_argument("--vocabulary-shift", type=int, help=f"first token that is a dimension of it; {VDR.shift} for BERT")
    group.add_argument("--lexical", action="store_true", help="make an untrained lexical head")


def sparse_head(options: argparse.Namespace, family: Family, size: int) -> SparseHead | None:
    """The description of the sparse head over a vocabulary of `size` tokens, or None when none was asked for."""
    if not options.vdr:
        if options.vocabulary_shift is not None:
            raise SystemExit("--vocabulary-shift was given, but no sparse head is made without --vdr; give it as well")
        return None
    usual = family.sparse or VDR
    shift = usual.shift if options.vocabulary_shift is None else options.vocabulary_shift
    return SparseHead(dim=size - shift, shift=shift, top=usual.top, normalised=usual.normalised)


def configure(options: argparse.Namespace, bert: Bert, tokenizer: str) -> ModelConfig:
    """What `trilens.json` will say."""
    family, longest = family_of(options.target.name), bert.config["max_position_embeddings"]
    size = Tokenizer.from_str(tokenizer).get_vocab_size()
    if (options.vdr or options.lexical) and size != len(bert.words):
        raise SystemExit(f"the tokenizer has {size:,} tokens, the model {len(bert.words):,} word embeddings; expected as many")
    multi, sparse = multi_head(options, family, tokenizer), sparse_head(options, family, size)
    lexical = LexicalHead(dim=size) if options.lexical else None
    if multi and multi.dim > bert.dim:
        raise SystemExit(f"--multi-dims is {multi.dim}; expected at most the {bert.dim} of the token states")
    extra: tuple[tuple[Head, object], ...] = (("multi", multi), ("sparse", sparse), ("lexical", lexical))
    return ModelConfig(
        name=options.target.name,
        heads=["dense", *(head for head, described in extra if described is not None)],
        dim=bert.dim,
        pooling=family.pooling,
        query_prefix=family.query_prefix,
        doc_prefix=family.doc_prefix,
        max_query_tokens=min(family.max_query_tokens, longest),
        max_doc_tokens=min(family.max_doc_tokens, longest),
        multi=multi,
        sparse=sparse,
        lexical=lexical,
        precision=options.precision,
        licence=options.licence,
        source=options.source,
    )


def fit_heads(bert: Bert, config: ModelConfig, texts: list[list[int]], tokenizer: str) -> Heads:
    """The heads beside `dense`, fitted to the states of the texts."""
    states = list(token_states(bert, config.pooling, texts))
    special = special_tokens(Tokenizer.from_str(tokenizer))
    return Heads(
        multi=Projection(principal(states, config.multi.dim), config.multi.normalised) if config.multi else None,
        sparse=fit_vocabulary(bert, config.sparse, states) if config.sparse else None,
        lexical=fit_lexical(states, texts, special) if config.lexical else None,
    )


def make_graph(bert: Bert, config: ModelConfig, texts: Path | None, tokenizer: str) -> Graph:
    """The graph of a folder with this configuration, fitted to the texts where it needs them."""
    ranges: dict[str, Range] = {}
    if config.precision == "int8":
        ranges = calibrate(bert, config.pooling, read_texts(texts, tokenizer))
    if config.heads == ["dense"]:
        return Graph(bert, config.pooling, config.precision, ranges)
    heads = fit_heads(bert, config, read_texts(texts, tokenizer), tokenizer)
    return Graph(bert, config.pooling, config.precision, ranges, heads)


def main() -> None:
    """Write `trilens.json`, `tokenizer.json` and the graph into the target folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="Hugging Face folder: config.json, model.safetensors, tokenizer.json")
    parser.add_argument("target", type=Path, help="model folder to write; its name becomes the model's name")
    parser.add_argument("--precision", choices=("int8", "int8-weights", "float32"), default="int8")
    parser.add_argument("--texts", type=Path, help="calibration texts for int8 and for untrained heads")
    parser.add_argument("--licence", required=True)
    parser.add_argument("--source", required=True, help="where the weights come from")
    add_multi_options(parser)
    add_vocabulary_options(parser)
    options = parser.parse_args()
    bert = Bert(options.folder)
    tokenizer = json.dumps(read_tokenizer(options.folder), ensure_ascii=False, separators=(",", ":"))
    try:
        config = configure(options, bert, tokenizer)
    except ValidationError as error:
        raise SystemExit(f"these options do not go together: {first_fault(error)}") from error
    graph = make_graph(bert, config, options.texts, tokenizer)
    options.target.mkdir(parents=True, exist_ok=True)
    weights = "model.onnx" if options.precision == "float32" else "model.int8.onnx"
    (options.target / weights).write_bytes(graph.model())
    if graph.heads.sparse is not None:
        vocabulary = VocabularyGraph(bert, config.precision, graph.heads.sparse, graph)
        (options.target / SPARSE_FILE).write_bytes(vocabulary.model(options.target / weights))
    (options.target / TOKENIZER_FILE).write_text(tokenizer + "\n", encoding="utf-8")
    (options.target / CONFIG_FILE).write_text(config.model_dump_json(indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

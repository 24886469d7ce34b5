"""Make a model folder from a Hugging Face folder of a BERT-type encoder: one ONNX graph, written layer by layer.

    python scripts/make_model.py /path/to/gte-small src/trilens/models/gte-small --texts calibration.jsonl \\
        --licence MIT --source https://huggingface.co/thenlper/gte-small

`--precision int8` (the default) also computes in 8 bits, with the ranges of all activations fixed beforehand from
`--texts` (JSON lines with a "text" each, none of them from a test set). Fixed ranges make a vector independent of the
batch that its text was encoded in. `int8-weights` only stores in 8 bits, `float32` in 32; neither needs texts. The same
input on the same machine gives the same bytes. Needs `pip install trilens[model]`.

`--multi-dims` adds an untrained `multi` head: the token states projected on their principal components over `--texts`.
"""

import argparse
import json
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

from trilens.encode.families import Family, family_of
from trilens.encode.folder import CONFIG_FILE, TOKENIZER_FILE, ModelConfig, MultiHead, first_fault

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


class Graph:
    """Writes the encoder as ONNX nodes. Products that `ranges` names compute in 8 bits, all others in float32."""

    def __init__(
        self, bert: Bert, pooling: str, precision: str, ranges: Mapping[str, Range], multi: Projection | None = None
    ) -> None:
        self.bert, self.pooling, self.precision, self.ranges, self.multi = bert, pooling, precision, ranges, multi
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, onnx.TensorProto] = {}
        self.inputs: dict[str, str] = {}  # of each matrix product

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
        if self.multi is not None:
            inner.append(self.project(states, self.multi))
        graph = helper.make_graph(self.nodes, "encoder", ids, [dense, *inner], list(self.constants.values()))
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIB, 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="trilens")
        onnx.checker.check_model(model)
        return bytes(model.SerializeToString(deterministic=True))

    def embed(self) -> str:
        """Word, position and type embeddings, summed. Every text has type 0."""
        tensors = self.bert.tensors
        words = tensors["embeddings.word_embeddings.weight"]
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

    def normalise(self, vectors: str, name: str) -> str:
        """The vectors at length 1."""
        length = self.add("ReduceL2", [vectors], f"{name}.length", axes=[-1], keepdims=1)
        length = self.add("Max", [length, self.constant("tiny", 1e-12, np.float32)], f"{name}.divisor")
        return self.add("Div", [vectors, length], name)


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


def principal(bert: Bert, pooling: str, texts: list[list[int]], dims: int) -> Floats:
    """The projection (hidden, dims) that keeps most of the inner products between the token states of the texts."""
    graph = Graph(bert, pooling, "float32", {})
    graph.model()
    moments = np.zeros((bert.dim, bert.dim))
    for (states,) in run_one(Graph(bert, pooling, "float32", {}).model([graph.states]), texts, [graph.states]):
        tokens = states[0] / np.linalg.norm(states[0], axis=1, keepdims=True)
        moments += tokens.T.astype(np.float64) @ tokens
    vectors = np.linalg.eigh(moments)[1][:, ::-1][:, :dims]
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(dims)])  # eigenvectors are known up to their sign
    return np.asarray(vectors * signs, np.float32)


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
        raise SystemExit("--precision int8 and --multi-dims need --texts FILE with some hundred texts")
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
    given = {name: getattr(options, name) for name in MultiHead.model_fields if getattr(options, name) is not None}
    if options.dim is None:
        if given:
            raise SystemExit(f"{', '.join(given)} were given, but no multi head is made without --multi-dims; give it as well")
        return None
    defaults = {"normalised": True, "skip_punctuation": True, "skip_special": True}
    if family.multi is not None:
        defaults = family.multi.model_dump()
    head = MultiHead(**defaults | given)
    vocabulary = Tokenizer.from_str(tokenizer)
    for token in (head.mask_token, head.query_marker, head.doc_marker):
        if token is not None and vocabulary.token_to_id(token) is None:
            raise SystemExit(f"{token!r} is not in the vocabulary of {options.folder}; name a token that is")
    return head


def configure(options: argparse.Namespace, bert: Bert, tokenizer: str) -> ModelConfig:
    """What `trilens.json` will say."""
    family, longest = family_of(options.target.name), bert.config["max_position_embeddings"]
    multi = multi_head(options, family, tokenizer)
    if multi and multi.dim > bert.dim:
        raise SystemExit(f"--multi-dims is {multi.dim}; expected at most the {bert.dim} of the token states")
    return ModelConfig(
        name=options.target.name,
        heads=["dense"] if multi is None else ["dense", "multi"],
        dim=bert.dim,
        pooling=family.pooling,
        query_prefix=family.query_prefix,
        doc_prefix=family.doc_prefix,
        max_query_tokens=min(family.max_query_tokens, longest),
        max_doc_tokens=min(family.max_doc_tokens, longest),
        multi=multi,
        precision=options.precision,
        licence=options.licence,
        source=options.source,
    )


def make_graph(bert: Bert, config: ModelConfig, texts: Path | None, tokenizer: str) -> Graph:
    """The graph of a folder with this configuration, fitted to the texts where it needs them."""
    ranges: dict[str, Range] = {}
    if config.precision == "int8":
        ranges = calibrate(bert, config.pooling, read_texts(texts, tokenizer))
    if config.multi is None:
        return Graph(bert, config.pooling, config.precision, ranges)
    weight = principal(bert, config.pooling, read_texts(texts, tokenizer), config.multi.dim)
    return Graph(bert, config.pooling, config.precision, ranges, Projection(weight, config.multi.normalised))


def main() -> None:
    """Write `trilens.json`, `tokenizer.json` and the graph into the target folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="Hugging Face folder: config.json, model.safetensors, tokenizer.json")
    parser.add_argument("target", type=Path, help="model folder to write; its name becomes the model's name")
    parser.add_argument("--precision", choices=("int8", "int8-weights", "float32"), default="int8")
    parser.add_argument("--texts", type=Path, help="calibration texts for int8 and for the multi head")
    parser.add_argument("--licence", required=True)
    parser.add_argument("--source", required=True, help="where the weights come from")
    add_multi_options(parser)
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
    (options.target / TOKENIZER_FILE).write_text(tokenizer + "\n", encoding="utf-8")
    (options.target / CONFIG_FILE).write_text(config.model_dump_json(indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

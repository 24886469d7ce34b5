"""A model folder whose graph gives back what it was given, so that every input of a model can be checked by hand.

The vector of a token is (its id, 1 if it is attended to), the dense vector of a text the sum of both over the attended
tokens. The weight of a query's token is its place, from 1. The lexical weight of a token is ReLU(its id + its place − 13). The
sparse head multiplies token vectors with `SPARSE_WEIGHTS`. The ONNX files are written field by field: the package that could
do it is large, and there are few nodes.
"""

import json
import struct
from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

WORDS = ["[PAD]", "[CLS]", "[SEP]", "[MASK]", "[Q]", "[D]", "[UNK]", ",", ".", "—", "red", "fox", "runs", "home", "##ing", "$"]
ID = {word: at for at, word in enumerate(WORDS)}
FLOAT, INT64, BOOL = 1, 7, 9
SHIFT = ID[","]
# Of each word from the shift on: what it gets from a token's id, and from its being attended to.
SPARSE_WEIGHTS = [
    (0.0, -1.0),
    (0.0, -2.0),
    (0.1, 0.0),
    (0.5, -3.0),
    (-0.5, 1.0),
    (0.0, 0.5),
    (0.25, -2.0),
    (0.0, 0.5),
    (-1.0, 0.0),
]


def echo_model(folder: Path, *, special: bool = True, **changes: object) -> Path:
    """A folder with that graph and a tokenizer of few words; `changes` go into the configuration.

    Those called like a head go into the description of that head.
    """
    folder.mkdir(parents=True)
    described: dict[str, dict[str, object]] = {
        "multi": {"dim": 2, "normalised": False, "skip_punctuation": False, "skip_special": False},
        "sparse": {"dim": len(WORDS) - SHIFT, "shift": SHIFT, "top": 3, "normalised": False},
        "lexical": {"dim": len(WORDS)},
    }
    for head in changes.setdefault("heads", ["dense", "multi"]):  # type: ignore[attr-defined]
        if head in described:
            changes[head] = described[head] | dict(changes.get(head, {}))  # type: ignore[call-overload]
    config = {
        "name": "echo",
        "dim": 2,
        "pooling": "mean",
        "query_prefix": "",
        "doc_prefix": "",
        "max_query_tokens": 12,
        "max_doc_tokens": 10,
        "precision": "float32",
        "licence": "none",
        "source": "none",
    }
    (folder / "trilens.json").write_text(json.dumps(config | changes))
    write_tokenizer(folder / "tokenizer.json", special)
    (folder / "model.onnx").write_bytes(graph())
    (folder / "sparse.onnx").write_bytes(sparse_graph())
    return folder


def write_tokenizer(file: Path, special: bool) -> None:
    """Words and punctuation as in BERT; with `special`, each text stands between [CLS] and [SEP]."""
    tokenizer = Tokenizer(models.WordPiece(ID, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    if special:
        ends = [("[CLS]", ID["[CLS]"]), ("[SEP]", ID["[SEP]"])]
        tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    tokenizer.save(str(file))


def graph() -> bytes:
    """The model as bytes."""
    nodes = [
        node("Cast", ["input_ids"], "id", to=FLOAT),
        node("Cast", ["attention_mask"], "seen", to=FLOAT),
        node("Unsqueeze", ["id", "two"], "id.column"),
        node("Unsqueeze", ["seen", "two"], "seen.column"),
        node("Concat", ["id.column", "seen.column"], "multi", axis=2),
        node("Identity", ["multi"], "states"),
        node("Mul", ["multi", "seen.column"], "attended"),
        node("ReduceSum", ["attended", "one"], "dense", keepdims=0),
        node("CumSum", ["seen", "one"], "place"),
        node("Identity", ["place"], "multi_weights"),
        node("Add", ["id", "place"], "id.place"),
        node("Sub", ["id.place", "thirteen"], "raw"),
        node("Relu", ["raw"], "lexical"),
    ]
    inputs = [value(name, INT64, ["texts", "tokens"]) for name in ("input_ids", "attention_mask")]
    outputs = [
        value("dense", FLOAT, ["texts", 2]),
        value("multi", FLOAT, ["texts", "tokens", 2]),
        value("multi_weights", FLOAT, ["texts", "tokens"]),
        value("states", FLOAT, ["texts", "tokens", 2]),
        value("lexical", FLOAT, ["texts", "tokens"]),
    ]
    return whole(nodes, [axis("one", 1), axis("two", 2), matrix("thirteen", [[13.0]])], inputs, outputs)


def sparse_graph() -> bytes:
    """The sparse head as bytes: elu(x) + 1 of the highest product over the attended tokens."""
    nodes = [
        node("Cast", ["attention_mask"], "seen", to=BOOL),
        node("Unsqueeze", ["seen", "two"], "seen.column"),
        node("Slice", ["states", "zero", "one", "one"], "start"),
        node("Where", ["seen.column", "states", "start"], "attended"),
        node("MatMul", ["attended", "weights"], "products"),
        node("ReduceMax", ["products"], "best", axes=[1], keepdims=0),
        node("Elu", ["best"], "elu"),
        node("Add", ["elu", "plus"], "sparse"),
    ]
    inputs = [value("states", FLOAT, ["texts", "tokens", 2]), value("attention_mask", INT64, ["texts", "tokens"])]
    weights = matrix("weights", [list(column) for column in zip(*SPARSE_WEIGHTS, strict=True)])
    constants = [axis("zero", 0), axis("one", 1), axis("two", 2), weights, matrix("plus", [[1.0]])]
    return whole(nodes, constants, inputs, [value("sparse", FLOAT, ["texts", len(SPARSE_WEIGHTS)])])


def whole(nodes: list[bytes], constants: list[bytes], inputs: list[bytes], outputs: list[bytes]) -> bytes:
    """A model of these parts. Numbers of fields are those of onnx.proto3."""
    parts = ((1, nodes), (2, [b"echo"]), (5, constants), (11, inputs), (12, outputs))
    inner = b"".join(field(number, part) for number, some in parts for part in some)
    return field(1, 8) + field(7, inner) + field(8, field(2, 17))


def node(kind: str, inputs: list[str], output: str, **attributes: int | list[int]) -> bytes:
    """A node with whole numbers as attributes."""
    named = [field(5, field(1, name.encode()) + attribute(content)) for name, content in attributes.items()]
    taken = b"".join(field(1, name.encode()) for name in inputs)
    return taken + field(2, output.encode()) + field(4, kind.encode()) + b"".join(named)


def attribute(content: int | list[int]) -> bytes:
    """A number or a list of them, with the number of its kind."""
    if isinstance(content, int):
        return field(3, content) + field(20, 2)
    return b"".join(field(8, number) for number in content) + field(20, 7)


def value(name: str, kind: int, shape: list[str | int]) -> bytes:
    """An input or output with its shape."""
    dims = [field(1, field(1, dim) if isinstance(dim, int) else field(2, dim.encode())) for dim in shape]
    return field(1, name.encode()) + field(2, field(1, field(1, kind) + field(2, b"".join(dims))))


def axis(name: str, number: int) -> bytes:
    """A stored list of one number."""
    return field(1, 1) + field(2, INT64) + field(8, name.encode()) + field(9, number.to_bytes(8, "little"))


def matrix(name: str, rows: Sequence[Sequence[float]]) -> bytes:
    """Stored rows of numbers."""
    raw = b"".join(struct.pack("<f", number) for row in rows for number in row)
    return field(1, len(rows)) + field(1, len(rows[0])) + field(2, FLOAT) + field(8, name.encode()) + field(9, raw)


def field(number: int, content: int | bytes) -> bytes:
    """A field of a protobuf message: a number, or bytes with their length."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def varint(number: int) -> bytes:
    """Seven bits per byte, the lowest first; the eighth says that more follow."""
    low, rest = number & 127, number >> 7
    return bytes([low | 128]) + varint(rest) if rest else bytes([low])

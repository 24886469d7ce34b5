"""A model folder whose graph gives back what it was given, so that every input of a model can be checked by hand.

The vector of a token is (its id, 1 if it is attended to), the dense vector of a text the sum of both over the attended
tokens. The ONNX file is written field by field: the package that could do it is large, and the graph has seven nodes.
"""

import json
from pathlib import Path

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

WORDS = ["[PAD]", "[CLS]", "[SEP]", "[MASK]", "[Q]", "[D]", "[UNK]", ",", ".", "—", "red", "fox", "runs", "home", "##ing", "$"]
ID = {word: at for at, word in enumerate(WORDS)}
FLOAT, INT64 = 1, 7


def echo_model(folder: Path, *, special: bool = True, **changes: object) -> Path:
    """A folder with that graph and a tokenizer of few words; `changes` go into the configuration, a `multi` into its head."""
    folder.mkdir(parents=True)
    multi = {"dim": 2, "normalised": False, "skip_punctuation": False, "skip_special": False}
    changes["multi"] = multi | dict(changes.get("multi", {}))  # type: ignore[call-overload]
    config = {
        "name": "echo",
        "heads": ["dense", "multi"],
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
    """The model as bytes. Numbers of fields are those of onnx.proto3."""
    nodes = [
        node("Cast", ["input_ids"], "id", to=FLOAT),
        node("Cast", ["attention_mask"], "seen", to=FLOAT),
        node("Unsqueeze", ["id", "two"], "id.column"),
        node("Unsqueeze", ["seen", "two"], "seen.column"),
        node("Concat", ["id.column", "seen.column"], "multi", axis=2),
        node("Mul", ["multi", "seen.column"], "attended"),
        node("ReduceSum", ["attended", "one"], "dense", keepdims=0),
    ]
    inputs = [value(name, INT64, ["texts", "tokens"]) for name in ("input_ids", "attention_mask")]
    outputs = [value("dense", FLOAT, ["texts", 2]), value("multi", FLOAT, ["texts", "tokens", 2])]
    constants = [axis("one", 1), axis("two", 2)]
    whole = b"".join(
        field(number, part)
        for number, parts in ((1, nodes), (2, [b"echo"]), (5, constants), (11, inputs), (12, outputs))
        for part in parts
    )
    return field(1, 8) + field(7, whole) + field(8, field(2, 17))


def node(kind: str, inputs: list[str], output: str, **attributes: int) -> bytes:
    """A node with whole numbers as attributes."""
    named = [field(5, field(1, name.encode()) + field(3, number) + field(20, 2)) for name, number in attributes.items()]
    taken = b"".join(field(1, name.encode()) for name in inputs)
    return taken + field(2, output.encode()) + field(4, kind.encode()) + b"".join(named)


def value(name: str, kind: int, shape: list[str | int]) -> bytes:
    """An input or output with its shape."""
    dims = [field(1, field(1, dim) if isinstance(dim, int) else field(2, dim.encode())) for dim in shape]
    return field(1, name.encode()) + field(2, field(1, field(1, kind) + field(2, b"".join(dims))))


def axis(name: str, number: int) -> bytes:
    """A stored list of one number."""
    return field(1, 1) + field(2, INT64) + field(8, name.encode()) + field(9, number.to_bytes(8, "little"))


def field(number: int, content: int | bytes) -> bytes:
    """A field of a protobuf message: a number, or bytes with their length."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def varint(number: int) -> bytes:
    """Seven bits per byte, the lowest first; the eighth says that more follow."""
    low, rest = number & 127, number >> 7
    return bytes([low | 128]) + varint(rest) if rest else bytes([low])

"""A cross-encoder that counts: the score of a pair is its number of equal words, so that scores can be checked by hand.

Of each word of the query, all equal words of the passage count, and the [SEP] after the query equals the one after the passage.
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from .echo_model import FLOAT, INT64, axis, node, value, whole

SPECIAL = ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]


def counting_cross(folder: Path, texts: Iterable[str], **changes: Any) -> Path:
    """A folder with that model; it knows the words of the texts. `changes` go into its description."""
    folder.mkdir(parents=True)
    config = {
        "kind": "cross-encoder",
        "name": "counting",
        "max_tokens": 64,
        "max_query_tokens": 32,
        "token_types": True,
        "precision": "float32",
        "licence": "none",
        "source": "none",
    }
    (folder / "trilens.json").write_text(json.dumps(config | changes))
    write_tokenizer(folder / "tokenizer.json", texts)
    (folder / "model.onnx").write_bytes(graph())
    return folder


def write_tokenizer(file: Path, texts: Iterable[str], types: bool = True) -> None:
    """Whole words in small letters; pairs as in BERT."""
    words = dict.fromkeys(word for text in texts for word in re.findall(r"\w+|[^\w\s]", text.lower()))
    ids = {word: at for at, word in enumerate([*SPECIAL, *words])}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1" if types else None,
        special_tokens=[(word, ids[word]) for word in ("[CLS]", "[SEP]")],
    )
    tokenizer.save(str(file))


def graph() -> bytes:
    """The model as bytes: tokens of the query × tokens of the passage, 1 where they are equal, summed."""
    nodes = [
        node("Cast", ["attention_mask"], "seen", to=FLOAT),
        node("Cast", ["token_type_ids"], "second", to=FLOAT),
        node("Mul", ["seen", "second"], "passage"),
        node("Sub", ["seen", "passage"], "query"),
        node("Unsqueeze", ["input_ids", "two"], "id.column"),
        node("Unsqueeze", ["input_ids", "one"], "id.row"),
        node("Equal", ["id.column", "id.row"], "equal"),
        node("Cast", ["equal"], "same", to=FLOAT),
        node("Unsqueeze", ["query", "one"], "query.row"),
        node("Unsqueeze", ["passage", "one"], "passage.row"),
        node("MatMul", ["query.row", "same"], "counts"),
        node("Mul", ["counts", "passage.row"], "matches"),
        node("ReduceSum", ["matches", "two"], "total", keepdims=0),
        node("ReduceSum", ["total", "one"], "score", keepdims=0),
    ]
    inputs = [value(name, INT64, ["pairs", "tokens"]) for name in ("input_ids", "attention_mask", "token_type_ids")]
    return whole(nodes, [axis("one", 1), axis("two", 2)], inputs, [value("score", FLOAT, ["pairs"])])

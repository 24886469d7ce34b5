"""VDR and DPR: a query encoder and a document encoder whose tensor names have a prefix before the encoder's own names.

vsearch saves both in one folder, `encoder_q.bert_model.…` and `encoder_p.bert_model.…`, with `encoder_q.ln` for the VDR head;
Facebook publishes `question_encoder.bert_model.…` and `ctx_encoder.bert_model.…` in two folders. Older files of both store
such tensors in `model_dict`.
"""

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from sentence_transformers import SentenceTransformer
from torch import Tensor
from transformers import AutoConfig, BertConfig

from trilens.encode.folder import TOKENIZER_FILE
from trilens.errors import BadModel
from trilens.export.published import is_dpr_half
from trilens.train.backbone import Backbone
from trilens.train.checkpoints.files import find_checkpoint, read_json, read_tensors, take, trained_stack, weights_file
from trilens.train.model import Stack, assemble

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "special_tokens_map.json")
DPR = {"pooling": "cls", "dense": {"normalised": False}, "query_prefix": "", "doc_prefix": ""}
DPR_LENGTHS = {"max_query_tokens": 256, "max_doc_tokens": 256}
HEAD_WIDTH = 64  # of every published BERT


def load(folder: Path, source: str, changes: Mapping[str, Any]) -> tuple[Stack, Stack | None]:
    """Load a vsearch model; shared encoders become one tower."""
    config = read_json(folder / "config.json")
    return vsearch_stacks(read_tensors(weights_file(folder)), config, folder, source, changes)


def vsearch_stacks(
    tensors: Mapping[str, Tensor], config: Mapping[str, Any], folder: Path, source: str, changes: Mapping[str, Any]
) -> tuple[Stack, Stack | None]:
    """The towers described by a vsearch config."""
    query, document = config["encoder_q"], config["encoder_p"]
    kind, shared = query.get("type"), bool(config.get("shared_encoder"))
    equal_fields = ("type", "norm", "shift_vocab_num", "pooling")
    if kind not in ("vdr", "dpr") or any(query.get(field) != document.get(field) for field in equal_fields):
        raise BadModel(
            f"{source} has encoders of type {kind} and {document.get('type')}; expected two of vdr or dpr with equal settings"
        )
    if kind == "vdr" and query.get("pooling", "max") != "max":
        raise BadModel(f"{source} pools vocabulary weights by {query['pooling']}; expected max")
    described = DPR if kind == "dpr" else describe_vdr(query)
    lengths = {"max_query_tokens": query.get("max_len", 256), "max_doc_tokens": document.get("max_len", 256)}
    fields = described | lengths
    prefixes = ["encoder_q"] if shared else ["encoder_q", "encoder_p"]
    if shared and not any(name.startswith("encoder_q.") for name in tensors):
        prefixes = ["encoder_p"]  # safetensors stores one copy of shared tensors
    stacks = [tower(tensors, f"{prefix}.", kind, query.get("model_id"), folder, source, fields, changes) for prefix in prefixes]
    return stacks[0], stacks[1] if len(stacks) == 2 else None


def describe_vdr(encoder: Mapping[str, Any]) -> dict[str, Any]:
    """The VDR head as vsearch describes it."""
    top = encoder.get("topk") or 768
    sparse = {"shift": encoder.get("shift_vocab_num", 999), "top": top, "normalised": bool(encoder.get("norm", False))}
    return {"query_prefix": "", "doc_prefix": "", "sparse": sparse}


def tower(
    tensors: Mapping[str, Tensor],
    prefix: str,
    kind: str,
    base: str | None,
    folder: Path,
    source: str,
    fields: Mapping[str, Any],
    changes: Mapping[str, Any],
) -> Stack:
    """A tower from the tensors whose names start with `prefix`, optionally followed by `bert_model.`."""
    own = {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
    encoder = {
        name.removeprefix("bert_model."): tensor.float() for name, tensor in own.items() if name.startswith("bert_model.")
    }
    weights: dict[str, Tensor] = {}
    if kind == "vdr":
        weight, bias = take(own, ("ln.weight", "ln.bias"), Path(source) / prefix)
        weights = {"sparse.norm.weight": weight, "sparse.norm.bias": bias}
    elif "encode_proj.weight" in own:  # DPR's optional projection
        weight, bias = take(own, ("encode_proj.weight", "encode_proj.bias"), Path(source) / prefix)
        weights = {"dense.linear.weight": weight, "dense.linear.bias": bias}
        fields = {"dim": len(weight)} | dict(fields) | {"dense": {"normalised": False, "projection": "linear"}}
    backbone = make_backbone(encoder, base, folder, source)
    return trained_stack(backbone, source, ["sparse" if kind == "vdr" else "dense"], fields, changes, weights)


def make_backbone(tensors: Mapping[str, Tensor], base: str | None, folder: Path, source: str) -> Backbone:
    """An encoder from these tensors, loaded through a temporary Hugging Face folder.

    `base` is the pre-trained model; it provides the config and, if the checkpoint has none, the tokenizer.
    """
    if "embeddings.word_embeddings.weight" not in tensors:
        raise BadModel(f"{source} has no tensor embeddings.word_embeddings.weight; expected a BERT encoder")
    with tempfile.TemporaryDirectory() as temporary:
        complete = Path(temporary)
        encoder_config(tensors, base, folder).save_pretrained(complete)
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, complete / "model.safetensors")
        for place in (folder, find_base(base)):
            if place is not None and not (complete / TOKENIZER_FILE).is_file():
                copy_files(place, complete, TOKENIZER_FILES)
        if not any((complete / name).is_file() for name in ("tokenizer.json", "vocab.txt")):
            raise BadModel(f"{folder} has no {TOKENIZER_FILE}, and {base} cannot be found; copy that of {base} into the folder")
        return Backbone(str(complete))


def copy_files(source: Path, target: Path, names: Iterable[str]) -> None:
    """Copy the files that exist."""
    for name in names:
        if (source / name).is_file():
            (target / name).write_bytes((source / name).read_bytes())


def find_base(base: str | None) -> Path | None:
    """The folder of the pre-trained model, None if it cannot be found or downloaded."""
    try:
        return find_checkpoint(base) if base else None
    except BadModel:
        return None


def encoder_config(tensors: Mapping[str, Tensor], base: str | None, folder: Path) -> Any:
    """The config of the checkpoint or of the base; otherwise derived from tensor shapes, assuming a standard BERT."""
    for place in (folder, find_base(base)):
        config = read_json(place / "config.json") if place is not None else {}
        if "num_attention_heads" in config:
            known = AutoConfig.for_model("bert" if config.get("model_type") == "dpr" else config["model_type"])
            fields = {name: value for name, value in config.items() if hasattr(known, name) and name != "model_type"}
            return type(known)(**fields | {"architectures": None})
    words, hidden = tensors["embeddings.word_embeddings.weight"].shape
    layers = {name.split(".")[2] for name in tensors if name.startswith("encoder.layer.")}
    (inner, places, types) = take(
        tensors,
        (
            "encoder.layer.0.intermediate.dense.weight",
            "embeddings.position_embeddings.weight",
            "embeddings.token_type_embeddings.weight",
        ),
        folder,
    )
    return BertConfig(
        vocab_size=words,
        hidden_size=hidden,
        num_hidden_layers=len(layers),
        num_attention_heads=max(1, hidden // HEAD_WIDTH),
        intermediate_size=len(inner),
        max_position_embeddings=len(places),
        type_vocab_size=len(types),
    )


def load_halves(path: Path, source: str, documents: str | Path | None, changes: Mapping[str, Any]) -> SentenceTransformer:
    """Load a DPR from its two folders, question encoder and passage encoder."""
    passages = str(documents or source.replace("question_encoder", "ctx_encoder"))
    other = find_base(passages) if passages != source else None
    if other is None or not is_dpr_half(other) or not is_dpr_half(path):
        raise BadModel(
            f"{source} and {passages if passages != source else 'no other'} are not the two encoders of a DPR; expected the "
            "question encoder, and the passage encoder as `documents`"
        )
    both = {"name": Path(source).name.replace("question_encoder-", ""), "source": source}
    fields = DPR | DPR_LENGTHS | both
    halves = (("question_encoder.", path, source), ("ctx_encoder.", other, passages))
    query, document = (
        tower(half(folder, prefix), prefix, "dpr", None, folder, name, fields, changes) for prefix, folder, name in halves
    )
    return assemble(query, document)


def half(folder: Path, prefix: str) -> dict[str, Tensor]:
    """The tensors of one of the two encoders."""
    file = weights_file(folder)
    tensors = read_tensors(file, (prefix,))
    if not tensors:
        raise BadModel(f"{file} has no tensors {prefix}…; expected the question encoder first, then the passage encoder")
    return tensors


def load_file(file: Path, source: str, changes: Mapping[str, Any]) -> tuple[Stack, Stack | None]:
    """Load a file with tensors in `model_dict` and encoder settings in `encoder_params`."""
    content = read_tensors(file)
    tensors, settings = content.get("model_dict"), content.get("encoder_params") or {}
    if not isinstance(tensors, Mapping):
        raise BadModel(f"{file} holds {sorted(content)[:5]}; expected model_dict, as DPR and vsearch save it, or a folder")
    if {"encoder_q", "encoder_p"} <= settings.keys():
        return vsearch_stacks(tensors, settings, file.parent, source, changes)
    longest = settings.get("sequence_length") or 256
    fields = DPR | {"max_query_tokens": longest, "max_doc_tokens": longest}
    named = {with_encoder(name): tensor for name, tensor in tensors.items()}
    base = settings.get("pretrained_model_cfg")
    query, document = (
        tower(named, prefix, "dpr", base, file.parent, source, fields, changes) for prefix in ("question_model.", "ctx_model.")
    )
    return query, document


def with_encoder(name: str) -> str:
    """Rename a tensor of DPR's older files as in the later ones, with `bert_model.` before the encoder's names."""
    side, _, rest = name.partition(".")
    return name if rest.startswith("encode_proj.") else f"{side}.bert_model.{rest}"

"""`Source`: the parts of a folder to export, a plain encoder or one with trained heads."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from trilens.encode.folder import TOKENIZER_FILE
from trilens.errors import BadModel
from trilens.export.checkpoint import read_json

MODULES = "modules.json"
ROUTER = "router_config.json"
LICENCES = ("LICENSE", "LICENSE.txt", "LICENCE", "NOTICE")
BACKBONES = {"Transformer", "Backbone"}
SETTINGS = "config_sentence_transformers.json"
PROMPTS = {"query_prefix": ("query",), "doc_prefix": ("document", "passage", "corpus")}
"""Prompt names of sentence-transformers for queries and documents."""
DOT = ("dot", "dot_score")
POOLINGS: dict[Literal["mean", "cls"], str] = {"cls": "pooling_mode_cls_token", "mean": "pooling_mode_mean_tokens"}


@dataclass(frozen=True)
class Source:
    """An encoder: the folders of its backbone and of its trained heads, and its stored pooling, length and prefixes."""

    backbone: Path
    heads: Path | None = None
    pooling: Literal["mean", "cls"] | None = None
    longest: int | None = None
    normalised: bool = True
    query_prefix: str | None = None
    doc_prefix: str | None = None

    @property
    def tokenizer(self) -> Path:
        """The tokenizer file."""
        file = self.backbone / TOKENIZER_FILE
        if not file.is_file():
            raise BadModel(
                f"{file} is missing; expected a fast tokenizer: load it with transformers' AutoTokenizer and save it"
            )
        return file


@dataclass(frozen=True)
class Sources:
    """The document encoder, and the query encoder if it is a separate one."""

    doc: Source
    query: Source | None = None


def find_sources(folder: Path) -> Sources:
    """The encoders of a Hugging Face or sentence-transformers folder."""
    if not folder.is_dir():
        raise BadModel(f"there is no folder {folder}; expected one as transformers or sentence-transformers saves it")
    if not (folder / MODULES).is_file():
        return Sources(Source(folder))
    modules = [(last_name(module["type"]), folder / module["path"]) for module in read_modules(folder / MODULES)]
    if modules and modules[0][0] == "Router":
        return routes(modules[0][1])
    return Sources(from_modules(folder, modules))


def routes(folder: Path) -> Sources:
    """The two towers of a model with separate weights for queries and documents."""
    config = read_json(folder / ROUTER)
    types, structure = config.get("types", {}), config.get("structure", {})
    if set(structure) != {"query", "document"}:
        raise BadModel(f"{folder / ROUTER} has the routes {sorted(structure)}; expected query and document")
    doc, query = (
        from_modules(folder, [(last_name(types[name]), folder / name) for name in structure[route]])
        for route in ("document", "query")
    )
    return Sources(doc, None if doc == query else query)


def from_modules(folder: Path, modules: list[tuple[str, Path]]) -> Source:
    """The encoder of a stack of sentence-transformers modules."""
    backbone = heads = pooling = None
    for kind, path in modules:
        if kind in BACKBONES:
            backbone = path
        elif kind == "Heads":
            heads = path
        elif kind == "Pooling":
            pooling = read_pooling(path / "config.json")
        elif kind != "Normalize":
            raise BadModel(f"{folder} has a module {kind}, which cannot be exported; expected Transformer, Pooling, Normalize")
    if backbone is None:
        raise BadModel(f"{folder} has the modules {[kind for kind, _ in modules]}; expected a Transformer among them")
    length = backbone / "sentence_bert_config.json"
    longest = read_json(length).get("max_seq_length") if length.is_file() else None
    normalised = heads is not None or normalises(folder, [kind for kind, _ in modules])
    return Source(backbone, heads, pooling, longest, normalised, **prompts_of(folder))


def normalises(folder: Path, kinds: list[str]) -> bool:
    """Whether vectors have unit length: by a module, or because they are compared by the cosine and not by the product."""
    file = folder / SETTINGS
    return "Normalize" in kinds or not file.is_file() or read_json(file).get("similarity_fn_name") not in DOT


def prompts_of(folder: Path) -> dict[str, str]:
    """The query and document prefixes stored in a sentence-transformers model."""
    file = folder / SETTINGS
    saved = (read_json(file).get("prompts") if file.is_file() else None) or {}
    prefixes = {field: next((saved[name] for name in names if saved.get(name)), None) for field, names in PROMPTS.items()}
    return {field: prefix for field, prefix in prefixes.items() if prefix}


def read_modules(file: Path) -> list[dict[str, Any]]:
    """The modules of a sentence-transformers folder, in order."""
    try:
        modules = json.loads(file.read_text(encoding="utf-8"))
        ordered: list[dict[str, Any]] = sorted(modules, key=lambda module: module["idx"])
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise BadModel(f"{file} cannot be read ({error}); expected a list of modules with type and path: restore it") from error
    return ordered


def read_pooling(file: Path) -> Literal["mean", "cls"]:
    """The pooling mode of a published model."""
    config = read_json(file)
    modes = [mode for mode in POOLINGS if config.get("pooling_mode") == mode or config.get(POOLINGS[mode])]
    if len(modes) != 1:
        raise BadModel(f"{file} has a pooling mode that cannot be exported; expected either cls or mean")
    return modes[0]


def last_name(dotted: str) -> str:
    """The class name of a dotted path."""
    return dotted.rsplit(".", 1)[-1]


def read_tokenizer(source: Source) -> dict[str, Any]:
    """The tokenizer without stored padding and truncation."""
    return read_json(source.tokenizer) | {"truncation": None, "padding": None}


def copy_texts(source: Source, folder: Path) -> None:
    """Write the tokenizer and the licences of a source into a model folder."""
    tokenizer = json.dumps(read_tokenizer(source), ensure_ascii=False, separators=(",", ":"))
    (folder / TOKENIZER_FILE).write_text(tokenizer + "\n", encoding="utf-8")
    copy_licences(source.backbone, folder)


def copy_licences(source: Path, folder: Path) -> None:
    """Copy the licences of a checkpoint."""
    for name in LICENCES:
        if (source / name).is_file():
            shutil.copyfile(source / name, folder / name)

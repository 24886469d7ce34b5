"""`Source`: what kind of folder is given, a plain encoder or one with trained heads, and where its parts lie."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from trilens.encode.folder import TOKENIZER_FILE
from trilens.errors import BadModel
from trilens.export.checkpoint import read_json

MODULES = "modules.json"
ROUTER = "router_config.json"
BACKBONES = {"Transformer", "Backbone"}
HARMLESS = {"Normalize"}  # dense vectors get length 1 in any case
POOLINGS: dict[Literal["mean", "cls"], str] = {"cls": "pooling_mode_cls_token", "mean": "pooling_mode_mean_tokens"}


@dataclass(frozen=True)
class Source:
    """One encoder: the folder of its backbone, that of its trained heads, and what it says of pooling and length."""

    backbone: Path
    heads: Path | None = None
    pooling: Literal["mean", "cls"] | None = None
    longest: int | None = None

    @property
    def tokenizer(self) -> Path:
        """The file of the tokenizer."""
        file = self.backbone / TOKENIZER_FILE
        if not file.is_file():
            raise BadModel(
                f"{file} is missing; expected a fast tokenizer: load it with transformers' AutoTokenizer and save it"
            )
        return file


@dataclass(frozen=True)
class Sources:
    """The encoder of documents, and that of queries where it is another."""

    doc: Source
    query: Source | None = None


def find_sources(folder: Path) -> Sources:
    """What a Hugging Face or sentence-transformers folder holds."""
    if not folder.is_dir():
        raise BadModel(f"there is no folder {folder}; expected one as transformers or sentence-transformers saves it")
    if not (folder / MODULES).is_file():
        return Sources(Source(folder))
    modules = [(last_name(module["type"]), folder / module["path"]) for module in read_modules(folder / MODULES)]
    if modules and modules[0][0] == "Router":
        return routes(modules[0][1])
    return Sources(from_modules(folder, modules))


def routes(folder: Path) -> Sources:
    """The two towers of a model that reads queries and documents with different weights."""
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
    """One stack of sentence-transformers modules."""
    backbone = heads = pooling = None
    for kind, path in modules:
        if kind in BACKBONES:
            backbone = path
        elif kind == "Heads":
            heads = path
        elif kind == "Pooling":
            pooling = read_pooling(path / "config.json")
        elif kind not in HARMLESS:
            raise BadModel(f"{folder} has a module {kind}, which cannot be exported; expected Transformer, Pooling, Normalize")
    if backbone is None:
        raise BadModel(f"{folder} has the modules {[kind for kind, _ in modules]}; expected a Transformer among them")
    length = backbone / "sentence_bert_config.json"
    longest = read_json(length).get("max_seq_length") if length.is_file() else None
    return Source(backbone, heads, pooling, longest)


def read_modules(file: Path) -> list[dict[str, Any]]:
    """The modules that a sentence-transformers folder is put together from."""
    try:
        modules = json.loads(file.read_text(encoding="utf-8"))
        ordered: list[dict[str, Any]] = sorted(modules, key=lambda module: module["idx"])
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise BadModel(f"{file} cannot be read ({error}); expected a list of modules with type and path: restore it") from error
    return ordered


def read_pooling(file: Path) -> Literal["mean", "cls"]:
    """How the token states of a published model become one vector."""
    config = read_json(file)
    modes = [mode for mode in POOLINGS if config.get("pooling_mode") == mode or config.get(POOLINGS[mode])]
    if len(modes) != 1:
        raise BadModel(f"{file} asks for a pooling that cannot be exported; expected either cls or mean")
    return modes[0]


def last_name(dotted: str) -> str:
    """The class in a dotted path."""
    return dotted.rsplit(".", 1)[-1]

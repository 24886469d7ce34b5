"""The command `models`: the models that `--model` accepts by name."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from trilens.cli.options import Json
from trilens.cli.render import out, print_json, printable
from trilens.encode.cross_folder import CrossFolder
from trilens.encode.folder import CONFIG_FILE, CROSS_ENCODER, ModelConfig, ModelFolder, is_cross_encoder
from trilens.encode.models import bundled_models, cached_models, model_cache
from trilens.errors import BadModel
from trilens.store.config import DEFAULT_MODEL


def models(
    path: Annotated[bool, typer.Option("--path", help="Print the folder of cached models.")] = False,
    json: Json = False,
) -> None:
    """List the bundled models and the model folders in the user's cache.

    `--model` accepts the name of an encoder, or the path of a model folder; `--cross-encoder` that of a cross-encoder.

    Examples:

      trilens models

      trilens export runs/dpr/model "$(trilens models --path)/mine"

      trilens index docs/ --to my.trilens --model mine
    """
    if path:
        sys.stdout.write(f"{model_cache()}\n")
        return
    bundled = bundled_models()
    listed = [_facts(name, folder, "bundled") for name, folder in bundled.items()]
    for name, folder in cached_models().items():
        try:
            listed.append(_facts(name, folder, "hidden by the bundled one" if name in bundled else "cached"))
        except BadModel as error:
            sys.stderr.write(f"left out: {error}\n")
    if json:
        print_json({"models": listed, "cache": str(model_cache())})
    else:
        _print_models(listed)


def _facts(name: str, folder: Path, where: str) -> dict[str, Any]:
    crosses = is_cross_encoder((folder / CONFIG_FILE).read_bytes())
    model = CrossFolder.open(folder) if crosses else ModelFolder.open(folder)
    config = model.config
    return {
        "name": name,
        "where": where,
        "default": name == DEFAULT_MODEL and where == "bundled",
        "kind": CROSS_ENCODER if crosses else "encoder",
        "heads": config.dims if isinstance(config, ModelConfig) else {},
        "precision": config.precision,
        "longest_text": config.max_doc_tokens if isinstance(config, ModelConfig) else config.max_tokens,
        "bytes": sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()),
        "licence": config.licence,
        "source": config.source,
        "fingerprint": model.fingerprint,
        "path": str(folder),
    }


def _print_models(models: list[dict[str, Any]]) -> None:
    table = Table("model", "heads and their dimensions", "size", "licence")
    for model in models:
        where = f"{model['where']}, default" if model["default"] else model["where"]
        heads = ", ".join(f"{head} {dim:,}" for head, dim in model["heads"].items()) or model["kind"]
        size = f"{model['bytes'] / 1e6:.1f} MB, {model['precision']}"
        name = Text.assemble(printable(model["name"]), "\n", (where, "dim"), overflow="fold")
        table.add_row(name, heads, size, Text(printable(model["licence"])))
    out().print(table)

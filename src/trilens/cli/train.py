"""The command `train`."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from trilens.cli.progress import progress_bar
from trilens.errors import BadInput


def train(
    recipe: Annotated[
        Path,
        typer.Argument(metavar="RECIPE", help="Recipe, a YAML file; the folder recipes/ of the repository has one per method."),
    ],
    to: Annotated[Path | None, typer.Option("--to", metavar="FOLDER", help="Folder of the run. Default: runs/NAME.")] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the recipe. Can be repeated.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")] = False,
) -> None:
    """Train a model. An interrupted run resumes from its last checkpoint.

    Examples:

        trilens train recipes/dpr.yaml

        trilens train recipes/vdr.yaml --set run.steps=50 --set model.backbone=/models/gte-small --to runs/short

        torchrun --nproc-per-node 2 -m trilens train recipes/dpr.yaml
    """
    try:
        from trilens.train.recipe import read_recipe
        from trilens.train.run import train
    except ImportError as error:
        raise BadInput(
            f"training needs additional packages ({error.name} is missing): run `pip install 'trilens[train]'`"
        ) from error
    settings = read_recipe(recipe, changes or [])
    with progress_bar(f"training {settings.name}", settings.run.steps, "steps") as advance:
        done = 0

        def report(step: int, values: dict[str, float]) -> None:
            nonlocal done
            advance(step - done)
            done = step

        result = train(settings, to or Path("runs") / settings.name, report)
    if as_json:
        sys.stdout.write(
            json.dumps({"name": result.name, "model": result.model, "before": result.before, "after": result.after}) + "\n"
        )
        return
    Console().print(_table(result))
    sys.stdout.write(f"The model is in {result.model}; run `trilens export {result.model} FOLDER` to use it for search.\n")


def _table(result: Any) -> Table:
    table = Table(title=f"{result.name}: {result.steps} steps, {result.seconds:.0f} s")
    for name in ("head", "measure", "before", "after"):
        table.add_column(name, justify="left" if name in ("head", "measure") else "right")
    for name, value in result.before.items():
        head, measure = name.split(":")
        table.add_row(head, measure, f"{value:.4f}", f"{result.after[name]:.4f}")
    return table

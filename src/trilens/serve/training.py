"""`trilens train`: a run from a recipe."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from trilens.errors import BadInput
from trilens.serve.progress import counting


def train_command(
    recipe: Annotated[Path, typer.Argument(help="YAML file; recipes/ in the repository has one for each method.")],
    to: Annotated[Path | None, typer.Option("--to", help="Folder of the run; runs/NAME if not given.")] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a key of the recipe; may be given often.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write the result as JSON to standard output.")] = False,
) -> None:
    """Train a model; a run that was stopped goes on where its last checkpoint is.

    Examples:

        trilens train recipes/dpr.yaml

        trilens train recipes/vdr.yaml --set run.steps=50 --set model.backbone=/models/gte-small --to runs/short

        torchrun --nproc-per-node 2 -m trilens train recipes/dpr.yaml
    """
    try:
        from trilens.train.recipe import read_recipe
        from trilens.train.run import train
    except ImportError as error:
        raise BadInput(f"training needs more packages ({error.name} is missing): pip install 'trilens[train]'") from error
    chosen = read_recipe(recipe, changes or [])
    with counting(f"training {chosen.name}", chosen.run.steps, "steps") as advance:
        done = 0

        def report(step: int, values: dict[str, float]) -> None:
            nonlocal done
            advance(step - done)
            done = step

        result = train(chosen, to or Path("runs") / chosen.name, report)
    if as_json:
        sys.stdout.write(
            json.dumps({"name": result.name, "model": result.model, "before": result.before, "after": result.after}) + "\n"
        )
        return
    Console().print(_table(result))
    sys.stdout.write(f"The model is in {result.model}; `trilens export {result.model} FOLDER` makes it searchable.\n")


def _table(result: Any) -> Table:
    table = Table(title=f"{result.name}: {result.steps} steps, {result.seconds:.0f} s")
    for name in ("head", "measure", "before", "after"):
        table.add_column(name, justify="left" if name in ("head", "measure") else "right")
    for name, value in result.before.items():
        head, measure = name.split(":")
        table.add_row(head, measure, f"{value:.4f}", f"{result.after[name]:.4f}")
    return table

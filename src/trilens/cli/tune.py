"""The command `tune`."""

import re
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.console import Console
from rich.table import Table

from trilens.cli.datasets import dataset_of
from trilens.cli.options import CollectionPath, Json, Lens, Threads, lens_names
from trilens.cli.progress import progress_bar
from trilens.cli.render import out, print_json
from trilens.collection import Collection
from trilens.datasets.dataset import Dataset
from trilens.errors import BadInput
from trilens.evaluate.tuning import FEWEST, Tuning, TuningSet
from trilens.evaluate.tuning import tune as tune_fusion
from trilens.search.fusion import POLICIES, Policy

UNTUNED = {"rrf": "rrf, untuned", "model": "fusion of the model"}
SPLIT_SUFFIX = re.compile(r":[^:/\\]+$")  # not the colon of a drive letter, which a path follows


def tune(
    path: CollectionPath,
    data: Annotated[
        str,
        typer.Argument(metavar="DATASET", help="Judged queries: a dataset folder, beir/NAME or irds/ID.", show_default=False),
    ],
    split: Annotated[str, typer.Option(metavar="NAME", help="Split of the judged queries; the test split is refused.")] = "dev",
    lens: Lens = None,
    measure: Annotated[str, typer.Option(metavar="NAME", help="Measure to maximise.")] = "nDCG@10",
    policy: Annotated[str, typer.Option(metavar="NAME[,NAME]", help="Fusion policies to try.")] = ",".join(POLICIES),
    depth: Annotated[int, typer.Option(min=1, metavar="N", help="Documents per lens and query.")] = 100,
    most: Annotated[
        int | None,
        typer.Option(min=FEWEST, metavar="N", help="Sample at most N queries of each dataset.", show_default=False),
    ] = None,
    also: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLLECTION=DATASET[:SPLIT]",
            help="Also tune on another collection, for weights that transfer between domains; SPLIT defaults to --split. "
            "Can be repeated.",
            show_default=False,
        ),
    ] = None,
    save: Annotated[
        bool, typer.Option("--save", help="Store the best fusion as the default of COLLECTION for these lenses.")
    ] = False,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Tune the fusion weights of lenses on judged queries that are not the test split.

    "unseen" is the measure on held-out queries (five-fold cross-validation). If it is much lower than "chosen on", or the
    weights of the folds differ, there are too few queries.

    Examples:

      trilens tune my.trilens data/nfcorpus --split dev

      trilens tune my.trilens data/nfcorpus --lens bm25,dense --policy zscore --measure AP --save

      trilens tune my.trilens data/nfcorpus --also faq.trilens=data/faq:train --most 300
    """
    policies = cast(list[Policy], [name.strip() for name in policy.split(",") if name.strip()])
    sources = [(path, dataset_of(data), split), *(_other_source(text, split) for text in also or [])]
    with ExitStack() as collections:
        judged = [
            TuningSet(collections.enter_context(Collection.open(folder, threads=threads)), dataset, name)
            for folder, dataset, name in sources
        ]
        collection = judged[0].collection
        lenses = lens_names(lens) or collection.lenses
        with progress_bar("searching", None, "queries") as advance:
            tuning = tune_fusion(judged, lenses, measure, policies, depth, most, advance)
        if save:
            collection.save_tuned(lenses, tuning.record())
    for warning in tuning.warnings:
        typer.echo(f"warning: {warning}", err=True)
    if json:
        print_json(_to_json(tuning, save))
    else:
        _print(tuning, save, out())


def _other_source(text: str, split: str) -> tuple[Path, Dataset, str]:
    """Parse COLLECTION=DATASET[:SPLIT]."""
    collection, equals, data = text.partition("=")
    if not (collection and equals and data):
        raise BadInput(
            f"--also is {text!r}; expected COLLECTION=DATASET or COLLECTION=DATASET:SPLIT, such as a.trilens=data/a:dev"
        )
    if SPLIT_SUFFIX.search(data) and not Path(data).exists():
        data, _, split = data.rpartition(":")
    return Path(collection), dataset_of(data), split


def _to_json(tuning: Tuning, saved: bool) -> dict[str, Any]:
    return {
        "dataset": tuning.dataset,
        "split": tuning.split,
        "measure": tuning.measure,
        "queries": tuning.queries,
        "lenses": tuning.lenses,
        "baselines": tuning.baselines,
        "results": [
            {
                "fusion": str(result.fusion),
                "chosen_on": result.chosen_on,
                "unseen": result.unseen,
                "folds": [str(fold) for fold in result.folds],
            }
            for result in tuning.results
        ],
        "best": str(tuning.best.fusion),
        "warnings": tuning.warnings,
        "saved": saved,
    }


def _print(tuning: Tuning, saved: bool, console: Console) -> None:
    table = Table(
        title=f"{tuning.dataset}, {tuning.split}: {tuning.measure} over {tuning.queries} queries", title_justify="left"
    )
    table.add_column("fusion")
    table.add_column("chosen on", justify="right")
    table.add_column("unseen", justify="right")
    table.add_column("weights of the folds")
    for name, value in tuning.baselines.items():
        table.add_row(UNTUNED.get(name, f"{name} alone"), "", f"{value:.4f}", "")
    for result in tuning.results:
        folds = "; ".join("/".join(f"{fold.weights[name]:.2f}" for name in tuning.lenses) for fold in result.folds)
        table.add_row(str(result.fusion), f"{result.chosen_on:.4f}", f"{result.unseen:.4f}", folds)
    console.print(table)
    note = "saved as the default for these lenses" if saved else "not saved: pass --save"
    console.print(f"best: {tuning.best.fusion} ({note})")

"""The tune command: weights of a fusion from judged queries."""

import re
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.console import Console
from rich.table import Table

from trilens.collection import Collection
from trilens.errors import BadInput
from trilens.evaluate.tuning import FEWEST, POLICIES, Asked, Tuning, tune
from trilens.search.fusion import Policy
from trilens.serve.judged_corpus import opened
from trilens.serve.options import CollectionPath, Json, Lens, Threads, lens_names
from trilens.serve.progress import counting
from trilens.serve.render import out, print_json
from trilens.text.dataset import Dataset

SPLIT_NAMED = re.compile(r":[^:/\\]+$")  # a folder of another drive has a colon, too, but what follows it is a path


def tune_command(
    path: CollectionPath,
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="Queries and judgements: a folder, or beir/NAME.", show_default=False)
    ],
    split: Annotated[str, typer.Option(help="Which judged queries; never the test split.")] = "dev",
    lens: Lens = None,
    measure: Annotated[str, typer.Option(help="What is to be as high as possible.")] = "nDCG@10",
    policy: Annotated[
        str, typer.Option(metavar="NAME[,NAME]", help="Policies to try: zscore, minmax, rrf, weighted.")
    ] = ",".join(POLICIES),
    depth: Annotated[int, typer.Option(min=1, metavar="N", help="Documents that each lens returns.")] = 100,
    most: Annotated[
        int | None,
        typer.Option(min=FEWEST, metavar="N", help="Draw so many queries of each where there are more.", show_default=False),
    ] = None,
    also: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLLECTION=DATA[:SPLIT]",
            help="Tune on another collection, too, so that weights hold for more than one kind of text; without SPLIT on the "
            "same as --split. Can be repeated.",
            show_default=False,
        ),
    ] = None,
    save: Annotated[bool, typer.Option("--save", help="Let searches of COLLECTION with these lenses use it.")] = False,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Find the weights with which lenses are fused best, on judged queries that are not the test split.

    "unseen" is what the weights are worth on queries that they were not chosen on (five-fold cross-validation); if it is much
    lower than "chosen on", or the folds disagree, there are too few queries for the choice.

    Examples:

      trilens tune my.trilens data/nfcorpus --split dev

      trilens tune my.trilens data/nfcorpus --lens bm25,dense --policy zscore --measure AP --save

      trilens tune my.trilens data/nfcorpus --also faq.trilens=data/faq:train --most 300
    """
    policies = cast(list[Policy], [name.strip() for name in policy.split(",") if name.strip()])
    asked = [(path, opened(data), split), *(_another(given, split) for given in also or [])]
    with ExitStack() as collections:
        judged = [
            Asked(collections.enter_context(Collection.open(folder, threads=threads)), dataset, name)
            for folder, dataset, name in asked
        ]
        collection = judged[0].collection
        lenses = lens_names(lens) or collection.lenses
        with counting("searching", None, "queries") as advance:
            found = tune(judged, lenses, measure, policies, depth, most, advance)
        if save:
            collection.save_tuned(lenses, found.record())
    for warning in found.warnings:
        typer.echo(f"warning: {warning}", err=True)
    if json:
        print_json(_to_json(found, save))
    else:
        _print(found, save, out())


def _another(given: str, split: str) -> tuple[Path, Dataset, str]:
    """A collection with judged queries of its own, from COLLECTION=DATA[:SPLIT]."""
    collection, equals, data = given.partition("=")
    if not (collection and equals and data):
        raise BadInput(f"--also is {given!r}; expected COLLECTION=DATA or COLLECTION=DATA:SPLIT, such as a.trilens=data/a:dev")
    if SPLIT_NAMED.search(data) and not Path(data).exists():
        data, _, split = data.rpartition(":")
    return Path(collection), opened(data), split


def _to_json(found: Tuning, saved: bool) -> dict[str, Any]:
    return {
        "dataset": found.dataset,
        "split": found.split,
        "measure": found.measure,
        "queries": found.queries,
        "lenses": found.lenses,
        "baselines": found.baselines,
        "results": [
            {
                "fusion": str(result.fusion),
                "chosen_on": result.chosen_on,
                "unseen": result.unseen,
                "folds": [str(fold) for fold in result.folds],
            }
            for result in found.results
        ],
        "best": str(found.best.fusion),
        "warnings": found.warnings,
        "saved": saved,
    }


def _print(found: Tuning, saved: bool, console: Console) -> None:
    table = Table(title=f"{found.dataset}, {found.split}: {found.measure} over {found.queries} queries", title_justify="left")
    table.add_column("fusion")
    table.add_column("chosen on", justify="right")
    table.add_column("unseen", justify="right")
    table.add_column("weights of the folds")
    for name, value in found.baselines.items():
        table.add_row(f"{name} alone" if name != "rrf" else "rrf, nothing chosen", "", f"{value:.4f}", "")
    for result in found.results:
        folds = "; ".join("/".join(f"{fold.weights[name]:.2f}" for name in found.lenses) for fold in result.folds)
        table.add_row(str(result.fusion), f"{result.chosen_on:.4f}", f"{result.unseen:.4f}", folds)
    console.print(table)
    kept = "saved: searches through these lenses use it" if saved else "not saved: give --save"
    console.print(f"best: {found.best.fusion} ({kept})")

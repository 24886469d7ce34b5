"""The command `analyse`."""

from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table

from trilens.cli.datasets import dataset_of
from trilens.cli.options import CollectionPath, Json, Threads
from trilens.cli.progress import progress_bar
from trilens.cli.render import out, print_json
from trilens.collection import Collection
from trilens.datasets.dataset import judged_queries
from trilens.evaluate.token_retrieval import analyse as analyse_tokens


def analyse(
    path: CollectionPath,
    data: Annotated[
        str,
        typer.Argument(metavar="DATASET", help="Judged queries: a dataset folder, beir/NAME or irds/ID.", show_default=False),
    ],
    split: Annotated[str, typer.Option(metavar="NAME", help="Split of the judged queries.")] = "test",
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Analyse which tokens the multi lens retrieves for judged queries, and what scoring them costs (the analyses of XTR).

    Example:

      trilens analyse runs/scifact/multi.trilens data/scifact
    """
    dataset = dataset_of(data)
    queries, qrels = judged_queries(dataset, split)
    with (
        Collection.open(path, threads=threads) as collection,
        progress_bar("analysing", len(queries), "queries") as advance,
    ):
        results = [asdict(result) for result in analyse_tokens(collection, queries, qrels, report=advance)]
    if json:
        print_json({"dataset": dataset.name, "results": results})
        return
    table = Table(title=f"{dataset.name}, {split}: tokens retrieved per query token", title_justify="left")
    for name in results[0]:
        table.add_column(name.replace("_", " "), justify="right")
    for row in results:
        table.add_row(*(f"{value:,.3g}" if isinstance(value, float) else f"{value:,}" for value in row.values()))
    out().print(table)

"""The eval command."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from trilens.collection import Collection
from trilens.evaluate.evaluation import LensResult, evaluate
from trilens.evaluate.runs import write_trec
from trilens.serve.options import Json, Lens, Threads, lens_names
from trilens.serve.progress import counting
from trilens.serve.render import out, print_json
from trilens.store.catalog import FILE_NAME
from trilens.text.beir import Beir
from trilens.text.readers import read, survey


def evaluate_command(
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="A BEIR folder: corpus.jsonl, queries.jsonl, qrels/.", show_default=False),
    ],
    lens: Lens = None,
    split: Annotated[str, typer.Option(help="Which judgements: the name of a file in qrels/.")] = "test",
    to: Annotated[
        Path | None,
        typer.Option(
            "--to", metavar="FOLDER", help="Where runs and the collection go.  [default: runs/NAME]", show_default=False
        ),
    ] = None,
    model: Annotated[str | None, typer.Option(help="Bundled model or model folder.", show_default=False)] = None,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Measure lenses on a judged collection and write their TREC runs.

    The corpus is indexed once and kept, so that the next evaluation starts at once.

    Examples:

      trilens eval data/scifact

      trilens eval data/nfcorpus --split dev --lens bm25 --json
    """
    dataset = Beir(folder)
    names = lens_names(lens)
    queries = dataset.queries(split)  # before the corpus is encoded: errors must not come after an hour
    target = to or Path("runs") / dataset.name
    with _collection(dataset, target, names, model, threads) as collection:
        chosen = names or collection.lenses
        with counting("searching", len(queries) * len(chosen), "queries") as advance:
            results = evaluate(collection, dataset, split, chosen, advance)
    for result in results:
        write_trec(result.run, target / f"{split}.{result.lens}.trec", f"trilens-{result.lens}")
    if json:
        print_json({"dataset": dataset.name, "results": [_row(result) for result in results]})
    else:
        _print(dataset.name, split, len(queries), results, target)


def _collection(dataset: Beir, target: Path, names: list[str] | None, model: str | None, threads: int | None) -> Collection:
    """The corpus as a collection: the one of last time brought up to date, or a new one."""
    lenses = f"{'+'.join(sorted(names))}" if names else "all"
    path = target / f"{lenses}{'.' + Path(model).name if model else ''}.trilens"
    documents = survey([dataset.corpus_path]).documents
    if (path / FILE_NAME).exists():
        collection = Collection.open(path, threads=threads)
    else:
        options: dict[str, Any] = {"lenses": names} if names else {}
        if model:
            options["model"] = model
        collection = Collection.create(path, threads=threads, **options)
    with counting("indexing", documents, "docs") as advance:
        collection.ingest(read([dataset.corpus_path]), advance)
    return collection


def _row(result: LensResult) -> dict[str, Any]:
    return {
        "lens": result.lens,
        **{name: round(value, 6) for name, value in result.measures.items()},
        "ms_per_query": round(result.ms_per_query, 4),
    }


def _print(name: str, split: str, queries: int, results: list[LensResult], target: Path) -> None:
    table = Table(title=f"{name}, {split}: {queries} queries", title_justify="left")
    rows = [_row(result) for result in results]
    for column in rows[0]:
        table.add_column(column, justify="left" if column == "lens" else "right")
    for row in rows:
        table.add_row(*(value if isinstance(value, str) else f"{value:.4f}" for value in row.values()))
    console = out()
    console.print(table)
    console.print(f"runs are in {target}", style="dim")

"""The eval command."""

import re
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from trilens.collection import Collection
from trilens.errors import BadInput
from trilens.evaluate.evaluation import LensResult, evaluate
from trilens.evaluate.report import evaluation_page, gather
from trilens.evaluate.runs import write_trec
from trilens.evaluate.variants import parse_variant
from trilens.serve.options import Json, Lens, Threads, lens_names
from trilens.serve.progress import counting
from trilens.serve.render import out, print_json, write_page
from trilens.store.catalog import FILE_NAME
from trilens.text.beir import Beir
from trilens.text.readers import read, survey


def evaluate_command(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="FOLDER...", help="BEIR folders: corpus.jsonl, queries.jsonl, qrels/.", show_default=False),
    ],
    lens: Lens = None,
    split: Annotated[str, typer.Option(help="Which judgements: the name of a file in qrels/.")] = "test",
    to: Annotated[
        Path | None,
        typer.Option(
            "--to", metavar="FOLDER", help="Where runs and the collection go.  [default: runs/NAME]", show_default=False
        ),
    ] = None,
    variant: Annotated[
        list[str] | None,
        typer.Option(
            "--variant",
            metavar="TEXT",
            help="One more way to search: a lens with settings, such as multi:method=xtr,probes=64 or sparse:query=bag, or a "
            "fusion, such as rrf or zscore:bm25=1,dense=2. May be given again.",
            show_default=False,
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE", help="Write a page for people into this file.", show_default=False),
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

      trilens eval data/cranfield data/cacm --report report.html

      trilens eval data/cranfield --lens bm25,dense,multi --variant rrf --variant multi:method=exact --report report.html
    """
    datasets = _datasets(folders, split)  # before any corpus is encoded: errors must not come after an hour
    if report and not report.parent.is_dir():
        raise BadInput(f"there is no folder {report.parent} for the report; make it first")
    names = lens_names(lens)
    evaluated = []
    for dataset in datasets:
        target = (to if len(datasets) == 1 else to and to / dataset.name) or Path("runs") / dataset.name
        queries = dataset.queries(split)
        with _collection(dataset, target, names, model, threads) as collection:
            chosen = _chosen(names or collection.lenses, variant or [], collection.lenses)
            with counting("searching", len(queries) * len(chosen), "queries") as advance:
                results = evaluate(collection, dataset, split, chosen, advance)
            if report:
                with counting("explaining", None, "examples") as advance:
                    evaluated.append(gather(collection, dataset, split, results, advance))
        for result in results:
            write_trec(result.run, target / f"{split}.{_file_name(result.lens)}.trec", f"trilens-{_file_name(result.lens)}")
        if json:
            print_json({"dataset": dataset.name, "results": [_row(result) for result in results]})
        else:
            _print(dataset.name, split, len(queries), results, target)
    if report:
        write_page(report, evaluation_page(evaluated))
        if not json:
            out().print(f"the report is {report}", style="dim")


def _datasets(folders: list[Path], split: str) -> list[Beir]:
    found = [Beir(folder) for folder in folders]
    for dataset in found:
        dataset.queries(split)
    if doubled := [name for name, count in Counter(dataset.name for dataset in found).items() if count > 1]:
        raise BadInput(f"two folders are called {doubled[0]}; expected different names, which results are kept under")
    return found


def _chosen(lenses: list[str], variants: list[str], present: list[str]) -> list[str]:
    """The lenses and then the variants, each once and of lenses that are there."""
    chosen = [*lenses, *variants]
    if doubled := [name for name, count in Counter(map(_file_name, chosen)).items() if count > 1]:
        raise BadInput(f"two runs would be called {doubled[0]!r}; expected every lens and variant once")
    for text in variants:
        parse_variant(text, present)
    return chosen


def _file_name(variant: str) -> str:
    """What every file system takes."""
    return re.sub(r"[^\w.+=-]", "_", variant)


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

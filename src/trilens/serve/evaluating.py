"""The eval command."""

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.table import Table

from trilens.errors import BadInput
from trilens.evaluate.datasets import choose_split, open_dataset
from trilens.evaluate.evaluation import LensResult, Task, evaluate
from trilens.evaluate.groups import GROUPINGS, require_grouping
from trilens.evaluate.measures import ANSWERED, JUDGED, Hit, choose_measures
from trilens.evaluate.report import evaluation_page, gather
from trilens.evaluate.runs import make_folder, require_plain_ids, write_trec
from trilens.evaluate.soundness import Soundness, examine
from trilens.evaluate.variants import Variant, parse_variant
from trilens.serve.judged_corpus import corpus_collection, downloading
from trilens.serve.options import Json, LensToMake, Threads, comma_list, lens_names
from trilens.serve.progress import counting
from trilens.serve.render import out, print_json, require_page, write_page
from trilens.store.config import DEFAULT_LENSES
from trilens.text.answers import AnswerKind
from trilens.text.dataset import Dataset, Split, in_languages


def evaluate_command(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="DATASET...",
            help="Folders in the layout of BEIR, DPR, TREC, MIRACL, MKQA or MLDR; beir/NAME to download it; or a corpus, with "
            "--queries.",
            show_default=False,
        ),
    ],
    lens: LensToMake = None,
    variant: Annotated[
        list[str] | None,
        typer.Option(
            "--variant",
            "--fusion",
            metavar="TEXT",
            help="One more way to search: a fusion, such as rrf or zscore:bm25=1,dense=2, or a lens with settings, such as "
            "multi:method=xtr,probes=64 or sparse:query=bag. May be given again.",
            show_default=False,
        ),
    ] = None,
    split: Annotated[str | None, typer.Option(help="Which queries.", show_default="test, or the only one there is")] = None,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="May be given again: any of ir-measures, and Hit@k for answers.",
            show_default=f"{', '.join(JUDGED)}; for answers {', '.join(ANSWERED)}",
        ),
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Measures for groups of queries as well: language (of the query), length (of the relevant documents, in "
            "words). May be given again.",
            show_default=False,
        ),
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(help="Queries: JSONL, JSON, TSV, CSV with answers as DPR has it, or TREC topics.", show_default=False),
    ] = None,
    qrels: Annotated[Path | None, typer.Option(help="Their judgements, in three or four columns.", show_default=False)] = None,
    answers: Annotated[str, typer.Option(help="What answers are: string (DPR's rule) or regex.")] = "string",
    lang: Annotated[
        str | None,
        typer.Option(
            metavar="CODE[,CODE]",
            help="Only queries in these languages; also chooses the corpus where there is one for each.",
            show_default=False,
        ),
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(help="BM25: language of stemming and stop words, or none.", show_default="english"),
    ] = None,
    depth: Annotated[int, typer.Option(min=1, metavar="N", help="Documents that a search returns.")] = 100,
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="FOLDER", help="Where the collection goes.", show_default="runs/NAME"),
    ] = None,
    runs: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Where TREC runs go.", show_default="beside the collection"),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE", help="Write a page for people into this file.", show_default=False),
    ] = None,
    model: Annotated[str | None, typer.Option(help="Bundled model or model folder.", show_default=False)] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Stop where a warning would be printed.")] = False,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Measure lenses and fusions on queries whose answers are known, and write their TREC runs.

    The corpus is indexed once and kept, so that the next evaluation starts at once. Means are over all queries; one that finds
    nothing counts as zero. What is odd about the data is counted and told: queries without judgements, judged documents that
    are not in the corpus.

    Examples:

      trilens eval beir/scifact

      trilens eval data/nfcorpus --split dev --lens bm25 --measure nDCG@10 --measure P@5 --json

      trilens eval data/scifact --lens bm25,dense --fusion rrf --fusion zscore:bm25=1,dense=2

      trilens eval data/cranfield data/cacm --lens bm25,dense,multi --variant multi:method=exact --report report.html

      trilens eval data/xquad-r/all --by language

      trilens eval miracl/ --lang sw --split dev --by length

      trilens eval psgs_w100.tsv --queries nq-test.qa.csv --measure Hit@20

      trilens eval docs/ --queries topics.301-450.txt --qrels qrels.txt --runs runs/
    """
    require_page(report)
    if runs:
        make_folder(runs)
    names, languages = lens_names(lens), comma_list("--lang", lang)
    chosen, options = names or list(DEFAULT_LENSES), _options(names, model, language)
    datasets = _datasets(sources, queries, qrels, languages)
    # Before any corpus is encoded: errors must not come after an hour.
    kind = _kind(answers)
    tasks = [Task(_split(dataset, split, languages), measure or [], kind, depth) for dataset in datasets]
    for task in tasks:
        require_plain_ids([*task.split.queries, *(doc_id for judged in task.split.qrels.values() for doc_id in judged)])
    measured = [choose_measures(task.measures, task.split) for task in tasks]
    groupings = [require_grouping(name, [task.split for task in tasks]) for name in by or []]
    variants = _variants(chosen, variant or [])
    if report and any(all(isinstance(measure, Hit) for measure in measures) for measures in measured):
        raise BadInput("a report compares by measures of judgements; expected one such as nDCG@10, or no --report")
    evaluated = []
    for dataset, task in zip(datasets, tasks, strict=True):
        target = (to if len(datasets) == 1 else to and to / dataset.name) or Path("runs") / dataset.name
        with corpus_collection(dataset, target, options, threads) as collection:
            sound = examine(task.split, collection)
            _tell(sound.lines(), strict)
            task.groups.update({grouping.name: grouping.labels(task.split, collection) for grouping in groupings})
            with counting("searching", len(task.split.queries) * len(variants), "queries") as advance:
                results = evaluate(collection, task, variants, advance)
            found_nothing = [line for result in results if (line := _nothing_found(result))]
            _tell(found_nothing, strict)
            if report:
                # What the comparison of the report says itself is not told twice.
                odd = [*replace(sound, nothing_relevant=0).lines(), *found_nothing]
                with counting("explaining", None, "examples") as advance:
                    evaluated.append(gather(collection, dataset.name, task.split, variants, results, odd, advance))
        if json:
            print_json(_to_json(dataset.name, task.split, sound, results))
        else:
            _print(dataset.name, task.split, results)
        _write_runs(results, task.split.name, (runs if len(datasets) == 1 else runs and runs / dataset.name) or target, json)
    if report:
        write_page(report, evaluation_page(evaluated))
        if not json:
            out().print(f"the report is {report}", style="dim")


def _datasets(sources: list[str], queries: Path | None, qrels: Path | None, languages: list[str] | None) -> list[Dataset]:
    if queries is not None and len(sources) > 1:
        raise BadInput(f"--queries is given with {len(sources)} corpora; expected one")
    language = languages[0] if languages else None
    found = [open_dataset(source, queries, qrels, language, downloading) for source in sources]
    if doubled := [name for name, count in Counter(dataset.name for dataset in found).items() if count > 1]:
        raise BadInput(f"two folders are called {doubled[0]}; expected different names, which results are kept under")
    return found


def _split(dataset: Dataset, said: str | None, languages: list[str] | None) -> Split:
    split = dataset.split(choose_split(dataset, said))
    return in_languages(split, languages) if languages else split


def _kind(answers: str) -> AnswerKind:
    if answers not in ("string", "regex"):
        raise BadInput(f"--answers is {answers!r}; expected string or regex")
    return cast(AnswerKind, answers)


def _options(names: list[str] | None, model: str | None, language: str | None) -> dict[str, Any]:
    """Of the collection, where they differ from the usual ones."""
    said = {"lenses": names, "model": model, "bm25": {"analysis": {"language": language}} if language else None}
    return {name: value for name, value in said.items() if value is not None}


def _variants(lenses: list[str], variants: list[str]) -> list[Variant]:
    """The lenses and then the variants, each once. A fusion that names no lenses is one of those that are measured."""
    if doubled := [name for name, count in Counter(map(_file_name, [*lenses, *variants])).items() if count > 1]:
        raise BadInput(f"two runs would be called {doubled[0]!r}; expected every lens and variant once")
    found = [parse_variant(text, lenses) for text in (*lenses, *variants)]
    for variant in found:
        if lacking := [name for name in variant.lenses if name not in lenses]:
            raise BadInput(f"variant {variant.name!r} needs the lens {lacking[0]}; expected it in --lens {','.join(lenses)}")
    return found


def _tell(lines: list[str], strict: bool) -> None:
    if lines and strict:
        raise BadInput(f"{lines[0]}; leave out --strict to measure all the same")
    for line in lines:
        typer.echo(f"warning: {line}", err=True)


def _nothing_found(result: LensResult) -> str:
    return f"{result.lens} found nothing for {result.nothing_found} queries: they count as zero" if result.nothing_found else ""


def _to_json(name: str, split: Split, sound: Soundness, results: list[LensResult]) -> dict[str, Any]:
    facts = {"dataset": name, "split": split.name, "queries": len(split.queries), "data": sound.counts()}
    return facts | {"results": [_row(result) | _groups(result) for result in results]}


def _row(result: LensResult) -> dict[str, Any]:
    return {"lens": result.lens, **_rounded(result.measures), "ms_per_query": round(result.ms_per_query, 4)}


def _groups(result: LensResult) -> dict[str, Any]:
    """What programs get besides a row."""
    groups = [
        {"by": group.by, "label": group.label, "queries": group.queries, **_rounded(group.measures)} for group in result.groups
    ]
    return {"nothing_found": result.nothing_found} | ({"groups": groups} if groups else {})


def _rounded(measures: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 6) for name, value in measures.items()}


def _print(name: str, split: Split, results: list[LensResult]) -> None:
    console = out()
    rows = [_row(result) for result in results]
    console.print(_table(f"{name}, {split.name}: {len(split.queries)} queries", rows))
    for by in dict.fromkeys(group.by for group in results[0].groups):
        grouped = [
            {by: group.label, "queries": str(group.queries), "lens": result.lens, **_rounded(group.measures)}
            for place, _ in enumerate(results[0].groups)
            for result in results
            if (group := result.groups[place]).by == by
        ]
        console.print(_table(f"by {GROUPINGS[by].title}", grouped))


def _table(title: str, rows: list[dict[str, Any]]) -> Table:
    table = Table(title=title, title_justify="left")
    columns = list(dict.fromkeys(name for row in rows for name in row))
    for column in columns:
        table.add_column(column, justify="left" if isinstance(rows[0].get(column), str) else "right")
    for row in rows:
        cells = (row.get(column, "") for column in columns)
        table.add_row(*(value if isinstance(value, str) else f"{value:.4f}" for value in cells))
    return table


def _write_runs(results: list[LensResult], split: str, folder: Path, quiet: bool) -> None:
    for result in results:
        name = _file_name(result.lens)
        write_trec(result.run, folder / f"{split}.{name}.trec", f"trilens-{name}")
    if not quiet:
        out().print(f"runs are in {folder}", style="dim")


def _file_name(variant: str) -> str:
    """What every file system takes."""
    return re.sub(r"[^\w.+=-]", "_", variant)

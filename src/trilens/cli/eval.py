"""The command `eval`."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.table import Table

from trilens.cli.datasets import downloading
from trilens.cli.options import Json, Language, LensToMake, Model, Threads, collection_options, comma_list, lens_names
from trilens.cli.progress import progress_bar
from trilens.cli.render import out, print_json, require_page, write_page
from trilens.datasets.answers import AnswerKind
from trilens.datasets.dataset import Dataset, Split, in_languages
from trilens.datasets.layouts import choose_split, open_dataset
from trilens.encode.folder import ModelFolder
from trilens.encode.models import resolve_model
from trilens.errors import BadInput
from trilens.evaluate.evaluation import LensResult, Task, evaluate
from trilens.evaluate.groups import GROUPINGS, require_grouping
from trilens.evaluate.judged_corpus import corpus_collection
from trilens.evaluate.measures import ANSWERED, JUDGED, HitMeasure, choose_measures
from trilens.evaluate.report import dataset_report, evaluation_page
from trilens.evaluate.runs import make_folder, require_plain_ids, write_trec
from trilens.evaluate.soundness import Soundness, examine
from trilens.evaluate.variants import Variant, parse_variant
from trilens.lenses.registry import lens_type, lenses_with, needed_heads
from trilens.store.config import DEFAULT_LENSES, DEFAULT_MODEL, default_lenses


def eval(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="DATASET...",
            help="Folders in the layout of BEIR, DPR, TREC, MIRACL, MKQA or MLDR; beir/NAME or irds/ID (of ir_datasets) "
            "to download; or a corpus, with --queries.",
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
            help="A search configuration to evaluate: a fusion, such as rrf or zscore:bm25=1,dense=2; a lens with parameters, "
            'such as multi:method=xtr,probes=64; or search options as JSON, such as rm3={"lenses": ["bm25"], "expand": "on"}. '
            "Can be repeated.",
            show_default=False,
        ),
    ] = None,
    split: Annotated[
        str | None, typer.Option(metavar="NAME", help="Split of the queries.", show_default="test, or the only split")
    ] = None,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A measure of ir-measures, or Hit@k for answers. Can be repeated.",
            show_default=f"{', '.join(JUDGED)}; for answers {', '.join(ANSWERED)}",
        ),
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Also report measures by group: language (of the query) or length (of the relevant documents, in words). "
            "Can be repeated.",
            show_default=False,
        ),
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Queries: JSONL, JSON, TSV, CSV with answers (DPR), or TREC topics.", show_default=False
        ),
    ] = None,
    qrels: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Judgements of --queries, in three or four columns.", show_default=False)
    ] = None,
    answers: Annotated[
        str, typer.Option(metavar="NAME", help="How answers are matched: string (as in DPR) or regex.")
    ] = "string",
    lang: Annotated[
        str | None,
        typer.Option(
            metavar="CODE[,CODE]",
            help="Only queries in these languages; also selects the corpus if each language has one.",
            show_default=False,
        ),
    ] = None,
    language: Language = None,
    depth: Annotated[int, typer.Option(min=1, metavar="N", help="Documents per query.")] = 100,
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="FOLDER", help="Folder of the collection.", show_default="runs/NAME"),
    ] = None,
    runs: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder of the TREC runs.", show_default="beside the collection"),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE", help="Write an HTML report.", show_default=False),
    ] = None,
    model: Model = None,
    strict: Annotated[bool, typer.Option("--strict", help="Treat warnings as errors.")] = False,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Evaluate lenses and fusions on judged queries, and write TREC runs.

    The corpus is indexed once and reused by later evaluations. Means are over all queries; a query without results counts as
    zero. Problems of the data are reported as warnings: queries without judgements, judged documents that are not in the
    corpus.

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
    described = ModelFolder.open(resolve_model(model or DEFAULT_MODEL)).config
    lenses = names or list(default_lenses(described.heads))
    options = collection_options(lens, model, language)
    if tuple(lenses) != DEFAULT_LENSES:
        options["lenses"] = lenses
    datasets = _datasets(sources, queries, qrels, languages)
    # All options are checked before a corpus is encoded, which may take hours.
    answer_kind = _answer_kind(answers)
    tasks = [Task(_split(dataset, split, languages), measure or [], answer_kind, depth) for dataset in datasets]
    for task in tasks:
        require_plain_ids([*task.split.queries, *(doc_id for judged in task.split.qrels.values() for doc_id in judged)])
    measured = [choose_measures(task.measures, task.split) for task in tasks]
    groupings = [require_grouping(name, [task.split for task in tasks]) for name in by or []]
    variants = _variants(lenses, variant or [], described.fusion)
    if report and any(all(isinstance(measure, HitMeasure) for measure in measures) for measures in measured):
        raise BadInput("--report needs a measure over judgements; pass --measure nDCG@10, or leave out --report")
    evaluated = []
    for dataset, task in zip(datasets, tasks, strict=True):
        target = (to if len(datasets) == 1 else to and to / dataset.name) or Path("runs") / dataset.name
        with corpus_collection(dataset, target, options, threads, progress_bar) as collection:
            sound = examine(task.split, collection)
            _warn(sound.lines(), strict)
            task.groups.update({grouping.name: grouping.labels(task.split, collection) for grouping in groupings})
            with progress_bar("searching", len(task.split.queries) * len(variants), "queries") as advance:
                results = evaluate(collection, task, variants, advance)
            empty_results = [line for result in results if (line := _nothing_found(result))]
            _warn(empty_results, strict)
            if report:
                # The comparison in the report states the queries without relevant documents itself.
                warnings = [*replace(sound, nothing_relevant=0).lines(), *empty_results]
                with progress_bar("explaining", None, "examples") as advance:
                    evaluated.append(dataset_report(collection, dataset.name, task.split, variants, results, warnings, advance))
        if json:
            print_json(_to_json(dataset.name, task.split, sound, results))
        else:
            _print(dataset.name, task.split, results)
        _write_runs(results, task.split.name, (runs if len(datasets) == 1 else runs and runs / dataset.name) or target, json)
    if report:
        write_page(report, evaluation_page(evaluated))
        if not json:
            out().print(f"report written to {report}", style="dim")


def _datasets(sources: list[str], queries: Path | None, qrels: Path | None, languages: list[str] | None) -> list[Dataset]:
    if queries is not None and len(sources) > 1:
        raise BadInput(f"--queries is given with {len(sources)} corpora; expected one corpus")
    language = languages[0] if languages else None
    datasets = [open_dataset(source, queries, qrels, language, downloading) for source in sources]
    if doubled := [name for name, count in Counter(dataset.name for dataset in datasets).items() if count > 1]:
        raise BadInput(f"two datasets are named {doubled[0]}; results are stored by name, so rename one of them")
    return datasets


def _split(dataset: Dataset, name: str | None, languages: list[str] | None) -> Split:
    split = dataset.split(choose_split(dataset, name))
    return in_languages(split, languages) if languages else split


def _answer_kind(answers: str) -> AnswerKind:
    if answers not in ("string", "regex"):
        raise BadInput(f"--answers is {answers!r}; expected string or regex")
    return cast(AnswerKind, answers)


def _late(name: str, lenses: list[str]) -> bool:
    """Whether a lens that is not indexed can re-rank with the model heads of these lenses."""
    return name in lenses_with("late") and set(lens_type(name).heads) <= set(needed_heads(lenses))


def _variants(lenses: list[str], variants: list[str], fusions: Mapping[str, str]) -> list[Variant]:
    """The lenses, then the variants. A fusion that names no lenses fuses all evaluated ones."""
    if doubled := [name for name, count in Counter(map(_file_name, [*lenses, *variants])).items() if count > 1]:
        raise BadInput(f"two runs would be called {doubled[0]!r}; expected each lens and variant once")
    parsed = [parse_variant(text, lenses, fusions) for text in (*lenses, *variants)]
    for variant in parsed:
        if lacking := [name for name in variant.used if name not in lenses and not _late(name, lenses)]:
            raise BadInput(f"variant {variant.name!r} needs the lens {lacking[0]}; expected it in --lens {','.join(lenses)}")
    return parsed


def _warn(lines: list[str], strict: bool) -> None:
    if lines and strict:
        raise BadInput(f"{lines[0]}; leave out --strict to evaluate anyway")
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
    """The fields that only the JSON output has."""
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
            for index, _ in enumerate(results[0].groups)
            for result in results
            if (group := result.groups[index]).by == by
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
    """The variant as a portable file name."""
    return re.sub(r"[^\w.+=-]", "_", variant)

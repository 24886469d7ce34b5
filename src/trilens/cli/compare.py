"""The command `compare`: significance tests between TREC runs."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trilens.cli.datasets import dataset_of
from trilens.cli.options import JUDGED_QUERIES, Json, Lens, Threads, lens_names
from trilens.cli.progress import progress_bar
from trilens.cli.render import out, print_json, printable, require_page, snippet, write_page
from trilens.collection import Collection
from trilens.datasets.dataset import judged_queries
from trilens.datasets.qrels import Qrels, read_qrels
from trilens.errors import BadInput
from trilens.evaluate.comparison import Comparison, require_judged
from trilens.evaluate.comparison import compare as compare_runs
from trilens.evaluate.examples import ExampleFinder, Explain, QueryExample, with_reasons
from trilens.evaluate.markdown import to_markdown
from trilens.evaluate.measures import JUDGED
from trilens.evaluate.pictures import comparison_picture
from trilens.evaluate.report import comparison_page
from trilens.evaluate.runs import read_trec
from trilens.evaluate.significance import SEED
from trilens.evaluate.verdict import method, notes, verdict
from trilens.text.files import COMPRESSIONS

SUFFIXES = (*COMPRESSIONS, ".trec", ".run", ".txt", ".tsv")
MOST_GAINS = 6


def compare(
    runs: Annotated[
        list[str],
        typer.Argument(metavar="RUN...", help="Two or more TREC run files, each FILE or NAME=FILE.", show_default=False),
    ],
    qrels: Annotated[
        Path | None,
        typer.Option(
            "--qrels",
            metavar="FILE",
            help="Judgements in the format of TREC (four columns) or BEIR (three).",
            show_default=False,
        ),
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option("--dataset", metavar="DATASET", help=JUDGED_QUERIES, show_default=False),
    ] = None,
    split: Annotated[str, typer.Option(metavar="NAME", help="Split of the dataset.")] = "test",
    measure: Annotated[
        list[str] | None,
        typer.Option(
            "--measure",
            metavar="NAME",
            help="A measure of ir-measures. Can be repeated; the first decides the ranking.",
            show_default=", ".join(JUDGED),
        ),
    ] = None,
    collection: Annotated[
        Path | None,
        typer.Option(
            "--collection", metavar="COLLECTION", help="A collection whose lenses explain the differences.", show_default=False
        ),
    ] = None,
    lens: Lens = None,
    examples: Annotated[int, typer.Option("--examples", metavar="N", min=0, help="Number of example queries.")] = 5,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the randomisation test and the bootstrap.")] = SEED,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Write Markdown tables.", show_default=False)] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write an HTML page.", show_default=False)] = None,
    png: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the comparison as a picture.", show_default=False)
    ] = None,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Compare runs over the same judged queries, with significance tests.

    Each pair of runs is compared by a paired randomisation test; p-values are corrected by Holm's method over all pairs and
    measures. Judged queries that a run lacks count as zero. With --collection, the queries with the largest differences are
    explained: the words by which each lens prefers the relevant document, or the document ranked above it.

    Examples:

      trilens compare runs/cranfield/test.bm25.trec runs/cranfield/test.dense.trec --dataset data/cranfield

      trilens compare ours=a.run theirs=b.run --qrels judged.qrels --measure nDCG@10 --measure R@100 --json

      trilens compare a.trec b.trec --dataset data/cranfield --collection my.trilens --html why.html --png why.png
    """
    require_page(markdown)
    require_page(html)
    judged, texts = _judgements(qrels, dataset, split)
    measures = measure or JUDGED
    require_judged(measures)
    files = _run_files(runs)
    with progress_bar("reading", len(files), "runs") as advance:
        trec_runs = {}
        for name, file in files.items():
            trec_runs[name] = read_trec(file)
            advance(1)
    compared = compare_runs(trec_runs, judged, measures, seed)
    query_examples = ExampleFinder(compared, trec_runs, judged, texts).largest_differences(examples)
    if collection:
        query_examples = _explained(query_examples, collection, lens_names(lens), texts, threads)
    title = f"Comparison of {', '.join(compared.ranking)}"
    if png:
        comparison_picture(compared, png)
    if markdown:
        write_page(markdown, to_markdown(compared, query_examples, title))
    if html:
        write_page(html, comparison_page(compared, query_examples, title))
    if json:
        print_json(compared.to_json() | {"seed": seed, "examples": [example.to_json() for example in query_examples]})
    else:
        _print(compared, query_examples, out())


def _judgements(qrels: Path | None, dataset: str | None, split: str) -> tuple[Qrels, Mapping[str, str]]:
    """The judgements of the file, else of the dataset; and the texts of the queries, as far as known."""
    if dataset is None:
        if qrels is None:
            raise BadInput("no judgements are given; give --qrels FILE or --dataset FOLDER")
        return read_qrels(qrels), {}
    data = dataset_of(dataset)
    if qrels is None:
        queries, judged = judged_queries(data, split)
        return judged, queries
    splits = (data.split(name).queries for name in data.splits())
    return read_qrels(qrels), {query_id: query.text for queries in splits for query_id, query in queries.items()}


def _run_files(runs: Sequence[str]) -> dict[str, Path]:
    """Run files by name: NAME=FILE, or the file name without its suffixes and without the split that `eval` prepends."""
    files: dict[str, Path] = {}
    unnamed = [run for run in runs if "=" not in run or Path(run).exists()]
    stems = dict(zip(unnamed, _without_split([_stem(Path(run)) for run in unnamed]), strict=True))
    for run in runs:
        name, _, file = run.partition("=")
        if run in stems:
            name, file = stems[run], run
        if not name.strip() or not file:
            raise BadInput(f"run {run!r} has no name or no file; expected FILE or NAME=FILE")
        if name in files:
            raise BadInput(f"{files[name]} and {file} would both be called {name!r}; name one of them: NAME={file}")
        files[name] = Path(file)
    if len(files) < 2:
        raise BadInput(f"got one run, {next(iter(files))}; expected two or more")
    return files


def _stem(file: Path) -> str:
    name = file.name
    while name.endswith(SUFFIXES):
        name = name[: name.rindex(".")]
    return name or file.name


def _without_split(names: list[str]) -> list[str]:
    """The names without a common split: test.bm25 and test.dense become bm25 and dense."""
    same_split = len(names) > 1 and all("." in name for name in names) and len({name.partition(".")[0] for name in names}) == 1
    return [name.partition(".")[2] for name in names] if same_split else names


def _explained(
    examples: Sequence[QueryExample], path: Path, names: list[str] | None, texts: Mapping[str, str], threads: int | None
) -> list[QueryExample]:
    if lacking := [example.query_id for example in examples if example.query_id not in texts]:
        raise BadInput(
            f"query {lacking[0]!r} cannot be explained because its text is not known; expected --dataset FOLDER with the texts "
            "of the queries"
        )
    with ExitStack() as stack:
        collection = stack.enter_context(Collection.open(path, threads=threads))
        advance = stack.enter_context(progress_bar("explaining", len(examples), "queries"))
        lenses: dict[str, Explain] = {name: partial(collection.explain, lenses=[name]) for name in names or collection.lenses}
        explained = []
        for example in examples:
            lacking = [
                doc_id for doc_id in (example.doc_id, example.rival) if doc_id and collection.snapshot.key(doc_id) is None
            ]
            if lacking:
                typer.echo(f"warning: {example.query_id} is not explained: {path} has no document {lacking[0]!r}", err=True)
            explained.append(example if lacking else with_reasons(example, lenses))
            advance(1)
    return explained


def _print(compared: Comparison, examples: Sequence[QueryExample], console: Console) -> None:
    console.print(_means(compared))
    console.print(_pairs(compared))
    console.print(Text(method(compared), style="dim"))
    for note in notes(compared):
        console.print(Text(f"note: {printable(note)}", style="yellow"))
    console.print()
    console.print(Text(printable(" ".join(verdict(compared))), style="bold"))
    if examples:
        console.print()
        console.print(_queries(compared, examples))
    for example in examples:
        _print_reasons(example, console)


def _means(compared: Comparison) -> Table:
    table = Table("run", title=f"{len(compared.queries):,} judged queries", title_justify="left")
    best = {measure: max(compared.mean(name, measure) for name in compared.names) for measure in compared.measures}
    for measure in compared.measures:
        table.add_column(measure, justify="right")
    for name in compared.ranking:
        cells = [(compared.mean(name, measure), best[measure]) for measure in compared.measures]
        table.add_row(Text(printable(name)), *(Text(f"{value:.4f}", "bold" if value == most else "") for value, most in cells))
    return table


def _pairs(compared: Comparison) -> Table:
    table = Table("measure", "difference", caption="* significant at 0.05", caption_justify="left")
    for name in ("mean", "95 % interval", "+/=/−", "p, Holm"):
        table.add_column(name, justify="right", no_wrap=True)
    for pair in compared.pairs:
        table.add_row(
            pair.measure,
            Text(printable(f"{pair.first} − {pair.second}")),
            f"{pair.difference:+.4f}",
            f"{pair.low:+.3f} … {pair.high:+.3f}",
            f"{pair.wins}/{pair.ties}/{pair.losses}",
            Text(f"{pair.p_holm:.4f}{'*' if pair.significant else ' '}", style="green" if pair.significant else ""),
        )
    return table


def _queries(compared: Comparison, examples: Sequence[QueryExample]) -> Table:
    title = f"largest differences: {compared.measures[0]} (rank of the relevant document)"
    table = Table("query", "", "relevant", title=title, title_justify="left")
    for name in compared.names:
        table.add_column(Text(printable(name)), justify="right")
    for example in examples:
        cells = [f"{example.values[name]:.3f} ({example.ranks[name] or '–'})" for name in compared.names]
        query = snippet(example.query or "", 60)
        table.add_row(Text(printable(example.query_id)), Text(query), Text(printable(example.doc_id)), *cells)
    return table


def _print_reasons(example: QueryExample, console: Console) -> None:
    if not example.reasons:
        return
    against = f" against {example.rival}, which {example.loser} put above it" if example.rival else ""
    console.print()
    console.print(Text(printable(f"{example.query_id}: {example.doc_id}{against}"), style="bold"))
    for reason in example.reasons:
        rival = f" : {reason.rival.score:.3f}" if reason.rival else ""
        line = Text(f"  {reason.lens} {reason.relevant.score:.3f}{rival}  ")
        for word, gain in reason.gains[:MOST_GAINS]:
            line.append(f" {printable(word)} {gain:+.3f} ", style="on dark_green" if gain > 0 else "on dark_red")
            line.append(" ")
        console.print(line)

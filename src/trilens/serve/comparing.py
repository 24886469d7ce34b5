"""The compare command: which of several runs is best, and whether that is more than luck."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trilens.collection import Collection
from trilens.errors import BadInput
from trilens.evaluate.comparison import Comparison, compare, require_judged
from trilens.evaluate.examples import Example, Explain, Finder, with_reasons
from trilens.evaluate.markdown import to_markdown
from trilens.evaluate.measures import JUDGED
from trilens.evaluate.pictures import comparison_picture
from trilens.evaluate.report import comparison_page
from trilens.evaluate.runs import read_trec
from trilens.evaluate.significance import SEED
from trilens.evaluate.verdict import method, notes, verdict
from trilens.serve.judged_corpus import opened
from trilens.serve.options import Json, Lens, Threads, lens_names
from trilens.serve.progress import counting
from trilens.serve.render import out, print_json, printable, require_page, snippet, write_page
from trilens.text.dataset import judged_queries
from trilens.text.qrels import Qrels, read_qrels

ENDINGS = (".gz", ".xz", ".bz2", ".trec", ".run", ".txt", ".tsv")
MOST_GAINS = 6


def compare_command(
    runs: Annotated[
        list[str],
        typer.Argument(metavar="RUN...", help="TREC run files, or NAME=FILE; two or more.", show_default=False),
    ],
    qrels: Annotated[
        Path | None,
        typer.Option("--qrels", metavar="FILE", help="Judgements: TREC's four columns, or BEIR's three.", show_default=False),
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option("--dataset", metavar="DATA", help="Judged queries: a folder, or beir/NAME.", show_default=False),
    ] = None,
    split: Annotated[str, typer.Option(help="Which queries of the dataset.")] = "test",
    measure: Annotated[
        list[str] | None,
        typer.Option(
            "--measure",
            metavar="NAME",
            help="May be given again; verdicts are about the first.",
            show_default=", ".join(JUDGED),
        ),
    ] = None,
    collection: Annotated[
        Path | None,
        typer.Option("--collection", metavar="FOLDER", help="Explain by its lenses why queries differ.", show_default=False),
    ] = None,
    lens: Lens = None,
    examples: Annotated[int, typer.Option("--examples", metavar="N", min=0, help="How many queries are shown.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Of the randomisation test and the bootstrap.")] = SEED,
    markdown: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write tables into this file.", show_default=False)
    ] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page into this file.", show_default=False)] = None,
    png: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw it into this file.", show_default=False)] = None,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Compare runs over the same judged queries: which is best, by how much, and is that more than luck.

    Every two runs are put to a paired randomisation test; p-values are corrected by Holm's method over all pairs and measures.
    Judged queries that a run lacks count as zero. With --collection, the queries that differ most are explained: the words for
    which each lens prefers the relevant document, or the one that stood above it.

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
    files = _named(runs)
    with counting("reading", len(files), "runs") as advance:
        read = {}
        for name, file in files.items():
            read[name] = read_trec(file)
            advance(1)
    compared = compare(read, judged, measures, seed)
    found = Finder(compared, read, judged, texts).largest_differences(examples)
    if collection:
        found = _explained(found, collection, lens_names(lens), texts, threads)
    title = f"Comparison of {', '.join(compared.ranking)}"
    if png:
        comparison_picture(compared, png)
    if markdown:
        write_page(markdown, to_markdown(compared, found, title))
    if html:
        write_page(html, comparison_page(compared, found, title))
    if json:
        print_json(compared.to_json() | {"seed": seed, "examples": [example.to_json() for example in found]})
    else:
        _print(compared, found, out())


def _judgements(qrels: Path | None, dataset: str | None, split: str) -> tuple[Qrels, Mapping[str, str]]:
    """Those of the file, else those of the folder; and the texts of queries as far as they are known."""
    if dataset is None:
        if qrels is None:
            raise BadInput("there are no judgements to compare by; give --qrels FILE or --dataset FOLDER")
        return read_qrels(qrels), {}
    data = opened(dataset)
    if qrels is None:
        queries, judged = judged_queries(data, split)
        return judged, queries
    every = (data.split(name).queries for name in data.splits())
    return read_qrels(qrels), {query_id: query.text for queries in every for query_id, query in queries.items()}


def _named(given: Sequence[str]) -> dict[str, Path]:
    """Runs by name: NAME=FILE, or the file's name without its endings and without the split that `eval` puts before them."""
    found: dict[str, Path] = {}
    plain = [one for one in given if "=" not in one or Path(one).exists()]
    stems = dict(zip(plain, _without_split([_stem(Path(one)) for one in plain]), strict=True))
    for one in given:
        name, _, file = one.partition("=")
        if one in stems:
            name, file = stems[one], one
        if not name.strip() or not file:
            raise BadInput(f"run {one!r} has no name or no file; expected FILE or NAME=FILE")
        if name in found:
            raise BadInput(f"{found[name]} and {file} would both be called {name!r}; name one of them: NAME={file}")
        found[name] = Path(file)
    if len(found) < 2:
        raise BadInput(f"got one run, {next(iter(found))}; expected two or more to compare")
    return found


def _stem(file: Path) -> str:
    name = file.name
    while name.endswith(ENDINGS):
        name = name[: name.rindex(".")]
    return name or file.name


def _without_split(names: list[str]) -> list[str]:
    """test.bm25 and test.dense become bm25 and dense."""
    alike = len(names) > 1 and all("." in name for name in names) and len({name.partition(".")[0] for name in names}) == 1
    return [name.partition(".")[2] for name in names] if alike else names


def _explained(
    examples: Sequence[Example], path: Path, names: list[str] | None, texts: Mapping[str, str], threads: int | None
) -> list[Example]:
    if lacking := [example.query_id for example in examples if example.query_id not in texts]:
        raise BadInput(
            f"the text of query {lacking[0]!r} is not known, so that nothing can be explained; expected --dataset FOLDER with "
            "queries.jsonl of the same set"
        )
    with ExitStack() as stack:
        collection = stack.enter_context(Collection.open(path, threads=threads))
        advance = stack.enter_context(counting("explaining", len(examples), "queries"))
        lenses: dict[str, Explain] = {name: partial(collection.explain, lens=name) for name in names or collection.lenses}
        found = []
        for example in examples:
            lacking = [
                doc_id for doc_id in (example.doc_id, example.rival) if doc_id and collection.snapshot.key(doc_id) is None
            ]
            if lacking:
                typer.echo(f"warning: {example.query_id} is not explained: {path} has no document {lacking[0]!r}", err=True)
            found.append(example if lacking else with_reasons(example, lenses))
            advance(1)
    return found


def _print(compared: Comparison, examples: Sequence[Example], console: Console) -> None:
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
    table = Table("measure", "difference", caption="* significant: below 0.05", caption_justify="left")
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


def _queries(compared: Comparison, examples: Sequence[Example]) -> Table:
    title = f"the queries that differ most: {compared.measures[0]} (rank of the relevant document)"
    table = Table("query", "", "relevant", title=title, title_justify="left")
    for name in compared.names:
        table.add_column(Text(printable(name)), justify="right")
    for example in examples:
        cells = [f"{example.values[name]:.3f} ({example.ranks[name] or '–'})" for name in compared.names]
        query = snippet(example.query or "", 60)
        table.add_row(Text(printable(example.query_id)), Text(query), Text(printable(example.doc_id)), *cells)
    return table


def _print_reasons(example: Example, console: Console) -> None:
    if not example.whys:
        return
    against = f" against {example.rival}, which {example.loser} put above it" if example.rival else ""
    console.print()
    console.print(Text(printable(f"{example.query_id}: {example.doc_id}{against}"), style="bold"))
    for why in example.whys:
        line = Text(f"  {why.lens} {why.wanted.score:.3f}" + (f" : {why.rival.score:.3f}" if why.rival else "") + "  ")
        for word, gain in why.gains[:MOST_GAINS]:
            line.append(f" {printable(word)} {gain:+.3f} ", style="on dark_green" if gain > 0 else "on dark_red")
            line.append(" ")
        console.print(line)

"""The mine command."""

from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from trilens.errors import BadInput
from trilens.serve.options import Json, Threads
from trilens.serve.progress import counting
from trilens.serve.render import out as standard_output
from trilens.serve.render import print_json
from trilens.text.files import shown

if TYPE_CHECKING:
    from trilens.collection import Collection
    from trilens.train.data.builder import Report
    from trilens.train.data.examples import Examples
    from trilens.train.data.sources import AnySource
    from trilens.train.negatives.mine import MiningReport
    from trilens.train.negatives.scorers import Scorer

Format = Literal["triples", "dpr", "beir", "columns", "pairs"]


def mine_command(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Examples: a file, or a BEIR folder.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The JSONL file to be made.", show_default=False)],
    format: Annotated[
        Format | None,
        typer.Option("--format", help="What DATA is.", show_default="beir for a folder, dpr for a file"),
    ] = None,
    corpus: Annotated[Path | None, typer.Option(metavar="FILE", help="What passage ids stand for.", show_default=False)] = None,
    queries: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Triples: the texts of the queries.", show_default=False)
    ] = None,
    split: Annotated[str | None, typer.Option(help="BEIR: which judgements.", show_default="train")] = None,
    collection: Annotated[
        Path | None,
        typer.Option(metavar="COLLECTION", help="Search this one.", show_default="a temporary one of the data's passages"),
    ] = None,
    lens: Annotated[str, typer.Option("--lens", metavar="NAME", help="The lens that finds candidates.")] = "bm25",
    model: Annotated[
        str | None, typer.Option(help="Bundled model or model folder of the temporary collection.", show_default=False)
    ] = None,
    first: Annotated[int, typer.Option("--from", min=1, metavar="RANK", help="The first rank to look at.")] = 1,
    last: Annotated[int, typer.Option("--to", min=1, metavar="RANK", help="The last rank to look at.")] = 100,
    negatives: Annotated[int, typer.Option(min=1, metavar="N", help="How many negatives per example.")] = 8,
    random: Annotated[bool, typer.Option("--random", help="Any of those ranks, not the best of them.")] = False,
    answers: Annotated[bool, typer.Option("--answers", help="Drop passages that hold an answer string.")] = False,
    regex: Annotated[bool, typer.Option("--regex", help="Answers are regular expressions; with --answers.")] = False,
    near: Annotated[
        float, typer.Option(metavar="SHARE", help="Drop what shares so many runs of words with a positive; 0: keep.")
    ] = 0.8,
    cross_encoder: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="Score candidates with this model; its scores are kept.", show_default=False),
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="Score them with the dense vectors of this model instead.", show_default=False),
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Only what scores below the positive by this share of it.", show_default=False),
    ] = None,
    absolute_margin: Annotated[
        float | None, typer.Option(metavar="SCORE", help="Only what scores below the positive by so much.", show_default=False)
    ] = None,
    max_score: Annotated[float | None, typer.Option(metavar="SCORE", help="Drop what scores more.", show_default=False)] = None,
    min_score: Annotated[float | None, typer.Option(metavar="SCORE", help="Drop what scores less.", show_default=False)] = None,
    texts: Annotated[
        bool | None,
        typer.Option(
            "--texts/--ids",
            help="Write passages with their texts, or as ids of the corpus.",
            show_default="ids if there is a corpus",
        ),
    ] = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Report bad examples and go on, instead of stopping.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of --random.")] = 0,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Find hard negatives for training: passages that a lens ranks high and that are no answers.

    FILE has one line per example in DPR's format, with the scores for distillation if something scored. After an interruption
    the same command continues where it stopped.

    Examples:

      trilens mine data/nfcorpus --lens bm25 --from 10 --to 100 --out nfcorpus.jsonl

      trilens mine train.jsonl --format dpr --answers --negatives 4 --out mined.jsonl

      trilens mine train.dpr.jsonl --corpus corpus.jsonl --collection my.trilens --lens dense --random --out mined.jsonl

      trilens mine data/scifact --cross-encoder cross-encoder/ms-marco-MiniLM-L6-v2 --margin 0.05 --out scifact.jsonl
    """
    from trilens.train.data.sources import corpus_path, parse_source, read_examples
    from trilens.train.negatives.mine import MiningConfig, mine

    start = perf_counter()
    if regex and not answers:
        raise BadInput("--regex says what answers are, but they are not asked for; give --answers as well")
    rules = {"relative_margin": margin, "absolute_margin": absolute_margin, "max_score": max_score, "min_score": min_score}
    config = MiningConfig.of(
        lens=lens,
        first=first,
        last=last,
        negatives=negatives,
        sampling="random" if random else "top",
        answers=("regex" if regex else "string") if answers else None,
        near=near or None,
        rules=rules,
        seed=seed,
    )
    kind = format or ("beir" if data.is_dir() else "dpr")
    options = {"format": kind, "path": data, "skip_bad": skip_bad, "corpus": corpus, "queries": queries, "split": split}
    source = parse_source({name: value for name, value in options.items() if value is not None})
    if out.exists():
        raise BadInput(f"{shown(out)} exists already; expected a file to be made: remove it, or choose another name")
    scorer = _scorer(cross_encoder, encoder, threads, bool(config.rules))
    mixture = read_examples([source], seed)
    _warn(mixture.reports[0])
    with ExitStack() as stack:
        searched = _collection(stack, mixture.examples, collection, lens, model, threads)
        advance = stack.enter_context(counting("mining", len(mixture.examples), "examples"))
        with_texts = corpus_path(source) is None if texts is None else texts
        report = mine(mixture.examples, searched, config, out, scorer=scorer, texts=with_texts, progress=advance)
    _print(report, mixture.reports[0], source, out, with_texts, perf_counter() - start, json)


def _scorer(cross_encoder: str | None, encoder: str | None, threads: int | None, needed: bool) -> "Scorer | None":
    """Loaded before anything is read: a wrong name must not be said after an hour."""
    if cross_encoder and encoder:
        raise BadInput("both --cross-encoder and --encoder are given; expected one of them")
    if cross_encoder:
        from trilens.train.negatives.cross_encoder import CrossEncoderScorer

        return CrossEncoderScorer(cross_encoder)
    if encoder:
        from trilens.encode.models import resolve_model
        from trilens.encode.onnx import OnnxEncoder
        from trilens.train.negatives.scorers import EncoderScorer

        return EncoderScorer(OnnxEncoder(resolve_model(encoder), threads=threads, heads=("dense",)))
    if needed:
        raise BadInput("margins and bounds are on scores, but nothing scores; give --cross-encoder MODEL or --encoder MODEL")
    return None


def _collection(
    stack: ExitStack, examples: "Examples", path: Path | None, lens: str, model: str | None, threads: int | None
) -> "Collection":
    from trilens.collection import Collection
    from trilens.train.negatives.mine import corpus_collection

    if path is not None:
        if model is not None:
            raise BadInput("--model is for the temporary collection, but --collection is given; leave one of them out")
        return stack.enter_context(Collection.open(path, threads=threads))
    with counting("indexing", examples.passage_count, "docs") as advance:
        return stack.enter_context(corpus_collection(examples, lens, model, threads, advance))


def _warn(report: "Report") -> None:
    for message in report.messages:
        typer.echo(f"skipped: {message}", err=True)
    if report.skipped > len(report.messages):
        typer.echo(f"skipped: {report.skipped - len(report.messages):,} more bad examples", err=True)


def _print(
    found: "MiningReport", read: "Report", source: "AnySource", out: Path, texts: bool, seconds: float, json: bool
) -> None:
    if json:
        facts: dict[str, Any] = {**asdict(found), "skipped": read.skipped, "out": str(out), "seconds": round(seconds, 3)}
        print_json(facts)
        return
    from trilens.train.data.sources import corpus_path

    dropped = ", ".join(f"{count:,} {why}" for why, count in sorted(found.dropped.items())) or "none"
    console = standard_output()
    console.print(
        f"{found.negatives:,} negatives for {found.examples:,} examples in {seconds:.1f} s; {found.short:,} have fewer than "
        f"wanted; candidates dropped: {dropped}",
        soft_wrap=True,
    )
    if not texts:
        console.print(f"read it with corpus {corpus_path(source)}", style="dim", soft_wrap=True)

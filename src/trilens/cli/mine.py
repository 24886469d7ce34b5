"""The command `mine`."""

from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from trilens.cli.options import Json, Threads
from trilens.cli.progress import progress_bar
from trilens.cli.render import out as standard_output
from trilens.cli.render import print_json
from trilens.errors import BadInput
from trilens.text.files import shown

if TYPE_CHECKING:
    from trilens.collection import Collection
    from trilens.train.data.builder import SourceReport
    from trilens.train.data.examples import Examples
    from trilens.train.data.sources import AnySource
    from trilens.train.negatives.mine import MiningReport
    from trilens.train.negatives.scorers import Scorer

Format = Literal["triples", "dpr", "beir", "columns", "pairs"]


def mine(
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="Training examples: a file, or a BEIR folder.", show_default=False)
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="JSONL file to write.", show_default=False)],
    format: Annotated[
        Format | None,
        typer.Option("--format", help="Format of DATA.", show_default="beir for a folder, dpr for a file"),
    ] = None,
    corpus: Annotated[Path | None, typer.Option(metavar="FILE", help="Texts of the passage ids.", show_default=False)] = None,
    queries: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Texts of the queries, for triples.", show_default=False)
    ] = None,
    split: Annotated[str | None, typer.Option(metavar="NAME", help="Split of a BEIR folder.", show_default="train")] = None,
    collection: Annotated[
        Path | None,
        typer.Option(
            metavar="COLLECTION", help="Collection to search.", show_default="a temporary one with the passages of DATA"
        ),
    ] = None,
    lens: Annotated[str, typer.Option("--lens", metavar="NAME", help="Lens that retrieves candidates.")] = "bm25",
    model: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Model of the temporary collection.", show_default=False)
    ] = None,
    first: Annotated[int, typer.Option("--from", min=1, metavar="RANK", help="First candidate rank.")] = 1,
    last: Annotated[int, typer.Option("--to", min=1, metavar="RANK", help="Last candidate rank.")] = 100,
    negatives: Annotated[int, typer.Option(min=1, metavar="N", help="Negatives per example.")] = 8,
    random: Annotated[
        bool, typer.Option("--random", help="Sample from the candidates instead of taking the top ranks.")
    ] = False,
    answers: Annotated[bool, typer.Option("--answers", help="Drop passages that contain an answer.")] = False,
    regex: Annotated[bool, typer.Option("--regex", help="Match answers as regular expressions; requires --answers.")] = False,
    near: Annotated[
        float,
        typer.Option(metavar="SHARE", help="Drop near-duplicates of a positive: minimum share of common word n-grams; 0: off."),
    ] = 0.8,
    cross_encoder: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Score candidates with a cross-encoder, a model folder or one of sentence-transformers; the scores are "
            "written to FILE.",
            show_default=False,
        ),
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="Score candidates with the dense head of a model instead.", show_default=False),
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Keep candidates that score below the positive by at least this share of its score.",
            show_default=False,
        ),
    ] = None,
    absolute_margin: Annotated[
        float | None,
        typer.Option(
            metavar="SCORE", help="Keep candidates that score below the positive by at least this amount.", show_default=False
        ),
    ] = None,
    max_score: Annotated[
        float | None, typer.Option(metavar="SCORE", help="Drop candidates with a higher score.", show_default=False)
    ] = None,
    min_score: Annotated[
        float | None, typer.Option(metavar="SCORE", help="Drop candidates with a lower score.", show_default=False)
    ] = None,
    texts: Annotated[
        bool | None,
        typer.Option(
            "--texts/--ids",
            help="Write passages as texts, or as ids of the corpus.",
            show_default="ids if there is a corpus",
        ),
    ] = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Report and skip bad examples instead of failing.")] = False,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of --random.")] = 0,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Mine hard negatives for training: highly ranked passages that are not relevant.

    FILE gets one line per example in the format of DPR, with scores for distillation if a scorer is given. An interrupted run
    resumes when the same command is repeated.

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
        raise BadInput("--regex requires --answers")
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
        raise BadInput(f"{shown(out)} already exists; remove it, or choose another file")
    scorer = _scorer(cross_encoder, encoder, threads, bool(config.rules))
    mixture = read_examples([source], seed)
    _warn(mixture.reports[0])
    with ExitStack() as stack:
        searched = _collection(stack, mixture.examples, collection, lens, model, threads)
        advance = stack.enter_context(progress_bar("mining", len(mixture.examples), "examples"))
        with_texts = corpus_path(source) is None if texts is None else texts
        report = mine(mixture.examples, searched, config, out, scorer=scorer, texts=with_texts, progress=advance)
    _print(report, mixture.reports[0], source, out, with_texts, perf_counter() - start, json)


def _scorer(cross_encoder: str | None, encoder: str | None, threads: int | None, needed: bool) -> "Scorer | None":
    """The scorer of the candidates, loaded before the data, so that a wrong model name fails early."""
    if cross_encoder and encoder:
        raise BadInput("--cross-encoder and --encoder are both given; expected one of them")
    if cross_encoder:
        from trilens.train.negatives.cross_encoder import open_cross_encoder

        return open_cross_encoder(cross_encoder, threads)
    if encoder:
        from trilens.encode.models import resolve_model
        from trilens.encode.onnx import OnnxEncoder
        from trilens.train.negatives.scorers import EncoderScorer

        return EncoderScorer(OnnxEncoder(resolve_model(encoder), threads=threads, heads=("dense",)))
    if needed:
        raise BadInput("--margin, --max-score and --min-score need a scorer: pass --cross-encoder or --encoder")
    return None


def _collection(
    stack: ExitStack, examples: "Examples", path: Path | None, lens: str, model: str | None, threads: int | None
) -> "Collection":
    from trilens.collection import Collection
    from trilens.train.negatives.mine import corpus_collection

    if path is not None:
        if model is not None:
            raise BadInput("--model applies only to the temporary collection, but --collection is given; leave one of them out")
        return stack.enter_context(Collection.open(path, threads=threads))
    with progress_bar("indexing", examples.passage_count, "docs") as advance:
        return stack.enter_context(corpus_collection(examples, lens, model, threads, advance))


def _warn(report: "SourceReport") -> None:
    for message in report.messages:
        typer.echo(f"skipped: {message}", err=True)
    if report.skipped > len(report.messages):
        typer.echo(f"skipped: {report.skipped - len(report.messages):,} more bad examples", err=True)


def _print(
    mined: "MiningReport", read: "SourceReport", source: "AnySource", out: Path, texts: bool, seconds: float, json: bool
) -> None:
    if json:
        facts: dict[str, Any] = {**asdict(mined), "skipped": read.skipped, "out": str(out), "seconds": round(seconds, 3)}
        print_json(facts)
        return
    from trilens.train.data.sources import corpus_path

    dropped = ", ".join(f"{count:,} {why}" for why, count in sorted(mined.dropped.items())) or "none"
    console = standard_output()
    console.print(
        f"{mined.negatives:,} negatives for {mined.examples:,} examples in {seconds:.1f} s; {mined.short:,} have fewer than "
        f"requested; candidates dropped: {dropped}",
        soft_wrap=True,
    )
    if not texts:
        console.print(f"the passages are ids of {corpus_path(source)}", style="dim", soft_wrap=True)

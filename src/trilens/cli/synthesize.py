"""The command `synthesize`."""

import sys
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from trilens.cli.options import Json, Threads, lens_names
from trilens.cli.progress import progress_bar
from trilens.cli.render import out as standard_output
from trilens.cli.render import print_json

if TYPE_CHECKING:
    from trilens.train.synthesis.synthesize import Estimate


def synthesize(
    path: Annotated[Path, typer.Argument(metavar="COLLECTION", help="Collection whose passages are read.", show_default=False)],
    llm: Annotated[
        str,
        typer.Option(
            "--llm",
            metavar="URL",
            help="Language model: URL of an OpenAI-compatible API, such as http://localhost:8080/v1, or local:PATH with a "
            "folder of transformers or a GGUF file. The API key is read from TRILENS_LLM_KEY or OPENAI_API_KEY.",
            show_default=False,
        ),
    ],
    to: Annotated[Path, typer.Option("--to", metavar="FILE", help="JSONL file to write.", show_default=False)],
    model: Annotated[str, typer.Option("--llm-model", metavar="NAME", help="Model name for --llm.")] = "default",
    of: Annotated[
        Literal["passages", "documents"],
        typer.Option(help="Positive of a question: its passage, or the whole of its long document."),
    ] = "passages",
    questions: Annotated[int, typer.Option(min=1, max=20, metavar="N", help="Questions per passage.")] = 1,
    limit: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Number of random passages.", show_default="all")
    ] = None,
    found_in: Annotated[
        int,
        typer.Option(
            min=0, metavar="K", help="Keep questions whose passage is among the first K results of a search; 0 keeps all."
        ),
    ] = 10,
    lens: Annotated[
        str | None,
        typer.Option("--lens", metavar="NAMES", help="Lenses of that search.", show_default="those of `trilens search`"),
    ] = None,
    max_tokens: Annotated[int, typer.Option(min=1, metavar="N", help="Longest question, in tokens.")] = 64,
    max_characters: Annotated[int, typer.Option(min=1, metavar="N", help="Longest part of a passage that is shown.")] = 4000,
    parallel: Annotated[int, typer.Option(min=1, max=256, metavar="N", help="Requests at a time.")] = 4,
    timeout: Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="Time for one answer.")] = 60.0,
    patience: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="Time to wait for a service that is busy or fails.")
    ] = 600.0,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the choice of passages.")] = 0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the estimated cost only.")] = False,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Write questions for passages with a language model, as training data.

    A question is kept if a search of the collection finds its passage. The estimated cost is shown before the first request;
    an interrupted run is resumed by the same command. `trilens mine` adds hard negatives, `trilens train` reads the file.

    Examples:

      trilens synthesize my.trilens --llm http://localhost:8080/v1 --to pairs.jsonl --limit 1000

      trilens synthesize my.trilens --llm http://localhost:8080/v1 --to long.jsonl --of documents

      trilens synthesize my.trilens --llm local:SmolLM2.gguf --to pairs.jsonl --dry-run
    """
    from trilens.collection import Collection
    from trilens.language.model import LanguageModel
    from trilens.train.synthesis.synthesize import Synthesis, SynthesisConfig

    lenses = lens_names(lens)
    config = SynthesisConfig(
        of=of,
        questions=questions,
        limit=limit,
        found_in=found_in,
        lenses=None if lenses is None else tuple(lenses),
        max_tokens=max_tokens,
        max_characters=max_characters,
        seed=seed,
    )
    writer, start = LanguageModel(url=llm, model=model, timeout=timeout), perf_counter()
    with Collection.open(path, threads=threads) as collection:
        job = Synthesis(collection, writer, config)
        if dry_run:
            _print_estimate(job.estimate(), json)
            return
        with closing(job.journal(to)) as journal:
            sys.stderr.write(f"{_described(job.estimate(journal.counts.get('passages', 0)))}\n")
            with progress_bar("writing questions", len(job), "passages") as advance:
                report = job.run(journal, 1 if writer.path else parallel, patience, advance)
    if json:
        print_json({**asdict(report), "to": str(to), "seconds": round(perf_counter() - start, 3)})
        return
    standard_output().print(
        f"{to}: {report.kept:,} questions for {report.passages:,} passages in {perf_counter() - start:.1f} s; "
        f"{report.not_found:,} were dropped because a search did not find their passage; {report.silent:,} passages got none",
        markup=False,
        soft_wrap=True,
    )


def _described(estimate: "Estimate") -> str:
    return (
        f"{estimate.requests:,} requests with about {estimate.tokens_in:,} tokens, for at most {estimate.tokens_out:,} tokens "
        "of answers"
    )


def _print_estimate(estimate: "Estimate", json: bool) -> None:
    if json:
        print_json(asdict(estimate))
        return
    standard_output().print(_described(estimate), markup=False, soft_wrap=True)

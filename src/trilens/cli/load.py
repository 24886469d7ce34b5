"""The command `load`."""

from contextlib import ExitStack
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from trilens.cli.ingest import ingest, settings
from trilens.cli.options import Json, Language, LensConfig, LensToMake, Model, OverlapWords, PassageWords, Threads, To
from trilens.read.dump import read_dump
from trilens.read.readers import spool_stdin


def load(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="A file that `trilens dump` has written, or - for standard input.", show_default=False
        ),
    ],
    to: To,
    lens: LensToMake = None,
    model: Model = None,
    language: Language = None,
    config: LensConfig = None,
    passage_words: PassageWords = None,
    overlap_words: OverlapWords = None,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Add the documents of a dump to a collection, exactly as they were dumped.

    The dump is checked before the collection is changed. An interrupted run resumes when the same command is repeated.

    Examples:

      trilens load my.jsonl.gz --to copy.trilens

      trilens load my.jsonl.gz --to small.trilens --lens bm25
    """
    start = perf_counter()
    options = settings(to, lens, model, language, config, passage_words, overlap_words)
    with ExitStack() as stack:
        path = stack.enter_context(spool_stdin()) if file == "-" else Path(file)
        count = sum(1 for _ in read_dump(path))
        result = ingest(to, options, threads, read_dump(path), count)
    result.show(0, perf_counter() - start, json)

"""The command `index`."""

from contextlib import ExitStack
from time import perf_counter
from typing import Annotated

import typer

from trilens.cli.ingest import reads_vectors, settings
from trilens.cli.options import Json, Language, LensConfig, LensToMake, Model, OverlapWords, PassageWords, Threads, To
from trilens.cli.sync import Sync
from trilens.cli.watch import keep_watching, require_watchable
from trilens.read.ignore import Selection
from trilens.read.reader_table import built_in_formats
from trilens.read.readers import FILE, Fields, ReadOptions, spool_stdin


def index(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help=f"Files ({built_in_formats()}), folders, BEIR folders, or - for JSON Lines on standard input.",
            show_default=False,
        ),
    ],
    to: To,
    lens: LensToMake = None,
    model: Model = None,
    language: Language = None,
    config: LensConfig = None,
    passage_words: PassageWords = None,
    overlap_words: OverlapWords = None,
    id_field: Annotated[str | None, typer.Option(metavar="NAME", help="Field or column of the id.", show_default=False)] = None,
    text_field: Annotated[
        str | None, typer.Option(metavar="NAME", help="Field or column of the text.", show_default=False)
    ] = None,
    title_field: Annotated[
        str | None, typer.Option(metavar="NAME", help="Field or column of the title.", show_default=False)
    ] = None,
    vector_field: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Field of the term weights, for lenses that index given vectors.", show_default="vector"
        ),
    ] = None,
    id_prefix: Annotated[
        str,
        typer.Option(
            metavar="TEXT",
            help=f"Put before every id; {FILE} stands for the file that holds the records.",
            show_default=False,
        ),
    ] = "",
    include: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GLOB", help="Read only these files of folders, such as '*.md'. Can be repeated.", show_default=False
        ),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GLOB", help="Leave out these files and folders, such as 'drafts/'. Can be repeated.", show_default=False
        ),
    ] = None,
    strict: Annotated[
        bool | None,
        typer.Option(
            "--strict/--skip-bad",
            help="Fail at the first bad file or record, or report and skip them all.",
            show_default="skip in folders, fail in named files",
        ),
    ] = None,
    prune: Annotated[
        bool, typer.Option("--prune", help="Remove documents whose file or record is gone from these sources, or left out.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Keep running, and follow changes of the sources until interrupted.")
    ] = False,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Add documents to a collection, or update it from its sources.

    All input is checked before the collection is changed. Documents are committed every few seconds and unchanged ones are not
    encoded again, so an interrupted run resumes when the same command is repeated.

    Files that have not changed since the last run are not read. Files in folders that cannot be read are skipped and counted.

    Examples:

      trilens index docs/ --to my.trilens

      trilens index corpus.jsonl.gz --to my.trilens --lens bm25 --language german

      trilens index docs/ --to my.trilens --lens bm25,dense,multi --config multi:pool=2

      trilens index splade.jsonl --to my.trilens --lens external

      trilens index src/ --to my.trilens --include '*.md' --exclude 'drafts/' --strict

      trilens index docs/ --to my.trilens --prune --watch

      cat rows.jsonl | trilens index - --to my.trilens --id-field url --text-field body
    """
    start = perf_counter()
    options = settings(to, lens, model, language, config, passage_words, overlap_words)
    if reads_vectors(to, options):
        vector_field = vector_field or "vector"
    reading = ReadOptions(
        Fields(id=id_field, text=text_field, title=title_field, vector=vector_field),
        Selection(tuple(include or ()), tuple(exclude or ())),
        id_prefix,
    )
    if watch:
        require_watchable(sources)
    with ExitStack() as stack:
        paths = [str(stack.enter_context(spool_stdin())) if source == "-" else source for source in sources]
        sync = Sync(paths, to, options, reading, threads, strict, prune)
        result, skipped = sync.run()
        skipped.summarise()
        result.show(skipped.count, perf_counter() - start, json, skipped.details())
        if watch:
            keep_watching(sync, json)

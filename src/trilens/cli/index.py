"""The command `index`."""

import sys
from contextlib import ExitStack
from time import perf_counter
from typing import Annotated

import typer

from trilens.cli.ingest import ingest, reads_vectors, settings
from trilens.cli.options import Json, Language, LensConfig, LensToMake, Model, OverlapWords, PassageWords, Threads, To
from trilens.errors import BadInput
from trilens.read.reader_table import built_in_formats
from trilens.read.readers import Fields, read, spool_stdin, survey

MOST_MESSAGES = 20


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
    skip_bad: Annotated[
        bool,
        typer.Option("--skip-bad", help="Report and skip bad records instead of failing."),
    ] = False,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Add documents to a collection, or update it from its sources.

    All input is checked before the collection is changed. Documents are committed every few seconds and unchanged ones are not
    encoded again, so an interrupted run resumes when the same command is repeated.

    Examples:

      trilens index docs/ --to my.trilens

      trilens index corpus.jsonl.gz --to my.trilens --lens bm25 --language german

      trilens index docs/ --to my.trilens --lens bm25,dense,multi --config multi:pool=2

      trilens index splade.jsonl --to my.trilens --lens external

      cat rows.jsonl | trilens index - --to my.trilens --id-field url --text-field body
    """
    start = perf_counter()
    options = settings(to, lens, model, language, config, passage_words, overlap_words)
    if reads_vectors(to, options):
        vector_field = vector_field or "vector"
    fields = Fields(id=id_field, text=text_field, title=title_field, vector=vector_field)
    with ExitStack() as stack:
        paths = [str(stack.enter_context(spool_stdin())) if source == "-" else source for source in sources]
        skipped = _SkipReport()
        surveyed = survey(paths, fields, skipped if skip_bad else None)
        skipped.summarise()
        if not surveyed.documents:
            raise BadInput("no document could be read; expected at least one: see the messages above")
        documents = read(paths, fields, _ignore if skip_bad else None)
        result = ingest(to, options, threads, documents, surveyed.documents)
    result.show(skipped.count, perf_counter() - start, json)


class _SkipReport:
    """Counts skipped records and prints the first errors on standard error."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, error: BadInput) -> None:
        self.count += 1
        if self.count <= MOST_MESSAGES:
            sys.stderr.write(f"skipped: {error}\n")

    def summarise(self) -> None:
        """Print the number of errors that were not shown."""
        if self.count > MOST_MESSAGES:
            sys.stderr.write(f"skipped: {self.count - MOST_MESSAGES:,} more bad records\n")


def _ignore(error: BadInput) -> None:
    """Drop an error: `survey` has already reported it."""

"""The command `index`."""

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from trilens.cli.interrupts import Interrupted
from trilens.cli.options import Json, Language, LensToMake, Model, Threads, collection_options, lens_names
from trilens.cli.progress import progress_bar
from trilens.cli.render import out, print_json
from trilens.collection import Collection
from trilens.errors import BadInput
from trilens.lenses.registry import lens_type
from trilens.store.config import DEFAULT_LENSES, CollectionConfig
from trilens.store.schema import FILE_NAME
from trilens.store.writer import Changes
from trilens.text.reader_table import built_in_formats
from trilens.text.readers import Fields, read, spool_stdin, survey

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
    to: Annotated[
        Path,
        typer.Option(
            "--to", metavar="COLLECTION", help="Folder of the collection; created if it does not exist.", show_default=False
        ),
    ],
    lens: LensToMake = None,
    model: Model = None,
    language: Language = None,
    config: Annotated[
        list[str] | None,
        typer.Option(
            "--config",
            metavar="LENS:NAME=VALUE,…",
            help="Configuration of a lens, such as bm25:k1=1.2,b=0.75 or multi:bits=2,pool=2. Can be repeated.",
            show_default=False,
        ),
    ] = None,
    passage_words: Annotated[
        int | None, typer.Option(help="Words per passage; 0 disables splitting.", show_default="150")
    ] = None,
    overlap_words: Annotated[
        int | None, typer.Option(help="Overlap of adjacent passages, in words.", show_default="30")
    ] = None,
    id_field: Annotated[str | None, typer.Option(help="Field or column of the id.", show_default=False)] = None,
    text_field: Annotated[str | None, typer.Option(help="Field or column of the text.", show_default=False)] = None,
    title_field: Annotated[str | None, typer.Option(help="Field or column of the title.", show_default=False)] = None,
    vector_field: Annotated[
        str | None,
        typer.Option(help="Field of the term weights, for lenses that index given vectors.", show_default="vector"),
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
    present = _lenses_of(to)
    options = collection_options(lens, model, language, config, present)
    passages = {"words": passage_words, "overlap": overlap_words}
    if any(lens_type(name).reads == "vector" for name in lens_names(lens) or present):
        vector_field = vector_field or "vector"
        passages = {name: value or 0 for name, value in passages.items()}
    if passage_options := {name: value for name, value in passages.items() if value is not None}:
        options["passages"] = passage_options
    if not (to / FILE_NAME).exists():
        CollectionConfig.of(**options)  # mistakes are reported before the sources are read
    fields = Fields(id=id_field, text=text_field, title=title_field, vector=vector_field)
    with ExitStack() as stack:
        paths = [str(stack.enter_context(spool_stdin())) if source == "-" else source for source in sources]
        skipped = _SkipReport()
        surveyed = survey(paths, fields, skipped if skip_bad else None)
        skipped.summarise()
        if not surveyed.documents:
            raise BadInput("no document could be read; expected at least one: see the messages above")
        collection = stack.enter_context(Collection.open_or_create(to, threads=threads, **options))
        advance = stack.enter_context(progress_bar("indexing", surveyed.documents, "docs"))
        try:
            changes = collection.ingest(read(paths, fields, _ignore if skip_bad else None), advance)
        except KeyboardInterrupt as interrupt:
            collection.rollback()
            raise Interrupted(interrupt, f"{len(collection):,} documents are kept in {to}") from interrupt
        documents = len(collection)
        figures = collection.info()["figures"]
    _print_changes(changes, documents, skipped.count, perf_counter() - start, json)
    for lens_name, lens_figures in figures.items():
        if advice := lens_figures.get("advice"):
            typer.echo(f"{lens_name}: {advice}", err=True)


def _lenses_of(path: Path) -> Sequence[str]:
    """The lenses of an existing collection; the default ones of a new collection."""
    if not (path / FILE_NAME).exists():
        return DEFAULT_LENSES
    with Collection.open(path) as collection:
        return collection.lenses


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


def _print_changes(changes: Changes, documents: int, skipped: int, seconds: float, json: bool) -> None:
    if changes.truncated:
        sys.stderr.write(
            f"note: {changes.truncated:,} passages were truncated to the length limit of the model; use a smaller "
            "--passage-words to encode them in full\n"
        )
    if json:
        print_json({**asdict(changes), "skipped": skipped, "documents": documents, "seconds": round(seconds, 3)})
        return
    parts = [
        f"{count:,} {name}"
        for name, count in [*asdict(changes).items(), ("skipped", skipped)]
        if count and name not in ("truncated", "deleted")
    ]
    out().print(f"{', '.join(parts) or 'nothing to do'}; {documents:,} documents in {seconds:.1f} s")

"""The index command."""

import sys
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer

from trilens.collection import Collection
from trilens.errors import BadInput
from trilens.serve.options import Json, LensToMake, Threads, lens_names
from trilens.serve.progress import counting
from trilens.serve.render import out, print_json
from trilens.store.config import DEFAULT_MODEL
from trilens.store.schema import FILE_NAME
from trilens.store.writer import Changes
from trilens.text.readers import Fields, read, spool_stdin, survey

MOST_COMPLAINTS = 20


def index(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help="Files, folders, BEIR folders, or - for JSONL on standard input.",
            show_default=False,
        ),
    ],
    to: Annotated[
        Path,
        typer.Option(
            "--to", metavar="COLLECTION", help="Folder of the collection; made if it is not there.", show_default=False
        ),
    ],
    lens: LensToMake = None,
    model: Annotated[str | None, typer.Option(help="Bundled model or model folder.", show_default=DEFAULT_MODEL)] = None,
    language: Annotated[
        str | None,
        typer.Option(help="Language of stemming and stop words, or none.", show_default="english"),
    ] = None,
    k1: Annotated[
        float | None,
        typer.Option(help="BM25: how soon repeated words stop counting.", show_default="0.9"),
    ] = None,
    b: Annotated[float | None, typer.Option(help="BM25: how much long texts are held back.", show_default="0.4")] = None,
    passage_words: Annotated[
        int | None, typer.Option(help="Longest passage; 0 keeps documents whole.", show_default="150")
    ] = None,
    overlap_words: Annotated[int | None, typer.Option(help="Words shared by neighbouring passages.", show_default="30")] = None,
    bits: Annotated[int | None, typer.Option(help="Multi: 1, 2 or 4 bits per dimension of a token.", show_default="4")] = None,
    centroids: Annotated[
        int | None,
        typer.Option(help="Multi: how many centroids token vectors are coded by.", show_default="by size"),
    ] = None,
    pool: Annotated[int | None, typer.Option(help="Multi: one vector for so many tokens.", show_default="1")] = None,
    id_field: Annotated[str | None, typer.Option(help="Field or column that holds the id.", show_default=False)] = None,
    text_field: Annotated[str | None, typer.Option(help="Field or column that holds the text.", show_default=False)] = None,
    title_field: Annotated[str | None, typer.Option(help="Field or column that holds the title.", show_default=False)] = None,
    vector_field: Annotated[
        str | None,
        typer.Option(help="Lens vectors: the field of terms and weights.", show_default="vector"),
    ] = None,
    skip_bad: Annotated[
        bool,
        typer.Option("--skip-bad", help="Report bad records and go on, instead of stopping before the first change."),
    ] = False,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Add documents to a collection, or bring it up to date with its sources.

    Reads JSONL, JSON, CSV, TSV, text, Markdown and HTML. All input is checked before anything is changed. A document
    whose text has not changed costs nothing, so an interrupted run continues where it stopped: give the same command again.

    Examples:

      trilens index docs/ --to my.trilens

      trilens index corpus.jsonl.gz --to my.trilens --lens bm25 --language german

      trilens index docs/ --to my.trilens --lens bm25,dense,multi --pool 2

      trilens index splade.jsonl --to my.trilens --lens vectors

      cat rows.jsonl | trilens index - --to my.trilens --id-field url --text-field body
    """
    start = perf_counter()
    options = _collection_options(lens, model, language, k1, b, passage_words, overlap_words, bits, centroids, pool)
    if lens_names(lens) == ["vectors"]:
        vector_field = vector_field or "vector"
        options["passages"] = {"words": 0, "overlap": 0}
    fields = Fields(id=id_field, text=text_field, title=title_field, vector=vector_field)
    with ExitStack() as stack:
        paths = [str(stack.enter_context(spool_stdin())) if source == "-" else source for source in sources]
        complaints = _Complaints()
        found = survey(paths, fields, complaints if skip_bad else None)
        complaints.summarise()
        if not found.documents:
            raise BadInput("no document could be read; expected at least one: see the lines above")
        collection = stack.enter_context(_open_or_create(to, options, threads))
        advance = stack.enter_context(counting("indexing", found.documents, "docs"))
        changes = collection.ingest(read(paths, fields, _ignore if skip_bad else None), advance)
        documents = len(collection)
        figures = collection.info()["figures"]
    _print_changes(changes, documents, complaints.count, perf_counter() - start, json)
    for lens_name, found_figures in figures.items():
        if advice := found_figures.get("advice"):
            typer.echo(f"{lens_name}: {advice}", err=True)


class _Complaints:
    """Says what is wrong with bad records on standard error, up to a point, and counts them."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, error: BadInput) -> None:
        self.count += 1
        if self.count <= MOST_COMPLAINTS:
            sys.stderr.write(f"skipped: {error}\n")

    def summarise(self) -> None:
        """Say how many were not shown."""
        if self.count > MOST_COMPLAINTS:
            sys.stderr.write(f"skipped: {self.count - MOST_COMPLAINTS:,} more bad records\n")


def _ignore(error: BadInput) -> None:
    """The first pass has reported it."""


def _collection_options(
    lens: str | None,
    model: str | None,
    language: str | None,
    k1: float | None,
    b: float | None,
    passage_words: int | None,
    overlap_words: int | None,
    bits: int | None,
    centroids: int | None,
    pool: int | None,
) -> dict[str, Any]:
    """What the user chose, in the form of the collection's config."""

    def given(**values: Any) -> dict[str, Any]:
        return {name: value for name, value in values.items() if value is not None}

    bm25 = given(k1=k1, b=b) | ({"analysis": {"language": language}} if language else {})
    passages = given(words=passage_words, overlap=overlap_words)
    multi = given(bits=bits, centroids=centroids, pool=pool)
    return given(lenses=lens_names(lens), model=model, bm25=bm25 or None, multi=multi or None, passages=passages or None)


def _open_or_create(path: Path, options: dict[str, Any], threads: int | None) -> Collection:
    """The collection, made with the options; one that exists must have been made with the same."""
    if not (path / FILE_NAME).exists():
        return Collection.create(path, threads=threads, **options)
    collection = Collection.open(path, threads=threads)
    made_with = collection.config.model_dump(mode="json")
    for name, wanted in options.items():
        if not _agrees(made_with[name], wanted):
            collection.close()
            raise BadInput(
                f"{path} was made with {name} {made_with[name]}, not {wanted}; leave the option out, or index into a new folder"
            )
    return collection


def _agrees(made_with: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        return all(_agrees(made_with[name], value) for name, value in wanted.items())
    if isinstance(wanted, str) and Path(wanted).is_dir():
        return bool(made_with == str(Path(wanted).resolve()))
    return bool(made_with == wanted)


def _print_changes(changes: Changes, documents: int, skipped: int, seconds: float, json: bool) -> None:
    if changes.truncated:
        sys.stderr.write(
            f"note: {changes.truncated:,} passages are longer than the model reads; their ends count for bm25 only: "
            "index with a smaller --passage-words to cover them\n"
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

"""Commands that make, change and inspect collections: index, delete, get, info, check, optimize."""

import sys
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from trilens.collection import Collection
from trilens.errors import BadInput, CollectionError
from trilens.serve.options import CollectionPath, Json, Lens, Threads, lens_names
from trilens.serve.progress import counting, counting_bytes
from trilens.serve.render import out, print_json, printable
from trilens.store.config import DEFAULT_MODEL
from trilens.store.schema import FILE_NAME
from trilens.store.writer import Changes, no_report
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
    lens: Lens = None,
    model: Annotated[
        str | None, typer.Option(help=f"Bundled model or model folder.  [default: {DEFAULT_MODEL}]", show_default=False)
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(help="Language of stemming and stop words, or none.  [default: english]", show_default=False),
    ] = None,
    k1: Annotated[
        float | None,
        typer.Option(help="BM25: how soon repeated words stop counting.  [default: 0.9]", show_default=False),
    ] = None,
    b: Annotated[
        float | None, typer.Option(help="BM25: how much long texts are held back.  [default: 0.4]", show_default=False)
    ] = None,
    passage_words: Annotated[
        int | None, typer.Option(help="Longest passage; 0 keeps documents whole.  [default: 150]", show_default=False)
    ] = None,
    overlap_words: Annotated[
        int | None, typer.Option(help="Words shared by neighbouring passages.  [default: 30]", show_default=False)
    ] = None,
    bits: Annotated[
        int | None, typer.Option(help="Multi: 1, 2 or 4 bits per dimension of a token.  [default: 4]", show_default=False)
    ] = None,
    pool: Annotated[
        int | None, typer.Option(help="Multi: one vector for so many tokens.  [default: 1]", show_default=False)
    ] = None,
    id_field: Annotated[str | None, typer.Option(help="Field or column that holds the id.", show_default=False)] = None,
    text_field: Annotated[str | None, typer.Option(help="Field or column that holds the text.", show_default=False)] = None,
    title_field: Annotated[str | None, typer.Option(help="Field or column that holds the title.", show_default=False)] = None,
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

      cat rows.jsonl | trilens index - --to my.trilens --id-field url --text-field body
    """
    start = perf_counter()
    options = _collection_options(lens, model, language, k1, b, passage_words, overlap_words, bits, pool)
    fields = Fields(id=id_field, text=text_field, title=title_field)
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


def delete(
    path: CollectionPath,
    ids: Annotated[
        list[str],
        typer.Argument(
            metavar="ID...",
            help="Ids of documents, or - to read them from standard input, one a line.",
            show_default=False,
        ),
    ],
    json: Json = False,
) -> None:
    """Delete documents by id. Ids that are not there are named, and make the exit code 1.

    Examples:

      trilens delete my.trilens guide/old.md guide/older.md

      cat ids.txt | trilens delete my.trilens -
    """
    doc_ids = [line.rstrip("\r\n") for line in sys.stdin if line.strip()] if ids == ["-"] else ids
    with Collection.open(path) as collection:
        missing = collection.delete(doc_ids)
        deleted = collection.commit().deleted
        documents = len(collection)
    if json:
        print_json({"deleted": deleted, "missing": missing, "documents": documents})
    else:
        out().print(f"deleted {deleted:,}; {documents:,} documents remain")
    if missing:
        shown = ", ".join(repr(doc_id) for doc_id in missing[:5]) + (" …" if len(missing) > 5 else "")
        raise BadInput(f"{len(missing)} of {len(doc_ids)} ids are not in {path}: {shown}")


def get(
    path: CollectionPath,
    doc_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the document.", show_default=False)],
    json: Json = False,
) -> None:
    """Show one document as it is stored.

    Example:

      trilens get my.trilens guide/install.md
    """
    with Collection.open(path) as collection:
        document = collection.get(doc_id)
    if document is None:
        raise BadInput(f"there is no document {doc_id!r} in {path}")
    if json:
        print_json(asdict(document))
        return
    console = out()
    console.print(Text(printable(document.title or document.doc_id), style="bold"))
    if document.metadata:
        console.print(Text(document.metadata_json(), style="dim"))
    console.print(Text("\n".join(printable(line) for line in document.text.splitlines())))


def info(path: CollectionPath, json: Json = False) -> None:
    """What a collection holds and how large it is.

    Example:

      trilens info my.trilens --json
    """
    with Collection.open(path) as collection:
        facts = collection.info()
    if json:
        print_json(facts)
        return
    table = Table(show_header=False, box=None, pad_edge=False)
    sizes: dict[str, int] = facts["segment_bytes"]
    rows = {
        "documents": f"{facts['documents']:,}",
        "passages": f"{facts['passages']:,} ({facts['deleted_passages']:,} deleted ones wait for optimize)",
        "lenses": ", ".join(facts["lenses"]),
        "model": facts["model"] or "none",
        "commits": f"{facts['commit']:,}",
        "segments": f"{facts['segments']:,}",
        "on disk": f"{_mega(facts['catalog_bytes'])} texts, "
        + ", ".join(f"{_mega(size)} {name}" for name, size in sizes.items()),
    }
    for lens, figures in facts["figures"].items():
        rows |= {f"{lens} {name.replace('_', ' ')}": _figure(value) for name, value in figures.items()}
    for name, value in rows.items():
        table.add_row(Text(name, style="dim"), Text(value))
    out().print(table)


def check(path: CollectionPath, json: Json = False) -> None:
    """Verify every byte of a collection: checksums, and that no document is lost. Problems make the exit code 1.

    Example:

      trilens check my.trilens
    """
    collection = Collection.open(path)
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    with counting_bytes("checking", size) as advance:
        report = collection.check(advance)
    if json:
        print_json(asdict(report))
    elif not report.problems:
        out().print(f"ok: {report.documents:,} documents, {report.files:,} files, {_mega(report.bytes)}")
    if report.problems:
        more = f" (and {len(report.problems) - 1} more problems: --json lists them)" if len(report.problems) > 1 else ""
        raise CollectionError(f"{report.problems[0]}{more}; restore a copy of the collection, or index again")


def optimize(
    path: CollectionPath,
    retrain: Annotated[
        bool,
        typer.Option("--retrain", help="Encode all documents again; what multi learns is then made from all of them."),
    ] = False,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Merge all segments into one and drop the remains of deleted documents.

    Examples:

      trilens optimize my.trilens

      trilens optimize my.trilens --retrain
    """
    with Collection.open(path, threads=threads) as collection:
        before = collection.info()
        with ExitStack() as stack:
            bar = stack.enter_context(counting("encoding", before["documents"], "docs")) if retrain else no_report
            collection.optimize(retrain, bar)
        after = collection.info()
    if json:
        print_json({"segments_before": before["segments"], "segments": after["segments"], "documents": after["documents"]})
    else:
        out().print(f"{before['segments']} segments → {after['segments']}; {after['documents']:,} documents")


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
    pool: int | None,
) -> dict[str, Any]:
    """What the user chose, in the form of the collection's config."""

    def given(**values: Any) -> dict[str, Any]:
        return {name: value for name, value in values.items() if value is not None}

    bm25 = given(k1=k1, b=b) | ({"analysis": {"language": language}} if language else {})
    passages = given(words=passage_words, overlap=overlap_words)
    multi = given(bits=bits, pool=pool)
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


def _figure(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}" if isinstance(value, float) else str(value)


def _mega(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"

"""Commands that change and inspect a collection: delete, get, info, check, optimize."""

import sys
from contextlib import ExitStack
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from trilens.collection import Collection
from trilens.errors import BadInput, CollectionError
from trilens.serve.options import CollectionPath, Json, Threads
from trilens.serve.progress import counting, counting_bytes
from trilens.serve.render import out, print_json, printable
from trilens.store.writer import no_report


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
    for record in facts["tuned"].values():
        rows["tuned"] = "\n".join(filter(None, [rows.get("tuned"), _tuned(record)]))
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


def _tuned(record: dict[str, Any]) -> str:
    facts = (
        f"{record.get('measure')} {record.get('unseen')} on unseen queries of {record.get('dataset')}, {record.get('split')}"
    )
    return f"{record['fusion']} ({facts})"


def _figure(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}" if isinstance(value, float) else str(value)


def _mega(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"

"""The command `check`."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from trilens.cli.options import CollectionPath, Json, Threads
from trilens.cli.progress import byte_progress, progress_bar
from trilens.cli.render import megabytes, out, print_json, printable
from trilens.collection import Collection
from trilens.errors import CollectionError


def check(
    path: CollectionPath,
    repair: Annotated[
        bool, typer.Option("--repair", help="Repair the damage: keep what is whole, index the rest again, list what is gone.")
    ] = False,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Verify the checksums of all files and that every document is complete. Exit code 1 if there are problems.

    With --repair, every document whose text can be read is kept; those with a damaged index are encoded again.

    Examples:

      trilens check my.trilens

      trilens check my.trilens --repair
    """
    if repair:
        _repair(path, threads, json)
        return
    collection = Collection.open(path)
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    with byte_progress("checking", size) as advance:
        report = collection.check(advance)
    if json:
        print_json(asdict(report))
    elif not report.problems:
        out().print(f"ok: {report.documents:,} documents, {report.files:,} files, {megabytes(report.bytes)}")
    if report.problems:
        more = f" (and {len(report.problems) - 1} more problems: see --json)" if len(report.problems) > 1 else ""
        raise CollectionError(f"{report.problems[0]}{more}; run `trilens check {path} --repair`, or restore a backup")


def _repair(path: Path, threads: int | None, json: bool) -> None:
    with progress_bar("encoding", None, "docs") as advance:
        report = Collection.repair(path, threads=threads, report=advance)
    if json:
        print_json(asdict(report))
    else:
        for note in report.notes:
            out().print(f"note: {note}", markup=False)
        for doc_id in report.lost:
            out().print(f"gone: {printable(doc_id)}", markup=False)
        out().print(f"{report.documents:,} documents, {report.encoded:,} of them encoded again, {len(report.lost):,} gone")
    if report.lost:
        raise CollectionError(f"{len(report.lost):,} documents are gone; index them again from their sources")

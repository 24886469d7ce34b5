"""The command `backup`."""

from dataclasses import asdict
from typing import Annotated

import typer

from trilens.cli.options import CollectionPath, Json
from trilens.cli.progress import byte_progress
from trilens.cli.render import megabytes, out, print_json
from trilens.collection import Collection
from trilens.errors import CollectionError
from trilens.store.folders import FOLDER


def backup(
    path: CollectionPath,
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="A folder or an fsspec address such as s3://bucket/name, which hold many backups; or a new .tar or .tar.gz.",
            show_default=False,
        ),
    ],
    keep: Annotated[
        int | None, typer.Option("--keep", min=1, metavar="N", help="Remove all but the last N backups.", show_default="all")
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Compare everything that the target holds with its checksums, not only sizes.")
    ] = False,
    json: Json = False,
) -> None:
    """Back up the last commit, while others may read and write the collection.

    Only segments that the target does not have are copied. What is copied is compared with its checksums.

    Examples:

      trilens backup my.trilens backups/my

      trilens backup my.trilens my.tar.gz

      trilens backup my.trilens s3://bucket/my --keep 30
    """
    collection = Collection.open(path)
    size = sum(file.stat().st_size for file in (path / FOLDER).rglob("*") if file.is_file())
    with byte_progress("copying", size) as advance:
        report = collection.backup(target, keep=keep, verify=verify, report=advance)
    if json:
        print_json(asdict(report))
    else:
        pruned = f"; removed {len(report.removed)} older backups" if report.removed else ""
        out().print(
            f"commit {report.commit}: {report.documents:,} documents, {megabytes(report.bytes)}, of which "
            f"{megabytes(report.copied_bytes)} copied{pruned}"
        )
    if report.problems:
        more = f" (and {len(report.problems) - 1} more problems: see --json)" if len(report.problems) > 1 else ""
        raise CollectionError(f"commit {report.commit} is backed up, but {report.problems[0]}{more}")

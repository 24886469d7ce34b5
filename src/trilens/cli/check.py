"""The command `check`."""

from dataclasses import asdict

from trilens.cli.options import CollectionPath, Json
from trilens.cli.progress import byte_progress
from trilens.cli.render import megabytes, out, print_json
from trilens.collection import Collection
from trilens.errors import CollectionError


def check(path: CollectionPath, json: Json = False) -> None:
    """Verify the checksums of all files and that every document is complete. Exit code 1 if there are problems.

    Example:

      trilens check my.trilens
    """
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
        raise CollectionError(f"{report.problems[0]}{more}; restore a backup of the collection, or index it again")

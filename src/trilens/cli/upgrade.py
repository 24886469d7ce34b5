"""The command `upgrade`."""

from dataclasses import asdict

from trilens.cli.options import CollectionPath, Json, Model, Threads
from trilens.cli.progress import progress_bar
from trilens.cli.render import out, print_json
from trilens.collection import Collection
from trilens.store.schema import FORMAT_VERSION


def upgrade(path: CollectionPath, model: Model = None, threads: Threads = None, json: Json = False) -> None:
    """Upgrade a collection of an older format version, in place.

    No document is lost, and an interrupted upgrade leaves the collection as it was. Indexes are taken over where the format
    permits; otherwise all documents are encoded again, by --model if the model of the collection is not at hand.

    Example:

      trilens upgrade my.trilens
    """
    with progress_bar("encoding", None, "docs") as advance:
        report = Collection.upgrade(path, model=model, threads=threads, report=advance)
    if json:
        print_json(asdict(report))
    elif report.version == FORMAT_VERSION:
        out().print(f"{path} has format version {FORMAT_VERSION} already; nothing to do")
    else:
        how = "encoded again" if report.encoded else "taken over"
        out().print(
            f"upgraded from format version {report.version} to {FORMAT_VERSION}: {report.documents:,} documents, indexes {how}"
        )

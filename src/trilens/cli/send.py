"""The command `send`."""

from dataclasses import asdict
from typing import Annotated

import typer

from trilens.cli.options import CollectionPath, Json, Lens, lens_names
from trilens.cli.progress import progress_bar
from trilens.cli.render import out, print_json
from trilens.collection import Collection
from trilens.send.sending import send as send_collection


def send(
    path: CollectionPath,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="ADDRESS",
            help="Such as qdrant+http://HOST:PORT, milvus+http://HOST:PORT, postgresql://HOST/DATABASE, lancedb+file:FOLDER, "
            "elasticsearch+file:FOLDER or opensearch+file:FOLDER.",
            show_default=False,
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="Table, index or collection there.", show_default="that of the folder"),
    ] = None,
    lens: Lens = None,
    half: Annotated[bool, typer.Option("--half", help="Dense and token vectors in 16 bits per dimension.")] = False,
    json: Json = False,
) -> None:
    """Send documents with their vectors to another engine, or to files for its bulk API.

    Only what the engine does not have is written, and what the collection no longer has is deleted there. So an interrupted run
    continues when it is started again.

    Examples:

      trilens send my.trilens --to qdrant+http://localhost:6333

      trilens send my.trilens --to postgresql://localhost/search --lens dense --half

      trilens send my.trilens --to elasticsearch+file:bulk
    """
    with Collection.open(path) as collection, progress_bar("sending", collection.snapshot.live_rows, "passages") as advance:
        report = send_collection(collection, to, name=name, lenses=lens_names(lens), half=half, report=advance)
    if json:
        print_json(asdict(report))
        return
    out().print(
        f"{report.name} at {report.address}: {report.written:,} passages written, {report.deleted:,} deleted, "
        f"{report.unchanged:,} unchanged; vectors of {', '.join(report.lenses)}",
        soft_wrap=True,
        markup=False,
        emoji=False,
    )

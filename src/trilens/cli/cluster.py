"""The commands of `cluster`."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from trilens.cli.options import CollectionPath, Json
from trilens.cli.progress import byte_progress
from trilens.cli.render import megabytes, out, print_json
from trilens.cluster.publish import publish as publish_commit
from trilens.cluster.publish import pull as pull_commit
from trilens.cluster.shards import MOST_SHARDS
from trilens.store.folders import FOLDER

Address = Annotated[
    str,
    typer.Argument(metavar="ADDRESS", help="A folder, or an fsspec address such as s3://bucket/name.", show_default=False),
]


def cluster() -> None:
    """Publish the commits of a collection where several machines read them, and pull them.

    Examples:

      trilens cluster publish my.trilens published

      trilens cluster pull published pulled.trilens
    """


def publish(
    path: CollectionPath,
    address: Address,
    shards: Annotated[
        int | None,
        typer.Option(
            "--shards",
            min=1,
            max=MOST_SHARDS,
            metavar="N",
            help="Parts that can be pulled alone.",
            show_default="as before, or 1",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Publish the last commit of a collection: what the address does not have is copied, then the commit appears at once.

    A collection without the last published commit in its history is refused.

    Examples:

      trilens cluster publish my.trilens published

      trilens optimize my.trilens --segments 3

      trilens cluster publish my.trilens s3://bucket/my --shards 3
    """
    size = sum(file.stat().st_size for file in (path / FOLDER).rglob("*") if file.is_file())
    with byte_progress("copying", size) as advance:
        report = publish_commit(path, address, shards=shards, report=advance)
    if json:
        print_json(asdict(report))
        return
    out().print(
        f"commit {report.number}: {report.documents:,} documents, {megabytes(report.bytes)} in {report.shards} shards, "
        f"{megabytes(report.copied_bytes)} copied"
    )


def pull(
    address: Address,
    path: Annotated[
        Path,
        typer.Argument(metavar="COLLECTION", help="A new folder, or a collection that was pulled before.", show_default=False),
    ],
    number: Annotated[
        int | None, typer.Option("--commit", min=1, metavar="N", help="The published commit.", show_default="the last")
    ] = None,
    shard: Annotated[
        int | None, typer.Option("--shard", min=0, metavar="N", help="Only the documents of one shard.", show_default="all")
    ] = None,
    json: Json = False,
) -> None:
    """Make a collection of a published commit, or move one that was pulled to the last commit.

    Only what the collection does not have is fetched, and compared with its checksums.

    Examples:

      trilens cluster pull published pulled.trilens

      trilens cluster pull s3://bucket/my part.trilens --shard 0
    """
    with byte_progress("fetching", None) as advance:
        manifest = pull_commit(address, path, number=number, shard=shard, report=advance)
    documents = manifest.backup.documents
    if json:
        print_json({"number": manifest.number, "documents": documents, "shards": len(manifest.shards), "shard": shard})
        return
    part = "" if shard is None else f"shard {shard} of "
    out().print(f"commit {manifest.number}: {part}{documents:,} documents in {path}", soft_wrap=True)


SUBCOMMANDS = (publish, pull)

"""The command `dump`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from trilens.cli.options import CollectionPath
from trilens.cli.progress import progress_bar
from trilens.cli.render import out
from trilens.collection import Collection
from trilens.read.dump import dump_file, write_dump


def dump(
    path: CollectionPath,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="File to write, compressed if it ends in .gz, .xz, .bz2 or .zst.",
            show_default="standard output",
        ),
    ] = None,
) -> None:
    """Write all documents with their metadata as JSON Lines, for `trilens load` and other programs.

    Examples:

      trilens dump my.trilens my.jsonl.gz

      trilens dump my.trilens | jq .title
    """
    with Collection.open(path) as collection, progress_bar("dumping", len(collection), "docs") as advance:
        if file is None:
            write_dump(collection.documents(), sys.stdout.buffer, advance)
            sys.stdout.buffer.flush()
            return
        with dump_file(file) as stream:
            count = write_dump(collection.documents(), stream, advance)
    out().print(f"{count:,} documents in {file}", soft_wrap=True)

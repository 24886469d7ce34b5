"""The command `restore`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from trilens.cli.options import Json
from trilens.cli.progress import byte_progress
from trilens.cli.render import megabytes, out, print_json
from trilens.collection import Collection
from trilens.errors import BadInput
from trilens.store.backup.contents import Backup


def restore(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The target of `trilens backup`.", show_default=False)],
    path: Annotated[
        Path | None, typer.Argument(metavar="COLLECTION", help="A folder that is new or empty.", show_default=False)
    ] = None,
    commit: Annotated[
        int | None, typer.Option("--commit", metavar="N", help="The commit to restore.", show_default="the last backup")
    ] = None,
    show: Annotated[bool, typer.Option("--list", help="List the backups instead of restoring one.")] = False,
    json: Json = False,
) -> None:
    """Make a collection of a backup. All files are compared with their checksums.

    Examples:

      trilens restore backups/my restored.trilens

      trilens restore backups/my --list
    """
    if show == (path is not None):
        raise BadInput("restore needs either the folder of the COLLECTION to make, or --list")
    if path is None:
        _show(Collection.backups(source), json)
        return
    with byte_progress("restoring", None) as advance:
        backup = Collection.restore(source, path, commit=commit, report=advance)
    if json:
        print_json(_figures(backup))
    else:
        out().print(
            f"commit {backup.commit}: {backup.documents:,} documents, {megabytes(backup.bytes)} in {path}", soft_wrap=True
        )


def _show(backups: list[Backup], json: bool) -> None:
    if json:
        print_json([_figures(backup) for backup in backups])
        return
    table = Table("commit", "made (UTC)", "documents", "size", box=None)
    for backup in backups:
        made = backup.made[:19].replace("T", " ")
        table.add_row(str(backup.commit), made, f"{backup.documents:,}", megabytes(backup.bytes))
    out().print(table)


def _figures(backup: Backup) -> dict[str, object]:
    return {"commit": backup.commit, "made": backup.made, "documents": backup.documents, "bytes": backup.bytes}

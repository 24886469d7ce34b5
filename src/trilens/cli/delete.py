"""The command `delete`."""

import sys
from typing import Annotated

import typer

from trilens.cli.options import CollectionPath, Json
from trilens.cli.render import out, print_json
from trilens.collection import Collection
from trilens.errors import BadInput


def delete(
    path: CollectionPath,
    ids: Annotated[
        list[str],
        typer.Argument(
            metavar="ID...",
            help="Document ids, or - to read one id per line from standard input.",
            show_default=False,
        ),
    ],
    json: Json = False,
) -> None:
    """Delete documents by id. Ids that do not exist are reported, with exit code 1.

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

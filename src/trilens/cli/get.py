"""The command `get`."""

from typing import Annotated

import typer
from rich.text import Text

from trilens.cli.options import CollectionPath, Json
from trilens.cli.render import out, print_json, printable
from trilens.collection import Collection
from trilens.errors import BadInput
from trilens.read.dump import to_record


def get(
    path: CollectionPath,
    doc_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the document.", show_default=False)],
    json: Json = False,
) -> None:
    """Show a document.

    Example:

      trilens get my.trilens guide/install.md
    """
    with Collection.open(path) as collection:
        document = collection.get(doc_id)
    if document is None:
        raise BadInput(f"there is no document {doc_id!r} in {path}")
    if json:
        print_json(to_record(document))
        return
    console = out()
    console.print(Text(printable(document.title or document.doc_id), style="bold"))
    if document.metadata:
        console.print(Text(document.metadata_json(), style="dim"))
    console.print(Text("\n".join(printable(line) for line in document.text.splitlines())))

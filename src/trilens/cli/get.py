"""The command `get`."""

from typing import Annotated

import typer
from rich.style import Style
from rich.text import Text

from trilens.cli.hits import link_to
from trilens.cli.options import CollectionPath, Json
from trilens.cli.render import out, print_json, printable
from trilens.collection import Collection
from trilens.errors import BadInput
from trilens.read.dump import to_record

TITLE = Style(bold=True)


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
    whole = not console.is_terminal  # lines are wrapped for people, not for programs
    console.print(Text(printable(document.title or document.doc_id), style=TITLE + link_to(document, console)), soft_wrap=whole)
    if document.metadata:
        console.print(Text(document.metadata_json(), style="dim"), soft_wrap=whole)
    console.print(Text("\n".join(printable(line) for line in document.text.splitlines())), soft_wrap=whole)

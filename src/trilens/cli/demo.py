"""The command `demo`: search the documentation of the Python standard library by three lenses side by side."""

import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated
from urllib.parse import urlencode

import typer
from rich.console import Console
from rich.text import Text

from trilens.cli.hits import side_by_side
from trilens.cli.options import Json
from trilens.cli.progress import progress_bar
from trilens.cli.render import out, print_json
from trilens.cli.warmup import first_search
from trilens.collection import Collection
from trilens.encode.folder import fingerprint_model
from trilens.encode.models import resolve_model
from trilens.errors import TrilensError
from trilens.extras import needs_extra
from trilens.read.python_docs import standard_library
from trilens.search.hits import HITS, Hit
from trilens.store.config import DEFAULT_MODEL
from trilens.store.schema import FORMAT_VERSION
from trilens.text.document import Document
from trilens.text.files import user_cache

QUESTIONS = (
    "compute the difference between two dates",
    "wait until several threads have all reached the same point",
    "find words that look almost like a misspelled one",
    "remove a folder and everything inside it",
)
LENSES = ("bm25", "dense", "multi")
SHOWN = 5
PASSAGES = {"words": 60, "overlap": 10}  # short passages keep the summary of a docstring separate


def demo(
    question: Annotated[
        str | None,
        typer.Argument(metavar="QUERY", help="The query. Default: example queries, then a prompt.", show_default=False),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="COLLECTION",
            help="Folder of the collection.",
            show_default="the user's cache",
        ),
    ] = None,
    serve: Annotated[
        bool, typer.Option("--serve/--no-serve", help="Serve a web page at the end, unless in a script or CI.")
    ] = True,
    json: Json = False,
) -> None:
    """Index the docstrings of the Python standard library and search them.

    Each public module, class and function with a docstring is a document. The first run answers by BM25 within seconds, then
    encodes the documents and answers by all lenses. An interrupted run goes on when it is repeated; later runs start at once.
    At the end the command serves a web page and prints its URL; --no-serve opens a prompt instead.

    Examples:

      trilens demo

      trilens demo "compute the difference between two dates" --no-serve
    """
    console, path = out(), to or user_cache() / _name()
    interactive = sys.stdin.isatty() and sys.stdout.isatty() and not os.environ.get("CI") and not json
    queries, documents = QUESTIONS if question is None else (question,), list(standard_library())
    with Collection.open_or_create(path, lenses=LENSES, passages=PASSAGES) as collection:
        if len(collection) < len(documents) and not json:
            _answer_at_once(documents, queries, console)
        _ingest(collection, documents, "encoding the standard library")
        for query in queries:
            _answer(collection, query, json, console)
        if interactive and not serve and question is None:
            _prompt(collection, console)
    if interactive and serve:
        _serve(path, question)
    elif serve and not json:
        sys.stdout.write(f"\nSearch it in a browser: trilens serve {path}\n")


def _answer_at_once(documents: Sequence[Document], queries: Sequence[str], console: Console) -> None:
    """Answer by BM25, which needs no model, from a collection that is not kept."""
    with TemporaryDirectory() as folder, Collection.create(folder, lenses=["bm25"], passages=PASSAGES) as collection:
        _ingest(collection, documents, "reading the standard library")
        for query in queries:
            _answer(collection, query, False, console)
    console.print("\nThe other lenses follow when the documents are encoded.", style="dim")


def _ingest(collection: Collection, documents: Sequence[Document], what: str) -> None:
    with progress_bar(what, len(documents), "docs") as work:
        collection.ingest(documents, work)
    if work.compiled:
        first_search(collection)


def _answer(collection: Collection, question: str, json: bool, console: Console) -> None:
    answers: dict[str, list[Hit]] = {
        lens: collection.search([question], SHOWN, lenses=[lens], details=True)[0] for lens in collection.lenses
    }
    if json:
        by_lens = {lens: HITS.dump_python(hits, mode="json") for lens, hits in answers.items()}
        print_json({"query": question, "by_lens": by_lens})
        return
    console.print(Text(f"\n{question}", style="bold"))
    console.print(side_by_side(answers))


def _serve(path: Path, question: str | None) -> None:
    """Serve the web page on the default port, or on another one if that is taken."""
    with needs_extra("serve"):
        from trilens.http.server import is_free
        from trilens.http.start import ServeOptions, start

    def print_address(address: str) -> None:
        parameters = f"?{urlencode({'q': question})}" if question else ""
        sys.stdout.write(f"\nSearch it in a browser: {address}{parameters} (Ctrl-C ends it)\n")
        sys.stdout.flush()

    options = ServeOptions()
    if not is_free(options.host, options.port):
        options = ServeOptions(port=0)
    start({"standard-library": path}, options, print_address)


def _prompt(collection: Collection, console: Console) -> None:
    console.print("\nEnter a query; an empty line ends the demo.", style="dim")
    while True:
        try:
            question = console.input("[bold]> [/bold]").strip()
        except (EOFError, KeyboardInterrupt):
            return
        if not question:
            return
        try:
            _answer(collection, question, False, console)
        except TrilensError as error:
            console.print(str(error), style="red", markup=False)


def _name() -> str:
    """The name of the collection: unique per version of Python, model, lenses and storage format."""
    model = fingerprint_model(resolve_model(DEFAULT_MODEL))
    return f"python-{platform.python_version()}-{model}-{'-'.join(LENSES)}-{FORMAT_VERSION}.trilens"

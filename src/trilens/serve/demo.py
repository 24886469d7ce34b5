"""The demo: ask the documentation of your own Python, through three lenses side by side, here and in a browser."""

import os
import platform
import sys
from pathlib import Path
from typing import Annotated
from urllib.parse import urlencode

import typer
from rich.console import Console
from rich.text import Text

from trilens.collection import Collection
from trilens.encode.folder import fingerprint_model
from trilens.encode.models import resolve_model
from trilens.errors import BadInput, TrilensError
from trilens.search.hits import Hit
from trilens.serve.options import Json
from trilens.serve.progress import counting
from trilens.serve.render import hit_to_json, out, print_json, side_by_side
from trilens.serve.serving import INSTALL
from trilens.store.catalog import FILE_NAME
from trilens.store.config import DEFAULT_MODEL
from trilens.store.schema import FORMAT_VERSION
from trilens.text.files import user_cache
from trilens.text.python_docs import standard_library

QUESTIONS = (
    "compute the difference between two dates",
    "wait until several threads have all reached the same point",
    "find words that look almost like a misspelled one",
    "remove a folder and everything inside it",
)
LENSES = ("bm25", "dense", "multi")
SHOWN = 5
PASSAGES = {"words": 60, "overlap": 10}  # a docstring says what matters in its first sentence: keep that one apart


def demo(
    question: Annotated[
        str | None, typer.Argument(help="A question to answer; without one, examples and a prompt.", show_default=False)
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="COLLECTION",
            help="Where the collection goes.",
            show_default="the user's cache",
        ),
    ] = None,
    serve: Annotated[
        bool, typer.Option("--serve/--no-serve", help="End with a web page to search it; never in a script or in CI.")
    ] = True,
    json: Json = False,
) -> None:
    """Index the documentation of your Python's standard library and ask it questions.

    Every public module, class and function with a docstring becomes a document. The first run encodes them,
    later ones start at once. At the end it serves a web page and prints its address; --no-serve leaves a prompt instead.

    Examples:

      trilens demo

      trilens demo "compute the difference between two dates" --no-serve
    """
    console, path = out(), to or user_cache() / _name()
    watched = sys.stdin.isatty() and sys.stdout.isatty() and not os.environ.get("CI") and not json
    with _collection(path) as collection:
        for one in QUESTIONS if question is None else (question,):
            _answer(collection, one, json, console)
        if watched and not serve and question is None:
            _prompt(collection, console)
    if watched and serve:
        _serve(path, question)
    elif serve and not json:
        sys.stdout.write(f"\nSearch it in a browser: trilens serve {path}\n")


def _collection(path: Path) -> Collection:
    collection = (
        Collection.open(path) if (path / FILE_NAME).exists() else Collection.create(path, lenses=LENSES, passages=PASSAGES)
    )
    documents = list(standard_library())
    with counting("indexing the standard library", len(documents), "docs") as advance:
        collection.ingest(documents, advance)
    return collection


def _answer(collection: Collection, question: str, json: bool, console: Console) -> None:
    answers: dict[str, list[Hit]] = {lens: collection.search([question], SHOWN, lenses=[lens])[0] for lens in collection.lenses}
    if json:
        by_lens = {lens: [hit_to_json(hit) for hit in hits] for lens, hits in answers.items()}
        print_json({"query": question, "by_lens": by_lens})
        return
    console.print(Text(f"\n{question}", style="bold"))
    console.print(side_by_side(answers))


def _serve(path: Path, question: str | None) -> None:
    """The page, at the usual port or, where that is taken, at another."""
    try:
        from trilens.serve.http.start import Options, is_free, start
    except ImportError as error:
        raise BadInput(INSTALL) from error

    def say(address: str) -> None:
        asked = f"?{urlencode({'q': question})}" if question else ""
        sys.stdout.write(f"\nSearch it in a browser: {address}{asked} (Ctrl-C ends it)\n")
        sys.stdout.flush()

    options = Options() if is_free(Options().host, Options().port) else Options(port=0)
    start({"standard-library": path}, options, say)


def _prompt(collection: Collection, console: Console) -> None:
    console.print("\nAsk the standard library; an empty line ends it.", style="dim")
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
    """Another Python, model, choice of lenses or format on disk gets a collection of its own."""
    model = fingerprint_model(resolve_model(DEFAULT_MODEL))
    return f"python-{platform.python_version()}-{model}-{'-'.join(LENSES)}-{FORMAT_VERSION}.trilens"

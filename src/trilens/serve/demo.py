"""The demo: ask the documentation of your own Python, through two lenses side by side."""

import os
import platform
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from trilens.collection import Collection
from trilens.encode.folder import fingerprint_model, resolve_model
from trilens.errors import TrilensError
from trilens.search.hits import Hit
from trilens.serve.options import Json
from trilens.serve.progress import counting
from trilens.serve.render import hit_to_json, out, print_json, side_by_side
from trilens.store.catalog import FILE_NAME
from trilens.store.config import DEFAULT_MODEL
from trilens.store.schema import FORMAT_VERSION
from trilens.text.python_docs import standard_library

QUESTIONS = (
    "remove a folder and everything inside it",
    "wait until several threads have all reached the same point",
    "find words that look almost like a misspelled one",
    "compute the difference between two dates",
)
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
            help="Where the collection goes.  [default: the user's cache]",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Index the documentation of your Python's standard library and ask it questions.

    Every public module, class and function with a docstring becomes a document. The first run encodes them,
    later ones start at once.

    Examples:

      trilens demo

      trilens demo "remove a folder and everything inside it"
    """
    console = out()
    with _collection(to or _cache() / _name()) as collection:
        if question is not None:
            _answer(collection, question, json, console)
            return
        for example in QUESTIONS:
            _answer(collection, example, json, console)
        if sys.stdin.isatty() and not json:
            _prompt(collection, console)


def _collection(path: Path) -> Collection:
    collection = Collection.open(path) if (path / FILE_NAME).exists() else Collection.create(path, passages=PASSAGES)
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
    """Another Python, model or format on disk gets a collection of its own."""
    model = fingerprint_model(resolve_model(DEFAULT_MODEL))
    return f"python-{platform.python_version()}-{model}-{FORMAT_VERSION}.trilens"


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trilens"

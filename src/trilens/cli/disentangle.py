"""The command `disentangle`: the weighted vocabulary terms of a text."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from trilens.cli.options import Json, Threads
from trilens.cli.render import out, print_json, printable
from trilens.encode.models import resolve_model
from trilens.encode.onnx import OnnxEncoder
from trilens.explain.disentangle import disentangle as vocabulary_terms
from trilens.explain.disentangle import whole_words
from trilens.explain.pictures import bar_chart, word_cloud
from trilens.explain.word import Word
from trilens.store.config import DEFAULT_MODEL

BAR = 30


def disentangle(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The text.", show_default=False)],
    model: Annotated[str, typer.Option(metavar="MODEL", help="Bundled model or model folder.")] = DEFAULT_MODEL,
    passage: Annotated[bool, typer.Option("--passage", help="Encode the text as a passage instead of a query.")] = False,
    top: Annotated[int, typer.Option(min=1, metavar="N", help="Number of terms.")] = 30,
    png: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw a word cloud.", show_default=False)] = None,
    chart: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw a bar chart.", show_default=False)] = None,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Show the vocabulary terms that a model with a sparse head assigns to a text, with their weights.

    Terms are marked as words of the text or as added by the model.

    Examples:

      trilens disentangle "heat transfer over slender wings"

      trilens disentangle "heat transfer over slender wings" --png cloud.png --chart bars.png
    """
    encoder = OnnxEncoder(resolve_model(model), threads=threads, heads=("sparse",))
    words = vocabulary_terms(encoder, text, "doc" if passage else "query", top)
    if png:
        word_cloud(whole_words(words, text) or words, png)
    if chart:
        bar_chart(words, chart, text)
    if json:
        print_json({"text": text, "words": [asdict(word) for word in words]})
    else:
        _print_words(words)


def _print_words(words: list[Word]) -> None:
    table = Table("word", "", show_header=True)
    table.add_column("weight", justify="right")
    table.add_column("")
    highest = max((word.weight for word in words), default=1.0)
    for word in words:
        bar = "█" * max(1, round(BAR * word.weight / highest))
        style = "blue" if word.own else "yellow"
        origin = "in the text" if word.own else "added"
        table.add_row(Text(printable(word.word)), Text(origin, style="dim"), f"{word.weight:.3f}", Text(bar, style=style))
    out().print(table)

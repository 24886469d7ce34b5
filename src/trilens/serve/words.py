"""The disentangle command: the words that a text activates."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from trilens.encode.models import resolve_model
from trilens.encode.onnx import OnnxEncoder
from trilens.explain.disentangle import Word, disentangle
from trilens.explain.pictures import bar_chart, word_cloud
from trilens.serve.options import Json, Threads
from trilens.serve.render import out, print_json, printable
from trilens.store.config import DEFAULT_MODEL

BAR = 30


def disentangle_command(
    text: Annotated[str, typer.Argument(help="The text.", show_default=False)],
    model: Annotated[str, typer.Option(help="Bundled model or model folder.")] = DEFAULT_MODEL,
    passage: Annotated[bool, typer.Option("--passage", help="Read the text as a passage, not as a query.")] = False,
    top: Annotated[int, typer.Option(min=1, metavar="N", help="How many words.")] = 30,
    png: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw a word cloud into this file.", show_default=False)
    ] = None,
    chart: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw a bar chart into this file.", show_default=False)
    ] = None,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Show the words that a text activates in a model with a vocabulary head, each with its weight.

    Words that stand in the text are marked; the others are what the model adds.

    Examples:

      trilens disentangle "heat transfer over slender wings"

      trilens disentangle "heat transfer over slender wings" --png cloud.png --chart bars.png
    """
    encoder = OnnxEncoder(resolve_model(model), threads=threads, heads=("sparse",))
    words = disentangle(encoder, text, "doc" if passage else "query", top)
    if png:
        word_cloud(words, png)
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

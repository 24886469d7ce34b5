"""The command `explain`: the parts of a score in the terminal, as JSON, HTML or a picture."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trilens.cli.options import CollectionPath, Json, Threads, Verify, with_search_options
from trilens.cli.render import out, print_json, printable, require_page, write_page
from trilens.collection import Collection
from trilens.explain.explanation import Explanation
from trilens.explain.page import to_html
from trilens.explain.pictures import explanation_picture
from trilens.lenses.parts import Part
from trilens.search.options import SearchOptions

MOST_PARTS = 20
GREEN_SHADES = ("", "on grey11", "on grey19", "on dark_green", "bold white on green4")
RED_SHADES = ("", "on grey11", "on grey19", "on dark_red", "bold white on red3")


@with_search_options
def explain(
    path: CollectionPath,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="The query.", show_default=False)],
    doc_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the document.", show_default=False)],
    options: SearchOptions,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write an HTML page.", show_default=False)] = None,
    png: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the parts as a picture.", show_default=False)] = None,
    threads: Threads = None,
    verify: Verify = False,
    json: Json = False,
) -> None:
    """Explain the score of a document: the parts that add up to it, and the passage highlighted by them.

    A fused score is explained by the contribution of each lens, then by the parts of each lens. Most fusions depend on the
    other candidates, so pass the same options as to `search`.

    Examples:

      trilens explain my.trilens "undo a commit" guide/reset.md

      trilens explain my.trilens "undo a commit" guide/reset.md --lens dense --html why.html

      trilens explain my.trilens "undo a commit" guide/reset.md --lens multi --png heat.png --json

      trilens explain my.trilens "undo a commit" guide/reset.md --fusion zscore --filter '{"lang": "en"}'
    """
    require_page(html)
    with Collection.open(path, threads=threads, verify=verify) as collection:
        explanation = collection.explain(query, doc_id, options=options)
    if png:
        explanation_picture(explanation, png)
    if html:
        write_page(html, to_html(explanation))
    if json:
        print_json(explanation.to_json())
        return
    console = out()
    for single in (explanation, *(explanation.children or ())):
        _print(single, console)


def _print(explanation: Explanation, console: Console) -> None:
    console.print(Text(f"{explanation.lens} {explanation.score:.4f}{explanation.note}", style="bold"))
    for name, value in (explanation.expansion or {}).items():
        console.print(Text(f"  {name}: {printable(str(value))}", style="dim"))
    if not explanation.children and explanation.passage.text.strip():
        console.print(coloured(explanation))
    console.print(_table(explanation))
    console.print()


def coloured(explanation: Explanation) -> Text:
    """The passage on shades of green for positive contributions and red for negative ones."""
    stretches = explanation.heat()
    most = max((abs(value) for _, _, value in stretches), default=1.0) or 1.0
    shown = Text("\n".join(printable(line) for line in explanation.passage.text.split("\n")))
    for start, end, value in stretches:
        shade = min(len(GREEN_SHADES) - 1, int(len(GREEN_SHADES) * abs(value) / most))
        shown.stylize((GREEN_SHADES if value >= 0 else RED_SHADES)[shade], start, end)
    return shown


def _table(explanation: Explanation) -> Table:
    table = Table("part", "", show_footer=True)
    table.add_column("score", justify="right", footer=f"{sum(part.score for part in explanation.parts):.4f}")
    table.add_column("made of")
    # Query tokens keep the order of the query; of other parts only the largest are shown.
    few = len(explanation.parts) <= MOST_PARTS or explanation.matrix is not None
    shown = list(explanation.parts) if few else sorted(explanation.parts, key=lambda part: -abs(part.score))[:MOST_PARTS]
    for part in shown:
        table.add_row(Text(printable(part.label)), _matched(part), f"{part.score:.4f}", Text(_facts(part), style="dim"))
    if len(shown) < len(explanation.parts):
        rest = sum(part.score for part in explanation.parts) - sum(part.score for part in shown)
        table.add_row(Text(f"{len(explanation.parts) - len(shown)} more", style="dim"), "", f"{rest:.4f}", "")
    return table


def _matched(part: Part) -> Text:
    return Text(f"→ {printable(part.target)}") if part.target is not None else Text(part.kind, style="dim")


def _facts(part: Part) -> str:
    shown = []
    for name, value in part.facts.items():
        figure = "–" if value is None else value if isinstance(value, str) else f"{value:.4g}"
        shown.append(f"{name.replace('_', ' ')} {printable(figure)}")
    return ", ".join(shown)

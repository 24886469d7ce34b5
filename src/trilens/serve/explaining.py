"""The explain command: why a document got its score, for people, programs and as pages and pictures."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trilens.collection import Collection
from trilens.explain.explanation import Explanation, Part, heat
from trilens.explain.page import to_html
from trilens.explain.pictures import explanation_picture
from trilens.serve.options import (
    CollectionPath,
    Expand,
    FilterText,
    FusionText,
    HydeModel,
    HydeUrl,
    Json,
    Lens,
    MultiSettings,
    Rerank,
    SparseSettings,
    Threads,
    hyde_of,
    lens_names,
    lens_params,
)
from trilens.serve.render import out, print_json, printable, require_page, write_page
from trilens.store.filters import parse_filter

MOST_PARTS = 20
SHADES = ("", "on grey11", "on grey19", "on dark_green", "bold white on green4")
MINUS = ("", "on grey11", "on grey19", "on dark_red", "bold white on red3")


def explain_command(
    path: CollectionPath,
    query: Annotated[str, typer.Argument(help="The query.", show_default=False)],
    doc_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the document.", show_default=False)],
    lens: Lens = None,
    k: Annotated[int, typer.Option("-k", metavar="N", help="How many documents the search to be explained returns.")] = 10,
    filter: FilterText = None,
    rerank: Rerank = None,
    fusion: FusionText = None,
    expand: Expand = None,
    hyde: HydeUrl = None,
    hyde_model: HydeModel = "default",
    sparse: SparseSettings = None,
    multi: MultiSettings = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page into this file.", show_default=False)] = None,
    png: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the parts into this file.", show_default=False)] = None,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Show why a document gets its score: the parts of it, which add up, and the passage coloured by them.

    Several lenses are explained as `search` fuses them: what each gives, and then each on its own. Most fusions look
    at the other documents found too, so give the options of the search that is to be explained.

    Examples:

      trilens explain my.trilens "undo a commit" guide/reset.md

      trilens explain my.trilens "undo a commit" guide/reset.md --lens dense --html why.html

      trilens explain my.trilens "undo a commit" guide/reset.md --lens multi --png heat.png --json

      trilens explain my.trilens "undo a commit" guide/reset.md --fusion zscore --filter '{"lang": "en"}'
    """
    require_page(html)
    with Collection.open(path, threads=threads) as collection:
        found = collection.explain(
            query,
            doc_id,
            lens_names(lens),
            k=k,
            where=parse_filter(filter) if filter is not None else None,
            rerank=rerank,
            params=lens_params(sparse, multi),
            fusion=fusion,
            expand=expand,
            hyde=hyde_of(hyde, hyde_model),
        )
    if png:
        explanation_picture(found, png)
    if html:
        write_page(html, to_html(found))
    if json:
        print_json(found.to_json())
        return
    console = out()
    for one in (found, *(found.children or ())):
        _print(one, console)


def _print(one: Explanation, console: Console) -> None:
    note = " (approximate)" if one.approximate else ""
    console.print(Text(f"{one.lens} {one.score:.4f}{note}", style="bold"))
    for name, value in (one.expansion or {}).items():
        console.print(Text(f"  {name}: {printable(str(value))}", style="dim"))
    if not one.children and one.passage.text.strip():
        console.print(coloured(one))
    console.print(_table(one))
    console.print()


def coloured(one: Explanation) -> Text:
    """The passage; words that gave more stand on a brighter ground, those that took away on a red one."""
    stretches = heat(one)
    most = max((abs(value) for _, _, value in stretches), default=1.0) or 1.0
    shown = Text("\n".join(printable(line) for line in one.passage.text.split("\n")))
    for start, end, value in stretches:
        shade = min(len(SHADES) - 1, int(len(SHADES) * abs(value) / most))
        shown.stylize((SHADES if value >= 0 else MINUS)[shade], start, end)
    return shown


def _table(one: Explanation) -> Table:
    table = Table("part", "", show_footer=True)
    table.add_column("score", justify="right", footer=f"{sum(part.score for part in one.parts):.4f}")
    table.add_column("made of")
    # Query tokens stand in the order of the query; of anything longer the largest are shown.
    few = len(one.parts) <= MOST_PARTS or one.matrix is not None
    shown = list(one.parts) if few else sorted(one.parts, key=lambda part: -abs(part.score))[:MOST_PARTS]
    for part in shown:
        table.add_row(Text(printable(part.label)), _matched(part), f"{part.score:.4f}", Text(_facts(part), style="dim"))
    if len(shown) < len(one.parts):
        rest = sum(part.score for part in one.parts) - sum(part.score for part in shown)
        table.add_row(Text(f"{len(one.parts) - len(shown)} more", style="dim"), "", f"{rest:.4f}", "")
    return table


def _matched(part: Part) -> Text:
    return Text(f"→ {printable(part.target)}") if part.target is not None else Text(part.kind, style="dim")


def _facts(part: Part) -> str:
    shown = []
    for name, value in part.facts.items():
        figure = "–" if value is None else value if isinstance(value, str) else f"{value:.4g}"
        shown.append(f"{name.replace('_', ' ')} {printable(figure)}")
    return ", ".join(shown)

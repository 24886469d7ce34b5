"""Terminal output: hits, tables, JSON and files."""

import json
import os
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from trilens.errors import BadInput
from trilens.search.hits import Hit, LensScore

SNIPPET = 280


def out() -> Console:
    """A console on the current standard output."""
    return Console(highlight=False)


def print_json(value: Any) -> None:
    """Print a JSON value on one line."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")


def require_page(file: Path | None) -> None:
    """Refuse an output file that cannot be written, before the work starts."""
    if file and not file.parent.is_dir():
        raise BadInput(f"there is no folder {file.parent} for {file.name}; create it first")
    if file and (file.is_dir() or not os.access(file if file.exists() else file.parent, os.W_OK)):
        raise BadInput(f"{file} cannot be written; expected a file in a writable folder")


def write_page(file: Path, text: str) -> None:
    """Write a page or table to a file."""
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"page {file} cannot be written ({error.strerror}); expected a file in an existing folder") from error


def printable(text: str) -> str:
    """The text without control characters, so that documents cannot send escape sequences to the terminal."""
    return "".join(" " if not character.isprintable() else character for character in text)


def snippet(text: str, length: int = SNIPPET) -> str:
    """The beginning of a text, on one line."""
    shortened = textwrap.shorten(printable(text[: 8 * length]), length, placeholder=" …")
    # `shorten` drops whole words; a first word that is too long is cut instead.
    return shortened if shortened != "…" else f"{printable(text).strip()[: length - 2]} …"


def print_hits(hits: Sequence[Hit], console: Console) -> None:
    """Print rank, id, title, scores and best passage of each hit."""
    if not hits:
        console.print("no document matches", style="yellow")
    for hit in hits:
        head = Text(f"{hit.rank:>3}  ")
        head.append(printable(hit.doc_id), style="bold cyan")
        if hit.document.title and hit.document.title != hit.doc_id:
            head.append(f"  {snippet(hit.document.title, 120)}", style="bold")
        console.print(head)
        console.print(Text(f"     {scores_line(hit)}", style="dim"))
        if hit.passage.strip():
            console.print(Text(textwrap.indent(textwrap.fill(snippet(hit.passage), 110), "     ")))
        console.print()


def scores_line(hit: Hit) -> str:
    """The score with the scores of the lenses; a lens that determines the ranking alone comes first."""
    deciding = [
        name for name, lens_score in hit.by_lens.items() if (lens_score.score, lens_score.rank) == (hit.score, hit.rank)
    ]
    order = sorted(hit.by_lens, key=lambda name: name not in deciding)
    if deciding:
        return " · ".join(f"{name} {_score_and_rank(hit.by_lens[name])}" for name in order)
    terms = [f"{hit.by_lens[name].contribution:.4f} {name} [{_score_and_rank(hit.by_lens[name])}]" for name in order]
    return f"fused {hit.score:.4f} = {' + '.join(terms)}"


def _score_and_rank(lens_score: LensScore) -> str:
    rank = "not returned" if lens_score.rank is None else f"#{lens_score.rank}"
    return f"{lens_score.score:.4f} ({rank})"


def side_by_side(columns: Mapping[str, Sequence[Hit]]) -> Table:
    """A table with one column of hits per lens."""
    table = Table(show_lines=False, expand=True, pad_edge=False)
    table.add_column("", justify="right", style="dim", width=2)
    for name in columns:
        table.add_column(name, ratio=1, overflow="fold")
    depth = max((len(hits) for hits in columns.values()), default=0)
    for position in range(depth):
        cells = [_cell(hits[position]) if position < len(hits) else Text("") for hits in columns.values()]
        table.add_row(str(position + 1), *cells)
    return table


def _cell(hit: Hit) -> Text:
    cell = Text(printable(hit.doc_id), style="bold cyan")
    cell.append(f"  {hit.score:.3f}\n", style="dim")
    cell.append(snippet(hit.passage, 90), style="default not bold")
    return cell


def megabytes(size: int) -> str:
    """A size in megabytes."""
    return f"{size / 1e6:,.1f} MB"

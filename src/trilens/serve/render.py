"""Hits and tables for people and for programs."""

import json
import os
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from trilens.errors import BadInput
from trilens.search.hits import Hit, LensScore

SNIPPET = 280


def out() -> Console:
    """Standard output; made anew, so that it is the one of this moment."""
    return Console(highlight=False)


def print_json(value: Any) -> None:
    """One JSON value on one line."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")


def require_page(file: Path | None) -> None:
    """Refuse a file that no page can go into, before the work that the page is to tell of."""
    if file and not file.parent.is_dir():
        raise BadInput(f"there is no folder {file.parent} for {file.name}; make it first")
    if file and (file.is_dir() or not os.access(file if file.exists() else file.parent, os.W_OK)):
        raise BadInput(f"{file} cannot be written; expected a file in a folder that may be written to")


def write_page(file: Path, text: str) -> None:
    """A page or table into a file."""
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"page {file} cannot be written ({error.strerror}); expected a file in an existing folder") from error


def printable(text: str) -> str:
    """Without control characters: a document must not be able to steer the terminal."""
    return "".join(" " if not character.isprintable() else character for character in text)


def snippet(text: str, length: int = SNIPPET) -> str:
    """The beginning of a text, on one line."""
    found = textwrap.shorten(printable(text[: 8 * length]), length, placeholder=" …")
    # Words are left out whole, except a first one that is longer than the line.
    return found if found != "…" else f"{printable(text).strip()[: length - 2]} …"


def hit_to_json(hit: Hit) -> dict[str, Any]:
    """`text` is the best passage, which lies at `passage` in the document's text."""
    return {
        "doc_id": hit.doc_id,
        "rank": hit.rank,
        "score": hit.score,
        "by_lens": {name: asdict(seen) for name, seen in hit.by_lens.items()},
        "title": hit.document.title,
        "text": hit.passage,
        "metadata": dict(hit.document.metadata),
        "passage": {"start": hit.start, "end": hit.end},
    }


def print_hits(hits: Sequence[Hit], console: Console) -> None:
    """One block per hit: rank, id, title; scores; the best passage."""
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
    """The score, and where it comes from if several lenses made it; the lens that alone decided comes first."""
    deciding = [name for name, seen in hit.by_lens.items() if (seen.score, seen.rank) == (hit.score, hit.rank)]
    order = sorted(hit.by_lens, key=lambda name: name not in deciding)
    if deciding:
        return " · ".join(f"{name} {_seen(hit.by_lens[name])}" for name in order)
    given = " + ".join(f"{hit.by_lens[name].contribution:.4f} {name} {_seen(hit.by_lens[name], '[]')}" for name in order)
    return f"fused {hit.score:.4f} = {given}"


def _seen(seen: LensScore, around: str = "") -> str:
    """The score of a lens, and its rank if it has one."""
    rank = "not returned" if seen.rank is None else f"#{seen.rank}"
    text = f"{seen.score:.4f} ({rank})"
    return f"{around[0]}{text}{around[1]}" if around else text


def side_by_side(columns: Mapping[str, Sequence[Hit]]) -> Table:
    """Rankings of several lenses next to each other."""
    table = Table(show_lines=False, expand=True, pad_edge=False)
    table.add_column("", justify="right", style="dim", width=2)
    for name in columns:
        table.add_column(name, ratio=1, overflow="fold")
    depth = max((len(hits) for hits in columns.values()), default=0)
    for place in range(depth):
        cells = [_cell(hits[place]) if place < len(hits) else Text("") for hits in columns.values()]
        table.add_row(str(place + 1), *cells)
    return table


def _cell(hit: Hit) -> Text:
    cell = Text(printable(hit.doc_id), style="bold cyan")
    cell.append(f"  {hit.score:.3f}\n", style="dim")
    cell.append(snippet(hit.passage, 90), style="default not bold")
    return cell

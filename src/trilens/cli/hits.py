"""Hits in the terminal: as a list with snippets and scores, or side by side by lens."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.style import Style
from rich.table import Table
from rich.text import Text

from trilens.cli.render import printable, snippet
from trilens.lenses.parts import Span
from trilens.search.hits import Hit, LensScore
from trilens.text.document import Document

INDENT = 5
COLUMN_SNIPPET = 90  # characters, beside other columns
MATCH = "bold"
WEAK = "yellow"
ID = Style.parse("bold cyan")
BAR_CELLS, BAR_END = 5, 5.0  # a full bar is this many standard deviations
EIGHTHS = " ▏▎▍▌▋▊▉█"


def print_hits(hits: Sequence[Hit], console: Console, offset: int = 0) -> None:
    """Print rank, id, title, snippet and scores of each hit after the first `offset`, within the width of the terminal."""
    if not hits:
        console.print("no further document matches" if offset else "no document matches", style=WEAK)
    elif all(hit.weak for hit in hits):
        console.print("no document matches well; the nearest are:", style=WEAK)
    room = max(20, console.width - INDENT)
    for hit in hits:
        for line in _head(hit, console, room):
            console.print(line)
        shown = _snippet(hit)
        if shown:
            console.print(Padding(shown, (0, 0, 0, INDENT)))
        for line in _scores(hit, room):
            console.print(Padding(line, (0, 0, 0, INDENT)), style="dim")
        console.print()


def _head(hit: Hit, console: Console, room: int) -> list[Text]:
    """Rank, id and title; the title on a line of its own where there is little room beside the id."""
    head = Text(f"{hit.rank:>{INDENT - 2}}  ")
    head.append(printable(hit.doc_id), style=ID + link_to(hit.document, console))
    if hit.weak:
        head.append("  weak match", style=WEAK)
    title = Text(printable(hit.document.title), style="" if hit.snippet else MATCH)
    if not title.plain.strip() or title.plain == hit.doc_id:
        return [head]
    for start, end in hit.snippet.title_matches if hit.snippet and not hit.weak else ():
        title.stylize(MATCH, start, end)
    beside = console.width - cell_len(head.plain) - 2
    if cell_len(title.plain) <= beside or beside >= room // 2:
        title.truncate(beside, overflow="ellipsis")
        return [head.append("  ").append_text(title)]
    title.truncate(room, overflow="ellipsis")
    return [head, Text(" " * INDENT).append_text(title)]


def link_to(document: Document, console: Console) -> Style:
    """A link to the file of a document, if it came from one that is still there: `path` in its metadata, or its id."""
    path = document.metadata.get("path", document.doc_id)
    if not console.is_terminal or not isinstance(path, str) or "\0" in path or not Path(path).is_file():
        return Style.null()
    return Style(link=Path(path).resolve().as_uri())


def _snippet(hit: Hit) -> Text:
    """The snippet on one line, with the matches of a hit that is not weak."""
    if hit.snippet is None:
        return Text(snippet(hit.passage))
    text = Text("… " if hit.snippet.start > 0 else "")
    text.append_text(marked(hit.snippet.text, () if hit.weak else hit.snippet.matches))
    if hit.document.text[hit.snippet.end :].strip():
        text.append(" …")
    return text


def marked(text: str, matches: Sequence[Span]) -> Text:
    """A text with its matches, all white space as single spaces."""
    line, position = Text(), 0
    for start, end in (*matches, (len(text), len(text))):
        for piece, style in ((text[position:start], ""), (text[start:end], MATCH)):
            joined = re.sub(r"\s+", " ", printable(piece))
            line.append(joined.lstrip() if not line.plain or line.plain.endswith(" ") else joined, style=style)
        position = end
    line.rstrip()
    return line


def _scores(hit: Hit, room: int) -> list[Text]:
    """The score and what each lens says, as many lenses a line as fit; a lens that determines the ranking comes first."""
    deciding = [name for name, seen in hit.by_lens.items() if (seen.score, seen.rank) == (hit.score, hit.rank)]
    order = sorted(hit.by_lens, key=lambda name: name not in deciding)
    cells = [] if deciding else [f"{hit.score:.4f}"]
    cells += [_cell(name, hit.by_lens[name]) for name in order]
    lines = [Text()]
    for cell in cells:
        if lines[-1] and len(lines[-1]) + 2 + len(cell) > room:
            lines.append(Text())
        lines[-1].append(f"  {cell}" if lines[-1] else cell)
    return lines


def _cell(name: str, seen: LensScore) -> str:
    rank = "" if seen.rank is None else f" #{seen.rank}"
    weak = " weak" if seen.strength is not None and seen.strength < 1 else ""
    if seen.standard is None:
        return f"{name} {seen.score:.4f}{rank}{weak}"
    return f"{name} {bar(seen.standard)} {seen.standard:+.1f}σ{rank}"


def bar(deviations: float) -> str:
    """A bar as long as a score is above the mean; empty below it."""
    eighths = round(8 * BAR_CELLS * min(1.0, max(0.0, deviations / BAR_END)))
    return ("█" * (eighths // 8) + EIGHTHS[eighths % 8]).ljust(BAR_CELLS)[:BAR_CELLS]


def side_by_side(columns: Mapping[str, Sequence[Hit]]) -> Table:
    """A table with one column of hits per lens."""
    table = Table(expand=True)
    table.add_column("", justify="right", style="dim", width=2)
    for name in columns:
        table.add_column(name, ratio=1, overflow="fold")
    depth = max((len(hits) for hits in columns.values()), default=0)
    for position in range(depth):
        cells = [_column_cell(hits[position]) if position < len(hits) else Text("") for hits in columns.values()]
        table.add_row(str(position + 1), *cells)
    return table


def _column_cell(hit: Hit) -> Text:
    cell = Text(printable(hit.doc_id), style="bold cyan")
    cell.append(f"  {hit.score:.3f}\n", style="dim")
    if hit.weak:
        cell.append("weak match\n", style=WEAK)
    matches = () if hit.snippet is None or hit.weak else hit.snippet.matches
    text = shortened(marked(hit.snippet.text if hit.snippet else hit.passage, matches), COLUMN_SNIPPET)
    text.style = "default not bold"
    return cell.append_text(text)


def shortened(line: Text, length: int) -> Text:
    """Whole words of a line, about as many characters, with its first match."""
    if len(line) <= length:
        return line
    first_match = min((span.start for span in line.spans), default=0)
    begin = 0 if first_match < length // 2 else line.plain.rfind(" ", 0, first_match) + 1
    space = line.plain.rfind(" ", begin, begin + length)
    end = len(line) if begin + length >= len(line) else space if space > begin else begin + length
    return Text.assemble("… " if begin else "", line[begin:end], "" if end == len(line) else " …")

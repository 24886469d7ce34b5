"""Extract the title, the author and the plain text of reStructuredText; markup of directives and roles is removed."""

import re
from typing import Any

from trilens.read.described import described, one_line

ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1{2,}[ \t]*$")
TABLE_RULE = re.compile(r"[ \t]*(?:=+(?:[ \t]+=+)+|\+[-=+]+\+)[ \t]*$")
FIELD = re.compile(r":([A-Za-z][\w -]*):[ \t]+(\S.*)$")
OPTION = re.compile(r"[ \t]+:[\w-]+:(?:[ \t].*)?$")
DIRECTIVE = re.compile(r"([ \t]*)\.\.[ \t]+(?:\|[^|]+\|[ \t]+)?([\w:.+-]+)::(?:[ \t]+(.*))?$")
NOTE = re.compile(r"[ \t]*\.\.[ \t]+\[[^\]]+\](?:[ \t]+(.*))?$")
COMMENT = re.compile(r"([ \t]*)\.\.(?:[ \t].*)?$")
# Directives whose argument is a name, a path or a setting and not text.
NAMES_WITHOUT_TEXT = """
autoclass autodata autofunction automethod automodule class code code-block container contents csv-table currentmodule
default-role doctest figure highlight ifconfig image include index list-table literalinclude math meta module only
parsed-literal raw role sourcecode tabularcolumns testcode testoutput testsetup toctree
"""
WITHOUT_TEXT = frozenset(NAMES_WITHOUT_TEXT.split())
HIDDEN = frozenset({"toctree", "index", "raw", "meta", "testsetup", "role", "default-role", "tabularcolumns"})
"""Directives whose content is not text either."""

INLINE = re.compile(
    r"""
      ``(.+?)``                                                     # a literal
    | (?<![\w:]):(?:[\w+.-]+:)+`([^`<]+?)\s*<[^`>]*>`               # a role with a title and a target
    | (?<![\w:]):(?:[\w+.-]+:)+`[~!]?([^`]+)`                       # a role
    | `([^`<]+?)\s*<[^`>]*>`__?                                     # a link with its address
    | (?<!\w)`([^`]+)`(?:__?(?!\w))?                                # a link, or text in the default role
    | (?<![\w*])\*\*(\S(?:[^*]*\S)?)\*\*(?![\w*])                   # bold
    | (?<![\w*])\*(\S(?:[^*]*\S)?)\*(?![\w*])                       # italic
    | \|(\S(?:[^|\n]*\S)?)\|_{0,2}(?!\w)                            # a substitution
    | (?<!\w)([A-Za-z0-9]+(?:[-._+:][A-Za-z0-9]+)*)__?(?=[\s.,;:!?)]|$)  # a link of one word
    | [ \t]*\[(?:\#[\w-]*|\*|\d+)\]_(?!\w)                          # a footnote reference
    """,
    re.DOTALL | re.VERBOSE,
)


def read_restructured_text(source: str) -> tuple[str, str, dict[str, Any]]:
    """The title, the text, and author and date if the document names them."""
    lines = source.expandtabs(8).split("\n")
    title, fields = _title(lines), _fields(lines)
    text = _without_inline_markup("\n".join(_text_lines(lines)))
    text = re.sub(r"\n{3,}", "\n\n", re.sub(r"::[ \t]*$", ":", text, flags=re.MULTILINE)).strip("\n")
    return title, text, described(author=fields.get("author"), date=fields.get("date"))


def _without_inline_markup(text: str) -> str:
    return INLINE.sub(lambda match: next(filter(None, match.groups()), ""), text)


def _title(lines: list[str]) -> str:
    """The first section title."""
    for number in range(1, len(lines)):
        above = lines[number - 1].strip()
        if above and ADORNMENT.match(lines[number]) and not ADORNMENT.match(above):
            return one_line(_without_inline_markup(above))
    return ""


def _fields(lines: list[str]) -> dict[str, str]:
    """The fields such as `:Author: Ada` before the first paragraph."""
    fields: dict[str, str] = {}
    for number, line in enumerate(lines):
        field = FIELD.match(line)
        if field:
            fields.setdefault(field[1].lower(), field[2].strip())
        elif line.strip() and not (_is_markup(line) or _is_markup(lines[number + 1] if number + 1 < len(lines) else "")):
            break
    return fields


def _is_markup(line: str) -> bool:
    return ADORNMENT.match(line) is not None or COMMENT.match(line) is not None


def _text_lines(lines: list[str]) -> list[str]:
    """The lines with text; the markup of directives, comments, targets, adornments and tables is removed."""
    kept: list[str] = []
    hidden: int | None = None  # the indentation of a comment or directive whose block is dropped
    in_directive = False
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if not line.strip():
            in_directive = False
            kept.append("")
        elif hidden is not None and indent > hidden:
            continue
        elif in_directive and OPTION.match(line):
            hidden = None
        elif (directive := DIRECTIVE.match(line)) is not None:
            hidden = indent if directive[2] in HIDDEN else None
            in_directive = True
            if directive[3] and directive[2] not in WITHOUT_TEXT:
                kept.append(directive[1] + directive[3])
        elif (note := NOTE.match(line)) is not None:
            hidden = None
            kept.append(note[1] or "")
        elif COMMENT.match(line):
            hidden = indent
        else:
            hidden = None
            if not (ADORNMENT.match(line) or TABLE_RULE.match(line)):
                kept.append(_without_table_borders(line))
    return kept


def _without_table_borders(line: str) -> str:
    """A row of a grid table as its cells, two spaces apart."""
    bare = line.strip()
    if len(bare) < 3 or not (bare.startswith("| ") and bare.endswith("|")):
        return line
    return "  ".join(filter(None, (cell.strip() for cell in bare.strip("|").split("|"))))

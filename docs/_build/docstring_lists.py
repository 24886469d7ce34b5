"""Griffe extension: aligned `name  description` lines of docstrings become Markdown lists on the API page."""

import re
from typing import Any

import griffe

ITEM = re.compile(r"^(\w+) {2,}(\S.*)$")


class DocstringLists(griffe.Extension):
    """Rewrites the docstrings of classes."""

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Called for each class after its members are loaded."""
        if cls.docstring:
            cls.docstring.value = with_lists(cls.docstring.value)


def with_lists(text: str) -> str:
    """The text with runs of `name  description` lines as list items; indented lines continue an item."""
    lines: list[str] = []
    listing = False
    for line in text.splitlines():
        if item := ITEM.match(line):
            lines += [] if listing else [""]
            lines.append(f"- `{item[1]}`: {item[2]}")
            listing = True
        elif listing and line.startswith(" "):
            lines.append(f"    {line.strip()}")
        else:
            lines.append(line)
            listing = False
    return "\n".join(lines)

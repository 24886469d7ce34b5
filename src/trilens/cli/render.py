"""Terminal output: consoles, printable text, JSON and files."""

import json
import os
import sys
import textwrap
from pathlib import Path
from typing import Any

from rich.console import Console

from trilens.errors import BadInput

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


def megabytes(size: int) -> str:
    """A size in megabytes."""
    return f"{size / 1e6:,.1f} MB"

"""Paths: how messages show them, compression suffixes, and files that are stored plain or compressed."""

import os
from pathlib import Path
from stat import S_IFMT, S_IFREG

COMPRESSIONS = (".gz", ".xz", ".bz2", ".zst")
CATALOG = "catalog.sqlite"
"""Name of the file that makes a folder a collection."""

SPOOLED = "standard-input.jsonl"
"""Name of the temporary file that holds a copy of standard input."""


def shown(path: Path) -> str:
    """The path for a message: one line, and printable even when the file system holds bytes that are not UTF-8."""
    if path.name == SPOOLED:
        return "standard input"
    return printable(str(path)).replace("\n", "\\n").replace("\r", "\\r")


def printable(name: str) -> str:
    """A file name with bytes that are not UTF-8 written as escapes such as \\udce9."""
    return name.encode("utf-8", "backslashreplace").decode()


def type_of(path: Path) -> int | None:
    """The type of what a path leads to, as in `stat.S_IFMT`; None if it leads nowhere or cannot be followed."""
    try:
        return S_IFMT(path.stat().st_mode)
    except OSError:
        return None


def user_cache() -> Path:
    """The cache folder of trilens in the user's home."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trilens"


def without_compression(name: str) -> str:
    """A file name without its compression suffix: "a.jsonl" for "a.jsonl.gz"."""
    return next((name[: -len(suffix)] for suffix in COMPRESSIONS if name.lower().endswith(suffix)), name)


def layout_file(folder: Path, name: str) -> Path | None:
    """`folder/name`, plain or compressed; None if neither exists."""
    candidates = (folder / f"{name}{compression}" for compression in ("", *COMPRESSIONS))
    return next((path for path in candidates if type_of(path) == S_IFREG), None)

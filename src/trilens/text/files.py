"""Which files a source means: one file, or a folder walked in sorted order, each with its format and its name."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath

from trilens.errors import BadInput

RECORDS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json", ".csv": "csv", ".tsv": "tsv"}
PAGES = {".txt": "txt", ".md": "md", ".markdown": "md", ".html": "html", ".htm": "html"}
COMPRESSIONS = (".gz", ".xz", ".bz2")
SPOOLED = "standard-input.jsonl"  # a file of ours that standard input was copied into
EXPECTED = f"{', '.join([*RECORDS, *PAGES])} (records also with {', '.join(COMPRESSIONS)})"


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to read; `name` is its path within the source, with forward slashes on every system."""

    path: Path
    name: str
    format: str


def shown(path: Path) -> str:
    """The path for a message: one line, and printable even when the file system holds bytes that are not UTF-8."""
    if path.name == SPOOLED:
        return "standard input"
    return str(path).encode("utf-8", "backslashreplace").decode().replace("\n", "\\n").replace("\r", "\\r")


def user_cache() -> Path:
    """Where the user's system keeps what can be made again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trilens"


def format_of(name: str) -> str | None:
    """The format that the suffix tells, or None: "a.JSONL.gz" is "jsonl", "a.txt.gz" is nothing that we read."""
    path = PurePath(name.lower())
    if path.suffix in COMPRESSIONS:
        return RECORDS.get(PurePath(path.stem).suffix)
    return RECORDS.get(path.suffix) or PAGES.get(path.suffix)


def layout_file(folder: Path, name: str) -> Path | None:
    """`folder/name`, plain or compressed, whichever is there."""
    candidates = (folder / f"{name}{compression}" for compression in ("", *COMPRESSIONS))
    return next((path for path in candidates if path.is_file()), None)


def find_files(source: Path) -> Iterator[SourceFile]:
    """The files to read for one source, in a fixed order."""
    if source.is_dir():
        yield from _folder(source)
        return
    if not source.exists():
        raise BadInput(f"{shown(source)} does not exist; expected a file or a folder: check the path")
    kind = format_of(source.name)
    if kind is None:
        raise BadInput(f"{shown(source)} has no suffix that tells its format; expected {EXPECTED}: rename or convert it")
    yield SourceFile(source, source.name, kind)


def _folder(source: Path) -> Iterator[SourceFile]:
    empty = True
    for path in _walk(source, set()):
        kind = format_of(path.name)
        if kind is not None:
            empty = False
            yield SourceFile(path, path.relative_to(source).as_posix(), kind)
    if empty:
        raise BadInput(f"folder {shown(source)} holds no readable file; expected {EXPECTED}: give another folder")


def _walk(folder: Path, visited: set[tuple[int, int]]) -> Iterator[Path]:
    """Files below `folder`. A folder that links reach twice is read once, so loops of links end."""
    try:
        status = folder.stat()
        entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
    except OSError as error:
        raise BadInput(f"folder {shown(folder)} cannot be read: {error.strerror}; check its permissions") from error
    if (status.st_dev, status.st_ino) in visited:
        return
    visited.add((status.st_dev, status.st_ino))
    corpus = layout_file(folder, "corpus.jsonl")
    if corpus is not None:
        # The BEIR layout: the queries and judgements beside the corpus are not documents.
        yield corpus
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            yield from _walk(entry, visited)
        elif entry.is_file() or not entry.exists():
            # A link that leads nowhere is passed on: opening it gives the error that names it.
            yield entry

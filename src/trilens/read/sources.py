"""Resolve a source, a file or a folder, into the files to read, each with its reader."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trilens.errors import BadInput
from trilens.read.formats import Reader
from trilens.read.reader_table import readable_suffixes, reader_for
from trilens.text.files import layout_file, shown


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to read. `name` is its path within the source, with forward slashes on every system."""

    path: Path
    name: str
    reader: Reader


def find_files(source: Path) -> Iterator[SourceFile]:
    """Yield the file itself, or the readable files of a folder in sorted order."""
    if source.is_dir():
        yield from _find_in_folder(source)
        return
    if not source.exists():
        raise BadInput(f"{shown(source)} does not exist; expected a file or a folder: check the path")
    reader = reader_for(source.name)
    if reader is None:
        raise BadInput(f"{shown(source)} has no known suffix; expected {readable_suffixes()}: rename or convert the file")
    yield SourceFile(source, source.name, reader)


def _find_in_folder(folder: Path) -> Iterator[SourceFile]:
    empty = True
    for path in _walk(folder, set()):
        reader = reader_for(path.name)
        if reader is not None:
            empty = False
            yield SourceFile(path, path.relative_to(folder).as_posix(), reader)
    if empty:
        raise BadInput(f"folder {shown(folder)} holds no readable file; expected {readable_suffixes()}: give another folder")


def _walk(folder: Path, visited: set[tuple[int, int]]) -> Iterator[Path]:
    """Yield the files below `folder`. Each folder is visited once, so cycles of symbolic links end."""
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
        # In the BEIR layout, the queries and judgements beside the corpus are not documents.
        yield corpus
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            yield from _walk(entry, visited)
        elif entry.is_file() or not entry.exists():
            # Broken links are yielded so that opening them raises an error with their path.
            yield entry

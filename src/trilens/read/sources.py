"""Resolve a source, a file or a folder, into the files to read, each with its reader."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath
from stat import S_IFDIR, S_IFREG

from trilens.errors import BadInput, Unreadable
from trilens.read.decode import DANGLING, READ_ERROR, reason_of
from trilens.read.formats import Reader
from trilens.read.ignore import ALL_FILES, IgnoreRules, Selection, is_marked
from trilens.read.reader_table import readable_suffixes, reader_for
from trilens.read.skipped import LEFT_OUT, NO_READER, SPECIAL, Skipped
from trilens.text.files import layout_file, printable, shown, type_of


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to read. `name` is its path within the source, with forward slashes on every system."""

    path: Path
    name: str
    reader: Reader
    in_folder: bool = False


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder whose entries are listed: its path, its path within the source, and the rules inside it."""

    path: Path
    name: str
    rules: IgnoreRules

    def within(self, entry: str) -> str:
        """The path of an entry within the source."""
        return f"{self.name}/{entry}" if self.name else entry


def find_files(source: Path, selection: Selection = ALL_FILES) -> Iterator[SourceFile | Skipped]:
    """Yield the file itself, or the readable files of a folder in sorted order, and all that is skipped."""
    if source.is_dir():
        yield from _find_in_folder(source, selection)
        return
    if not source.exists():
        raise BadInput(f"{shown(source)} does not exist; expected a file or a folder: check the path")
    if not source.is_file():
        raise BadInput(f"{shown(source)} is a {SPECIAL}; expected a file or a folder: use - for standard input")
    reader = reader_for(source.name)
    if reader is None:
        raise BadInput(f"{shown(source)} has no known suffix; expected {readable_suffixes()}: rename or convert the file")
    yield SourceFile(source, printable(source.name), reader)


def _find_in_folder(source: Path, selection: Selection) -> Iterator[SourceFile | Skipped]:
    empty = True
    for item in _walk(source, selection):
        empty = empty and not isinstance(item, SourceFile)
        yield item
    if empty:
        raise BadInput(f"folder {shown(source)} holds no readable file; expected {readable_suffixes()}: give another folder")


def _walk(source: Path, selection: Selection) -> Iterator[SourceFile | Skipped]:
    """The files below a folder, depth first. Each folder is visited once, so cycles of symbolic links end."""
    visited = set[tuple[int, int]]()
    root = _Folder(source, "", IgnoreRules(selection))
    waiting: list[Iterator[_Folder | SourceFile | Skipped]] = [iter([root])]
    while waiting:
        item = next(waiting[-1], None)
        if item is None:
            waiting.pop()
        elif isinstance(item, _Folder):
            waiting.append(_entries(item, visited))
        else:
            yield item


def _entries(folder: _Folder, visited: set[tuple[int, int]]) -> Iterator[_Folder | SourceFile | Skipped]:
    try:
        status = folder.path.stat()
        names = sorted(entry.name for entry in folder.path.iterdir())
    except OSError as error:
        message = f"folder {shown(folder.path)} cannot be read: {error.strerror}; check its permissions"
        yield Skipped(Unreadable(message, reason_of(error)), "folder", printable(folder.name), in_folder=True)
        return
    if (status.st_dev, status.st_ino) in visited:
        return
    visited.add((status.st_dev, status.st_ino))
    if folder.name and is_marked(names):
        yield _left_out(folder.path, folder.name, "folder")
        return
    corpus = layout_file(folder.path, "corpus.jsonl")
    if corpus is not None:
        # In the BEIR layout, the queries and judgements beside the corpus are not documents.
        for name in names:
            if name != corpus.name:
                path = folder.path / name
                yield _left_out(path, folder.within(name), "folder" if path.is_dir() else "file")
        names = [corpus.name]
    folder = _Folder(folder.path, folder.name, folder.rules.inside(folder.path, folder.name))
    for name in names:
        yield from _entry(folder, name)


def _entry(folder: _Folder, entry: str) -> Iterator[_Folder | SourceFile | Skipped]:
    path, name = folder.path / entry, folder.within(entry)
    kind = type_of(path)
    is_folder = kind == S_IFDIR
    if folder.rules.leave_out(name, is_folder):
        yield _left_out(path, name, "folder" if is_folder else "file")
    elif is_folder:
        yield _Folder(path, name, folder.rules)
    elif not folder.rules.includes(name):
        yield _left_out(path, name, "file")
    else:
        yield _file(path, printable(name), kind)


def _file(path: Path, name: str, kind: int | None) -> SourceFile | Skipped:
    reader = reader_for(path.name)
    if reader is None and kind is None:
        error = Unreadable(f"{shown(path)} leads nowhere; it may be a folder that is not there at the moment", _nowhere(path))
        return Skipped(error, name=name, in_folder=True, is_error=False, may_be_folder=True)
    if reader is None:
        suffix = PurePath(printable(path.name)).suffix.lower() or "no suffix"
        error = Unreadable(f"{shown(path)} has no known suffix; expected {readable_suffixes()}", NO_READER)
        return Skipped(error, name=name, in_folder=True, is_error=False, suffix=suffix)
    if kind not in (None, S_IFREG):
        error = Unreadable(f"{shown(path)} is a {SPECIAL}; expected a file", SPECIAL)
        return Skipped(error, name=name, in_folder=True, is_error=False)
    # Dangling links are yielded so that opening them raises an error with their path.
    return SourceFile(path, name, reader, in_folder=True)


def _nowhere(path: Path) -> str:
    """Why the type of a file is not known."""
    try:
        path.stat()
    except FileNotFoundError:
        return DANGLING
    except OSError as error:
        return reason_of(error)
    return READ_ERROR  # it could be followed a moment later


def _left_out(path: Path, name: str, unit: str) -> Skipped:
    error = Unreadable(f"{shown(path)} is left out by default, by an ignore file or by a pattern", LEFT_OUT)
    return Skipped(error, "folder" if unit == "folder" else "file", printable(name), in_folder=True, is_error=False)

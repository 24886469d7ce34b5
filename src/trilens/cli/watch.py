"""`index --watch`: follow the sources until a signal comes, with one line for each change."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from time import sleep
from typing import Any

from trilens.cli.interrupts import Interrupted
from trilens.cli.render import out, print_json
from trilens.cli.sync import Sync
from trilens.collection import Collection
from trilens.errors import BadInput, TrilensError
from trilens.read.readers import STANDARD_INPUT

TICK_SECONDS = 1  # between two looks whether the sources are still the same folders


def require_watchable(sources: Sequence[str]) -> None:
    """Refuse what cannot be watched before anything is indexed."""
    if STANDARD_INPUT in sources:
        raise BadInput("--watch is given with standard input; expected files and folders: leave one of them out")
    _watchfiles()


def keep_watching(sync: Sync, json: bool) -> None:
    """Bring the collection up to date after each change of the sources. Errors are reported, and the next change is awaited."""
    sys.stderr.write(f"watching {', '.join(sync.sources)}; Ctrl-C ends it\n")
    try:
        for _ in _changes(sync):
            _update(sync, json)
    except KeyboardInterrupt as interrupt:
        with Collection.open(sync.to) as collection:
            raise Interrupted(f"{len(collection):,} documents are kept in {sync.to}") from interrupt


def _changes(sync: Sync) -> Iterator[None]:
    """Yield after each change of the sources. Folders that are replaced, as by a checkout or a mount, are watched anew."""
    target, folders = sync.to.resolve(), _folders(sync.sources)
    recursive = any(Path(source).is_dir() for source in sync.sources)

    def counts(_: object, path: str) -> bool:
        return not Path(path).is_relative_to(target)

    while True:
        watched = {folder: identity for folder in folders if (identity := _identity(folder)) is not None}
        events: Iterator[set[tuple[Any, str]]] = _ticks()
        if watched:
            options = {"rust_timeout": TICK_SECONDS * 1000, "yield_on_timeout": True, "recursive": recursive}
            events = _watchfiles().watch(*(folder.absolute() for folder in watched), watch_filter=counts, **options)
            next(events)
        yield  # what changed before the watch began is found by this update
        for changed in events:
            # A folder that is removed and made again may have the same number, but there is an event for it.
            removed = {path for _, path in changed} & {str(folder.absolute()) for folder in watched}
            if removed or any(_identity(folder) != watched.get(folder) for folder in folders):
                break
            if changed:
                yield


def _ticks() -> Iterator[set[tuple[Any, str]]]:
    """No changes at all, at intervals."""
    while True:
        sleep(TICK_SECONDS)
        yield set()


def _identity(folder: Path) -> tuple[int, int] | None:
    """What tells a folder from another one with its path; None if there is none."""
    try:
        status = folder.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _update(sync: Sync, json: bool) -> None:
    try:
        result, skipped = sync.run()
    except Interrupted:
        raise
    except TrilensError as error:
        sys.stderr.write(f"trilens: {error}\n")
        return
    changes = result.changes
    if not (changes.replaced or changes.added or changes.deleted):
        return
    if json:
        print_json({**asdict(changes), "skipped": skipped.count, "documents": result.documents})
    else:
        line = f"updated {changes.replaced:,}, added {changes.added:,}, removed {changes.deleted:,} documents"
        out().print(line)


def _watchfiles() -> Any:
    try:
        return import_module("watchfiles")
    except ImportError as error:
        raise BadInput("--watch needs watchfiles, which is not installed; run `pip install 'trilens[watch]'`") from error


def _folders(sources: Sequence[str]) -> list[Path]:
    """What to watch: folders, because editors replace files instead of writing to them."""
    return [path if path.is_dir() else path.parent for path in map(Path, sources)]

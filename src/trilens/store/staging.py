"""A staging area: a commit is prepared in a folder inside the collection, then takes the place of the collection's own.

Folders that do not change are hard links, so preparing a commit does not copy their data. A crash before the last step leaves
the collection as it was, and the next writer removes the staging area.
"""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trilens.store.commit_record import CommitRecord, write_catalog
from trilens.store.folders import FOLDER, UNFINISHED, force, sweep
from trilens.store.last_commit import write_last_commit
from trilens.store.schema import FILE_NAME


@contextmanager
def staging(root: Path) -> Iterator[Path]:
    """A folder with the layout of an empty collection, removed on exit."""
    staged = root / FOLDER / f"{UNFINISHED}{secrets.token_hex(8)}"
    try:
        (staged / FOLDER).mkdir(parents=True)
        yield staged
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def link_folder(source: Path, target: Path) -> None:
    """Hard links to all files of a folder; copies where the file system has no hard links."""
    shutil.copytree(source, target, copy_function=_link)
    for folder in (target, *(path for path in target.rglob("*") if path.is_dir())):
        force(folder)


def take_place(root: Path, staged: Path, record: CommitRecord) -> None:
    """Make a staged commit the collection's own, atomically.

    The caller holds the write lock, and has made sure that the old catalog has no write-ahead log that SQLite would apply.
    """
    for folder_id in record.folders:
        if not (root / FOLDER / folder_id).exists():
            (staged / FOLDER / folder_id).rename(root / FOLDER / folder_id)
    force(root / FOLDER)
    for suffix in ("-wal", "-shm"):
        (root / f"{FILE_NAME}{suffix}").unlink(missing_ok=True)
    write_last_commit(root, record)
    write_catalog(root, record, replace=True)
    sweep(root, set(record.folders))


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
        force(Path(target))

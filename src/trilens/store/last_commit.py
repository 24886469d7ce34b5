"""The record of the last commit in a file of its own, next to the catalog.

SQLite drops the end of a damaged write-ahead log and opens an older commit without an error. This file is written after
each commit, so a catalog with a smaller number has lost commits. It leaves out the deleted and changed keys, whose number is
not limited by the change, but holds all else that a repair needs to write a catalog.
"""

from dataclasses import replace
from pathlib import Path

from trilens.errors import CollectionDamaged
from trilens.store.catalog import Catalog
from trilens.store.commit_record import CommitRecord
from trilens.store.failures import clear_errors
from trilens.store.folders import REPAIR, force

COMMIT_FILE = "last-commit"


def write_last_commit(root: Path, record: CommitRecord) -> None:
    """Record a commit."""
    unfinished = root / f"{COMMIT_FILE}.new"
    unfinished.write_bytes(replace(record, deleted=(), changed={}).to_json())
    force(unfinished)
    unfinished.replace(root / COMMIT_FILE)
    force(root)


def read_last_commit(root: Path) -> CommitRecord:
    """A commit that the collection has made; the catalog may be ahead of it, but never behind."""
    path = root / COMMIT_FILE
    with clear_errors(root):
        try:
            content = path.read_bytes()
        except FileNotFoundError as error:
            raise CollectionDamaged(f"{path} is missing; {REPAIR}") from error
    return CommitRecord.from_json(content, str(path))


def require_commit(root: Path, commit: int, recorded: CommitRecord) -> None:
    """Raise if the catalog is older than the recorded commit, which must have been read before the catalog."""
    if commit < recorded.commit:
        raise CollectionDamaged(
            f"the catalog of {root} is at commit {commit}, but commit {recorded.commit} was made: its write-ahead log is "
            f"damaged or missing; {REPAIR}"
        )


def open_verified(root: Path) -> Catalog:
    """The catalog of a collection, verified, in a read transaction that sees its last commit."""
    recorded = read_last_commit(root)
    catalog = Catalog.open(root)
    try:
        catalog.begin()
        require_commit(root, catalog.commit_number(), recorded)
        catalog.verify()
    except BaseException:
        catalog.close()
        raise
    return catalog

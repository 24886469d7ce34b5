"""The number of the last commit in a file of its own.

SQLite drops the end of a damaged write-ahead log and opens an older commit without an error. This file is written after
each commit, so a catalog with a smaller number has lost commits.
"""

from hashlib import blake2b
from pathlib import Path

from trilens.errors import CollectionDamaged
from trilens.store.failures import clear_errors
from trilens.store.folders import REPAIR, force

COMMIT_FILE = "last-commit"


def write_last_commit(root: Path, commit: int) -> None:
    """Record a commit."""
    unfinished = root / f"{COMMIT_FILE}.new"
    unfinished.write_text(_content(commit))
    force(unfinished)
    unfinished.replace(root / COMMIT_FILE)
    force(root)


def read_last_commit(root: Path) -> int:
    """The number of a commit that the collection has made; the catalog may be ahead of it, but never behind."""
    path = root / COMMIT_FILE
    with clear_errors(root):
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError as error:
            raise CollectionDamaged(f"{path} is missing; {REPAIR}") from error
    number = text.partition(" ")[0]
    if not (number.isascii() and number.isdigit() and text == _content(int(number[:20]))):
        raise CollectionDamaged(f"{path} has changed: it does not hold the number of a commit; {REPAIR}")
    return int(number)


def require_commit(root: Path, commit: int, recorded: int) -> None:
    """Raise if the catalog is older than the recorded commit, which must have been read before the catalog."""
    if commit < recorded:
        raise CollectionDamaged(
            f"the catalog of {root} is at commit {commit}, but commit {recorded} was made: its write-ahead log is damaged or "
            f"missing; {REPAIR}"
        )


def _content(commit: int) -> str:
    return f"{commit} {blake2b(str(commit).encode(), digest_size=8).hexdigest()}\n"

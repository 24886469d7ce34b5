"""Creation of a collection: its folder, then its catalog."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from trilens.errors import CollectionExists
from trilens.store.catalog_file import UNFINISHED, remove_unfinished
from trilens.store.commit_record import CommitRecord, write_catalog
from trilens.store.failures import clear_errors
from trilens.store.folders import FOLDER, force
from trilens.store.last_commit import COMMIT_FILE, write_last_commit
from trilens.store.lock import LOCK_NAME, lock
from trilens.store.schema import FILE_NAME

CREATING = "creating"  # the folders beside this file are left-overs of an interrupted restoration


def create_collection(root: Path, record: CommitRecord, fill: Callable[[], object] = lambda: None) -> None:
    """Create a collection at a path that is new, empty or left by a creation or restoration that was interrupted.

    `fill` brings the folders of the record in place. The write lock keeps other processes from creating the collection at the
    same time. The catalog comes last: without it there is no collection.
    """
    with clear_errors(root):
        _require_free(root)
        (root / FOLDER).mkdir(parents=True, exist_ok=True)
        force(root.parent)
        with lock(root):
            _require_free(root)
            (root / CREATING).touch()
            fill()
            force(root / FOLDER)
            write_last_commit(root, record)
            write_catalog(root, record)
            with suppress(OSError):  # the next writer removes it
                (root / CREATING).unlink()


def remove_left_overs(root: Path) -> None:
    """Remove the files of a creation that died when it was done. The caller holds the write lock."""
    remove_unfinished(root)
    (root / CREATING).unlink(missing_ok=True)


def _require_free(root: Path) -> None:
    if (root / FILE_NAME).exists():
        raise CollectionExists(f"{root} holds a collection already; open it, or choose another folder")
    if root.exists() and (not root.is_dir() or any(_foreign(root))):
        raise CollectionExists(f"{root} exists and is not a collection; expected a new or empty folder")


def _foreign(root: Path) -> Iterator[Path]:
    """Files that an interrupted creation cannot have left."""
    ours = {LOCK_NAME, CREATING, COMMIT_FILE, f"{COMMIT_FILE}.new"}
    if (root / CREATING).exists() or not any((root / FOLDER).glob("*")):
        ours.add(FOLDER)
    for path in root.iterdir():
        if path.name not in ours and not path.name.startswith(UNFINISHED):
            yield path

"""The write lock of a collection."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from trilens.errors import CollectionLocked
from trilens.store.failures import clear_errors

LOCK_NAME = "writer.lock"


def lock(root: Path) -> FileLock:
    """Take the write lock of a collection, or raise at once if it is held."""
    taken = FileLock(root / LOCK_NAME, timeout=0, thread_local=False)
    with clear_errors(root):
        try:
            taken.acquire()
        except Timeout as error:
            raise CollectionLocked(
                f"{root} is being written by another process, or through another Collection of this one; "
                "wait until that has committed and run it again"
            ) from error
    return taken


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """Hold the write lock of a collection."""
    taken = lock(root)
    try:
        yield
    finally:
        taken.release()

"""The write lock of a collection."""

import errno
import fcntl
import os
from pathlib import Path

from trilens.errors import CollectionError, CollectionLocked
from trilens.store.failures import clear_errors

LOCK_NAME = "writer.lock"
HELD = (errno.EAGAIN, errno.EACCES)
UNSUPPORTED = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK)


class Lock:
    """A lock that is held until `release`, or until the process ends in whatever way."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    def release(self) -> None:
        """Release the lock, if it is held."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            try:
                fcntl.flock(descriptor, fcntl.LOCK_UN)  # a process that was forked meanwhile has the descriptor, too
            finally:
                os.close(descriptor)

    def __enter__(self) -> "Lock":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def __del__(self) -> None:
        self.release()


def lock(root: Path) -> Lock:
    """Take the write lock of a collection, or raise at once if it is held.

    A file system without `flock` is refused: the existence of a file as the lock would outlive a process that is killed.
    """
    with clear_errors(root):
        descriptor = os.open(root / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if error.errno in HELD:
                raise CollectionLocked(
                    f"{root} is being written by another process, or through another Collection of this one; "
                    "wait until that has committed and run it again"
                ) from error
            if error.errno in UNSUPPORTED:
                raise CollectionError(
                    f"the file system of {root} does not support locks ({error.strerror}); use a folder on another one"
                ) from error
            raise
    return Lock(descriptor)

"""Translation of SQLite and file system errors."""

import errno
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from trilens.cancellation import STOPPED
from trilens.errors import (
    CollectionDamaged,
    CollectionError,
    CollectionLocked,
    CollectionMissing,
    CollectionReadOnly,
    OutOfResources,
    Stopped,
    TrilensError,
    shortage,
)
from trilens.store.folders import REPAIR
from trilens.store.schema import FILE_NAME

SQLITE_FILES = 4  # that a connection opens: the database, its log and index, or its journal


@contextmanager
def clear_errors(root: Path) -> Iterator[None]:
    """Translate errors of SQLite, the file system, memory and JSON parsing to errors of trilens."""
    try:
        yield
    except (sqlite3.Error, OSError, MemoryError, json.JSONDecodeError) as error:
        raise _shortage(root, error) or _translate(root, error) from error


def _shortage(root: Path, error: Exception) -> OutOfResources | None:
    """The error of a system without descriptors or memory. SQLite does not say why it could not open a file."""
    name = getattr(error, "sqlite_errorname", "")
    if name == "SQLITE_IOERR_SHMMAP":
        return shortage(root, MemoryError())
    if name == "SQLITE_CANTOPEN":
        try:
            with ExitStack() as opened:
                for _ in range(SQLITE_FILES):
                    opened.enter_context(Path(os.devnull).open("rb"))
        except OSError as refused:
            return shortage(root, refused)
    return shortage(root, error) if isinstance(error, OSError | MemoryError) else None


def _translate(root: Path, error: Exception) -> TrilensError:
    text, name, number = str(error), getattr(error, "sqlite_errorname", ""), getattr(error, "errno", None)
    if name == "SQLITE_INTERRUPT":
        return Stopped(STOPPED)
    full = name in ("SQLITE_FULL", "SQLITE_IOERR_SHMSIZE", "SQLITE_IOERR_SHMOPEN")
    full |= " requested and " in text  # a short write in numpy, which sets no errno
    if full or number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return CollectionReadOnly(f"no space left on the disk of {root}; nothing was committed: free space and run it again")
    if number in (errno.EACCES, errno.EPERM, errno.EROFS) or "readonly" in text:
        return CollectionReadOnly(f"{root} cannot be written ({text}); expected write permission on the folder")
    if "unable to open" in text and not root.exists():
        return CollectionMissing(f"the folder {root} is gone; put it back, or restore the collection from a backup")
    if "unable to open" in text:
        return CollectionReadOnly(f"the catalog in {root} cannot be opened ({text}); check the folder's permissions")
    if "locked" in text or "busy" in text:
        return CollectionLocked(f"{root} is being written by another process; wait for it to finish and run it again")
    if name.startswith("SQLITE_IOERR") or number == errno.EIO:
        reason = getattr(error, "strerror", None) or text
        return CollectionError(f"{root} cannot be read or written ({reason}); check the disk and run it again")
    if isinstance(error, OSError):
        return CollectionError(f"{root} cannot be used ({error.strerror or text}); choose another folder")
    return CollectionDamaged(f"{root / FILE_NAME} cannot be read ({text}); {REPAIR}")

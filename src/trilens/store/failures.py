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
    CollectionReadOnly,
    OutOfResources,
    Stopped,
    TrilensError,
    shortage,
)
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
    if getattr(error, "sqlite_errorname", None) == "SQLITE_CANTOPEN":
        try:
            with ExitStack() as opened:
                for _ in range(SQLITE_FILES):
                    opened.enter_context(Path(os.devnull).open("rb"))
        except OSError as refused:
            return shortage(root, refused)
    return shortage(root, error) if isinstance(error, OSError | MemoryError) else None


def _translate(root: Path, error: Exception) -> TrilensError:
    text = str(error)
    if getattr(error, "sqlite_errorname", None) == "SQLITE_INTERRUPT":
        return Stopped(STOPPED)
    full = getattr(error, "sqlite_errorname", None) in ("SQLITE_FULL", "SQLITE_IOERR_SHMSIZE")
    full |= " requested and " in text  # a short write in numpy, which sets no errno
    if full or getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return CollectionReadOnly(f"no space left on the disk of {root}; nothing was committed: free space and run it again")
    if getattr(error, "errno", None) in (errno.EACCES, errno.EPERM, errno.EROFS) or "readonly" in text:
        return CollectionReadOnly(f"{root} cannot be written ({text}); expected write permission on the folder")
    if "unable to open" in text:
        return CollectionReadOnly(f"the catalog in {root} cannot be opened ({text}); check the folder's permissions")
    if "locked" in text or "busy" in text:
        return CollectionLocked(f"{root} is being written by another process; wait for it to finish and run it again")
    if isinstance(error, OSError):
        return CollectionError(f"{root} cannot be used ({error.strerror or text}); choose another folder")
    return CollectionDamaged(f"{root / FILE_NAME} cannot be read ({text}); run `trilens check` or restore a copy")

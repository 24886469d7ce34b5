"""Translation of SQLite and file system errors."""

import errno
import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trilens.cancellation import STOPPED
from trilens.errors import CollectionDamaged, CollectionError, CollectionLocked, CollectionReadOnly, Stopped, TrilensError
from trilens.store.schema import FILE_NAME


@contextmanager
def clear_errors(root: Path) -> Iterator[None]:
    """Translate errors of SQLite, the file system and JSON parsing to errors of trilens."""
    try:
        yield
    except (sqlite3.Error, OSError, json.JSONDecodeError) as error:
        raise _translate(root, error) from error


def _translate(root: Path, error: sqlite3.Error | OSError | json.JSONDecodeError) -> TrilensError:
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

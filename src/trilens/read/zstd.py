"""Zstandard compression (.zst): the module of Python 3.14 or its backport, which the extra `formats` installs."""

from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Literal, cast

from trilens.errors import BadInput
from trilens.read.extra import INSTALL
from trilens.text.files import shown


def _module() -> Any:
    for name in ("compression.zstd", "backports.zstd"):
        with suppress(ImportError):
            return import_module(name)
    return None


zstd = _module()
DAMAGE: tuple[type[Exception], ...] = (zstd.ZstdError,) if zstd else ()
"""What reading a damaged file raises."""


def open_zstd(path: Path, file: IO[bytes] | None = None, mode: Literal["rb", "wb"] = "rb") -> IO[bytes]:
    """Open a file, or the open `file` of this path."""
    if zstd is None:
        raise BadInput(f"{shown(path)} is compressed by Zstandard, for which a package is not installed: {INSTALL}")
    return cast(IO[bytes], zstd.open(file or path, mode))

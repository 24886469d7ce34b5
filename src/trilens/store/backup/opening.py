"""Selection of the kind of place from the address that a user gives."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from trilens.errors import BadInput, CollectionMissing
from trilens.store.backup.folder_place import FolderPlace
from trilens.store.backup.place import BackupPlace, SharedPlace
from trilens.store.backup.remote_place import RemotePlace
from trilens.store.backup.tar_place import SUFFIXES, TarPlace


@contextmanager
def open_place(address: str | Path) -> Iterator[BackupPlace]:
    """The place at an address: an archive by its suffix, an fsspec file system by its scheme, or a folder."""
    place = _place(address)
    try:
        yield place
    finally:
        place.close()


@contextmanager
def open_existing(address: str | Path) -> Iterator[BackupPlace]:
    """The place at an address, which must exist if it is local."""
    if "://" not in str(address) and not Path(address).exists():
        raise CollectionMissing(f"there is no backup at {address}; make one with `trilens backup COLLECTION {address}`")
    with open_place(address) as place:
        yield place


@contextmanager
def open_shared(address: str | Path) -> Iterator[SharedPlace]:
    """The place at an address that several machines use, which cannot be an archive."""
    with open_place(address) as place:
        if isinstance(place, TarPlace):
            raise BadInput(f"{address} is an archive; expected a folder, or an address of fsspec such as s3://bucket/name")
        yield cast(SharedPlace, place)


def _place(address: str | Path) -> BackupPlace:
    if "://" in str(address):
        return RemotePlace(str(address))
    path = Path(address)
    if path.name.endswith(SUFFIXES) and not path.is_dir():
        return TarPlace(path)
    if path.exists() and not path.is_dir():
        raise BadInput(f"{path} is a file; expected a folder, a name that ends in {' or '.join(SUFFIXES)}, or an address")
    return FolderPlace(path)

"""Backups at an address of fsspec, such as an S3 bucket."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any

from trilens.errors import BadInput, ServiceFailed, TrilensError
from trilens.store.backup.lease import Lease, create_file
from trilens.store.backup.place import BLOCK_BYTES, COMMITS, LOCK_NAME, UNFINISHED, ByteSource, missing


class RemotePlace:
    """A file system of fsspec. Credentials and endpoints come from its configuration and the environment."""

    holds_one = False

    def __init__(self, address: str) -> None:
        self.name = address
        with self._errors():
            self._files, self._root = _file_system(address)
        self._made: set[str] = set()
        self._lease = Lease(self._files, self._path(LOCK_NAME), address)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold a lease, which other machines respect and which ends by itself when this one dies."""
        with self._errors():
            self._require_top()
            self._make_folder(LOCK_NAME)
            self._lease.acquire()
        try:
            yield
        finally:
            with self._errors():
                self._lease.release()

    def sizes(self, inside: str = "") -> dict[str, int]:
        """The size of every file, or of those in one folder."""
        with self._errors():
            self._files.invalidate_cache()
            found = self._files.find(self._path(inside).rstrip("/"), detail=True)
            return {path.removeprefix(self._root).lstrip("/"): entry["size"] for path, entry in found.items()}

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """Open a file for reading."""
        with self._errors():
            self._lease.renew()
            try:
                file = self._files.open(self._path(name), "rb")
            except FileNotFoundError as error:
                raise missing(self, name) from error
            with file:
                yield file

    def write(self, name: str, size: int, content: ByteSource) -> None:
        """Write a file. Records are moved to their name: writing is not atomic everywhere, and part of a record is damage."""
        with self._errors():
            self._make_folder(name)
            if name.startswith(f"{COMMITS}/"):
                unfinished = f"{name}{UNFINISHED}"
                self._write(unfinished, size, content)
                self._files.mv(self._path(unfinished), self._path(name))
            else:
                self._write(name, size, content)

    def create(self, name: str, content: bytes) -> bool:
        """Create a file if there is none, which is one request of the server."""
        with self._errors():
            self._make_folder(name)
            return create_file(self._files, self._path(name), content)

    def remove(self, names: Iterable[str]) -> None:
        """Remove files."""
        paths = [self._path(name) for name in names]
        with self._errors():
            self._lease.renew()
            if paths:
                self._files.rm(paths)

    def close(self) -> None:
        """fsspec closes connections itself."""

    def _write(self, name: str, size: int, content: ByteSource) -> None:
        self._lease.renew()
        if size <= BLOCK_BYTES:
            self._files.pipe_file(self._path(name), content.read(size))
            return
        with self._files.open(self._path(name), "wb") as file:
            while block := content.read(BLOCK_BYTES):
                file.write(block)
                self._lease.renew()

    def _require_top(self) -> None:
        """Raise if the bucket, or the first folder, does not exist: a mistake in its name must not create another one."""
        top = self._root[:1] + self._root[1:].partition("/")[0]
        try:
            self._files.info(top)
        except FileNotFoundError as error:
            raise BadInput(f"{self.name} cannot be used: there is no {top}; create it first, or correct the name") from error

    def _make_folder(self, name: str) -> None:
        """Make the folder of a file, once; object stores ignore it."""
        folder = self._path(name).rpartition("/")[0]
        if folder not in self._made:
            self._files.makedirs(folder, exist_ok=True)
            self._made.add(folder)

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except TrilensError:
            raise
        except Exception as error:  # each file system of fsspec raises the errors of its own client
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            raise ServiceFailed(
                f"{self.name} cannot be used ({reason}); check the address, its credentials and space"
            ) from error


def _file_system(address: str) -> tuple[Any, str]:
    """The file system of an address, and the path in it."""
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise BadInput(f"{address} needs fsspec: run `pip install 'trilens[backup]'`, or back up to a folder") from error
    try:
        files, root = url_to_fs(address, use_listings_cache=False)
    except (ImportError, ValueError) as error:
        raise BadInput(f"{address} cannot be used ({error}); expected an address of an installed fsspec file system") from error
    return files, root.rstrip("/")

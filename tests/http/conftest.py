from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx")

from ..cli.conftest import trilens as trilens
from .running import READ_KEY, WRITE_KEY, Running, make_collection, running


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_collection(tmp_path_factory.mktemp("served") / "small.trilens")


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection that needs no model, so that a service starts fast."""
    return make_collection(tmp_path_factory.mktemp("plain") / "plain.trilens", ("bm25",))


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("keys") / "keys.txt"
    file.write_text(f"# of the tests\nread {READ_KEY}\nwrite {WRITE_KEY}\n")
    file.chmod(0o600)
    return file


@pytest.fixture(scope="session")
def service(made: Path) -> Iterator[Running]:
    """Read-only and open, as `trilens serve COLLECTION` is."""
    with running(made, "--max-k", 100, "--max-queries", 40, "--max-body", 200_000) as service:
        yield service


@pytest.fixture(scope="session")
def writable(keys: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """With keys, and with documents that may be changed."""
    path = make_collection(tmp_path_factory.mktemp("writable") / "notes.trilens", ("bm25",))
    with running(path, "--keys", keys, "--write") as service:
        yield service

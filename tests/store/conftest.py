from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from trilens.store import merge, writer
from trilens.store.commit_record import CommitRecord
from trilens.store.config import CollectionConfig, PassageConfig
from trilens.store.creation import create_collection

MEMORY = Path("/dev/shm")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A temporary folder, in memory where possible: thousands of fsyncs take minutes on a busy disk."""
    with TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as path:
        yield Path(path)


@pytest.fixture
def root(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty collection for `coded_collection`, whose segments and merges are small."""
    monkeypatch.setattr(writer, "BUFFER_PASSAGES", 5)
    monkeypatch.setattr(merge, "FANOUT", 3)
    monkeypatch.setattr(merge, "SMALLEST", 6)
    config = CollectionConfig(lenses=("bm25",), passages=PassageConfig(words=6, overlap=2))
    create_collection(folder, CommitRecord.empty(config))
    return folder

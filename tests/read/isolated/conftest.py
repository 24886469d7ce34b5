"""Files of other programs, and a way to read them that shares one child process."""

import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from trilens.errors import BadInput
from trilens.read.decode import open_bytes
from trilens.read.formats import InputFile
from trilens.read.isolated.parser_process import ParserProcess
from trilens.read.reader_table import reader_for
from trilens.text.document import Document

Documents = Callable[[Path | str], list[Document | BadInput]]
Repack = Callable[[str, str, bytes, bytes], Path]


@pytest.fixture(scope="session")
def data() -> Path:
    return Path(__file__).parents[1] / "data"


@pytest.fixture(scope="session")
def parser() -> Iterator[ParserProcess]:
    with ParserProcess() as process:
        yield process


@pytest.fixture(scope="session")
def documents(data: Path, parser: ParserProcess) -> Documents:
    """The documents of a file, which is looked up in the data."""

    def read_file(path: Path | str) -> list[Document | BadInput]:
        path = data / path
        reader = reader_for(path.name)
        assert reader is not None
        with open_bytes(path) as stream:
            return list(reader.read(InputFile(stream, path.name, path.name, parser=parser)))

    return read_file


@pytest.fixture
def repack(data: Path, tmp_path: Path) -> Repack:
    """A copy of an archive in which the first occurrence of some bytes of one member is replaced."""

    def replaced(name: str, member: str, old: bytes, new: bytes) -> Path:
        path = tmp_path / name
        with zipfile.ZipFile(data / name) as source, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
            for info in source.infolist():
                raw = source.read(info)
                if info.filename == member:
                    assert old in raw
                    raw = raw.replace(old, new, 1)
                target.writestr(info.filename, raw)
        return path

    return replaced

"""The built-in readers, and readers of installed packages: real dist-info folders on the import path."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import trilens
from trilens.errors import BadInput
from trilens.read.formats import Reader
from trilens.read.reader_table import (
    CODE,
    CSV,
    HTML,
    JSON,
    JSONL,
    MARKDOWN,
    MBOX,
    PDF,
    PYTHON,
    TEXT,
    TSV,
    built_in_formats,
    reader_for,
    reader_table,
)
from trilens.read.readers import read
from trilens.read.skipped import Skipped
from trilens.text.document import Document

UPPER = """
from trilens.text.document import Document
from trilens.read.formats import PageContent, Reader, page_reader

def read_pairs(file):  # a binary format: pairs of a length byte and as many bytes of Latin-1
    while size := file.stream.read(1):
        file.line += 1
        yield Document(f"{file.name}#{file.line}", file.stream.read(size[0]).decode("latin-1"))

UPPER = page_reader([".upper"], "upper case", lambda file: PageContent("", file.text().upper(), {"kind": "upper"}))
PAIRS = Reader((".pairs",), "length-prefixed texts", read_pairs, compressible=True)
CLASH = page_reader([".new", ".md"], "another Markdown", UPPER.read)
AGAIN = page_reader([".upper"], "another upper case", UPPER.read)
WRONG = page_reader
"""
PRINT = """
import sys
from trilens.read.readers import read
for document in read([sys.argv[1]]):
    print(document.doc_id, document.title, document.text, dict(document.metadata), sep="|")
"""


def install(folder: Path, entries: str, code: str = UPPER, name: str = "upper_reader") -> Path:
    """A package as pip installs it: a module and the folder of its metadata."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[trilens.readers]\n{entries}\n")
    (folder / f"{name}.py").write_text(code)
    return folder


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder on the import path."""
    monkeypatch.syspath_prepend(tmp_path / "packages")
    reader_table.cache_clear()
    yield tmp_path / "packages"
    reader_table.cache_clear()
    sys.modules.pop("upper_reader", None)


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "a.upper").write_text("some words")
    (folder / "b.pairs").write_bytes(b"\x03caf\x04\xe9 au")
    (folder / "c.txt").write_text("plain")
    return folder


@pytest.mark.parametrize(
    ("name", "reader"),
    [
        ("a.jsonl", JSONL),
        ("a.NDJSON.gz", JSONL),
        ("a.json.xz", JSON),
        ("a.b.tsv.bz2", TSV),
        ("a.csv", CSV),
        ("a.HTM", HTML),
        ("a.markdown", MARKDOWN),
        ("a.txt.gz", TEXT),
        ("a.md.ZST", MARKDOWN),
        ("a.py.xz", PYTHON),
        ("a.rs", CODE),
        ("a.mbox.gz", MBOX),
        ("a.PDF", PDF),
        ("a.pdf.gz", None),
        ("a.gz", None),
        ("jsonl", None),
        (".txt", None),
    ],
)
def test_the_suffix_selects_the_reader(name: str, reader: Reader | None) -> None:
    assert reader_for(name) is reader


def test_built_in_formats_are_listed_for_help_texts() -> None:
    formats = built_in_formats()
    assert formats.startswith("JSON Lines, JSON, CSV, TSV, plain text, Markdown, HTML, ")
    assert "PDF, DOCX, PPTX, XLSX, EPUB" in formats


def test_a_package_adds_formats_in_another_process(tmp_path: Path, documents: Path) -> None:
    packages = install(tmp_path / "packages", "upper = upper_reader:UPPER\npairs = upper_reader:PAIRS")
    path = os.pathsep.join([str(packages), str(Path(trilens.__file__).parents[1])])
    environment = {**os.environ, "PYTHONPATH": path}
    run = subprocess.run(
        [sys.executable, "-c", PRINT, str(documents)], env=environment, capture_output=True, text=True, check=True
    )
    assert run.stdout.splitlines() == [
        f"a.upper||SOME WORDS|{{'kind': 'upper', 'path': '{documents / 'a.upper'}'}}",
        "b.pairs#1||caf|{}",
        "b.pairs#2||é au|{}",
        f"c.txt||plain|{{'path': '{documents / 'c.txt'}'}}",
    ]


def test_a_repeated_id_of_a_package_is_reported_with_its_line(packages: Path, documents: Path) -> None:
    install(packages, "pairs = upper_reader:PAIRS")
    with pytest.raises(BadInput, match=r"b.pairs:1: the id 'b.pairs#1' was read before at .*b.pairs:1;"):
        list(read([documents / "b.pairs", documents / "b.pairs"]))


def test_unknown_suffixes_list_those_of_packages(packages: Path, documents: Path) -> None:
    install(packages, "upper = upper_reader:UPPER")
    with pytest.raises(BadInput, match=r"b.pairs has no known suffix; expected .jsonl, .*\.html, .*, \.upper or another"):
        list(read([documents / "b.pairs"]))


@pytest.mark.parametrize(
    ("entries", "code", "message"),
    [
        (
            "md = upper_reader:CLASH",
            UPPER,
            r"'md' of upper_reader .*:CLASH\) reads \.md, which trilens itself already reads",
        ),
        (
            "a = upper_reader:UPPER\nb = upper_reader:AGAIN",
            UPPER,
            r"'b' of upper_reader .* reads \.upper, which the entry point 'a'",
        ),
        ("w = upper_reader:WRONG", UPPER, r"'w' of upper_reader .* is a function; expected a trilens.read.formats.Reader"),
        ("n = upper_reader:NONE", UPPER, r"'n' of upper_reader .* cannot be imported \(AttributeError: .*'NONE'"),
        ("x = upper_reader:X", "import nowhere", r"'x' of .* cannot be imported \(ModuleNotFoundError: .*'nowhere'"),
        ("s = upper_reader:S", "1 +", r"'s' of .* cannot be imported \(SyntaxError: "),
        ("z = upper_reader:Z", "1 / 0", r"'z' of .* cannot be imported \(ZeroDivisionError: "),
        (
            "p = upper_reader:P",
            "from trilens.read.formats import *\nP = page_reader(['.PDF'], 'PDF', None)",
            r"'p' of .* cannot be imported \(BadInput: the suffixes of a reader are \('.PDF',\)",
        ),
    ],
)
def test_an_unusable_entry_point_is_one_error(packages: Path, documents: Path, entries: str, code: str, message: str) -> None:
    install(packages, entries, code)
    with pytest.raises(BadInput, match=message) as caught:
        list(read([documents / "c.txt"]))
    assert "\n" not in str(caught.value)
    assert "repair the package or uninstall it" in str(caught.value)
    errors: list[Skipped] = []
    expected = [Document("c.txt", "plain", metadata={"path": str(documents / "c.txt")})]
    assert list(read([documents / "c.txt"], on_skip=errors.append)) == expected
    assert [str(error) for error in errors] == [str(caught.value)]


def test_entry_points_are_loaded_once(packages: Path, documents: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(packages, "upper = upper_reader:UPPER", UPPER + "print('loaded')")
    for _ in range(2):
        assert [document.text for document in read([documents / "a.upper"])] == ["SOME WORDS"]
    assert capsys.readouterr().out == "loaded\n"

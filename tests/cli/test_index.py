"""`trilens index` over real folders: what cannot be read is skipped and summarised."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from threading import Event

import pytest

from tests.read.nasty import SUMMARY, make_nasty
from trilens.cli import progress
from trilens.read.readers import Item
from trilens.store.sources import SourceMemory

from .conftest import Trilens

DATA = Path(__file__).parents[1] / "read" / "data"


@pytest.fixture
def nasty(tmp_path: Path) -> tuple[Path, int]:
    folder = tmp_path / "nasty"
    folder.mkdir()
    return folder, make_nasty(folder)


def test_a_nasty_folder_is_indexed_with_a_truthful_summary(nasty: tuple[Path, int], tmp_path: Path, trilens: Trilens) -> None:
    folder, documents = nasty
    outcome = trilens("index", folder, "--to", tmp_path / "c", "--lens", "bm25", "--json")
    assert outcome.code == 0, outcome.err
    assert outcome.err.splitlines()[-2:] == SUMMARY
    assert (outcome.json["added"], outcome.json["documents"]) == (documents, documents)


def test_strict_stops_and_a_named_file_is_never_skipped(tmp_path: Path, trilens: Trilens) -> None:
    folder, target = tmp_path / "folder", tmp_path / "c"
    folder.mkdir()
    (folder / "a.txt").write_text("words")
    (folder / "b.txt").write_bytes(b"")
    for arguments in ([folder, "--strict"], [folder / "a.txt", folder / "b.txt"]):
        outcome = trilens("index", *arguments, "--to", target, "--lens", "bm25")
        assert (outcome.code, outcome.err.count("\n")) == (1, 1)
        assert "b.txt: the file holds no text" in outcome.err
        assert not target.exists()
    assert trilens("index", folder / "a.txt", folder / "b.txt", "--to", target, "--lens", "bm25", "--skip-bad").code == 0


def test_formats_of_other_programs_are_skipped_by_reason(tmp_path: Path, trilens: Trilens) -> None:
    for package in ("pypdfium2", "docx"):
        pytest.importorskip(package)
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("handbook.pdf", "scanned.pdf", "encrypted.pdf", "encrypted.docx"):
        shutil.copy(DATA / name, folder)
    (folder / "empty.pdf").touch()
    (folder / "cut.docx").write_bytes((DATA / "handbook.docx").read_bytes()[:5000])
    (folder / "junk.pdf").write_bytes(b"junk")
    outcome = trilens("index", folder, "--to", tmp_path / "c", "--lens", "bm25")
    summary = "skipped 6 files: 2 damaged, 2 encrypted, 1 empty, 1 scanned or without text"
    assert (outcome.code, outcome.err.splitlines()[-1]) == (0, summary)


def test_a_bad_file_that_is_named_is_one_line(tmp_path: Path) -> None:
    """In a process of its own: the one that parses the file must end before the interpreter does."""
    pytest.importorskip("pypdfium2")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "trilens",
        "index",
        DATA / "scanned.pdf",
        "--to",
        tmp_path / "c",
        "--lens",
        "bm25",
    ]
    ended = subprocess.run(command, capture_output=True, check=False, env=environment)
    assert (ended.returncode, ended.stderr.count(b"\n")) == (1, 1), ended.stderr


def test_a_folder_without_any_document_fails(tmp_path: Path, trilens: Trilens) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "package.json").write_text('{"name": "x"}')
    outcome = trilens("index", tmp_path / "folder", "--to", tmp_path / "c")
    assert (outcome.code, (tmp_path / "c").exists()) == (1, False)
    assert "skipped 1 file: 1 without a text field" in outcome.err


def test_a_folder_without_a_readable_file_says_what_it_holds(tmp_path: Path, trilens: Trilens) -> None:
    (tmp_path / "folder").mkdir()
    for name in ("a.1.gz", "b.1.gz", "c.png"):
        (tmp_path / "folder" / name).write_bytes(b"?")
    outcome = trilens("index", tmp_path / "folder", "--to", tmp_path / "c")
    assert outcome.code == 1
    assert outcome.err.startswith("skipped 3 files: 3 without a reader: .gz 2, .png 1\ntrilens: folder ")


def test_the_first_reading_shows_progress(
    tmp_path: Path, trilens: Trilens, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All input is read before the first document is added, which takes minutes for a large folder."""
    (tmp_path / "rows.csv").write_text("text\none\ntwo\nthree\n")
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.01)
    add, added = SourceMemory.add, list[Item]()

    def wait_for_a_line(memory: SourceMemory, item: Item) -> None:
        add(memory, item)
        while f"reading: {len(added)} docs in " not in capsys.readouterr().err:
            Event().wait(0.01)
        added.append(item)

    monkeypatch.setattr(SourceMemory, "add", wait_for_a_line)
    assert trilens("index", tmp_path / "rows.csv", "--to", tmp_path / "c", "--lens", "bm25").code == 0
    assert len(added) == 3


def test_a_prefix_tells_the_records_of_two_files_apart(tmp_path: Path, trilens: Trilens) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text(f"id,text\n1,words of {name}\n")
    sources = (tmp_path / "a.csv", tmp_path / "b.csv")
    refused = trilens("index", *sources, "--to", tmp_path / "c", "--lens", "bm25")
    assert refused.code == 1
    assert "or use --id-prefix" in refused.err
    prefixed = trilens("index", *sources, "--to", tmp_path / "c", "--lens", "bm25", "--id-prefix", "{file}#", "--json")
    assert prefixed.json["documents"] == 2
    assert trilens("get", tmp_path / "c", "b.csv#1", "--json").json["text"] == "words of b"


def test_columns_are_filtered_by_their_type_and_a_mistake_is_reported(tmp_path: Path, trilens: Trilens) -> None:
    (tmp_path / "rows.csv").write_text(
        "text,year,zip,bought\nold words,1999,01099,31.12.1999\nrecent words,2021,80331,1.6.2021 14:30\n"
    )
    assert trilens("index", tmp_path / "rows.csv", "--to", tmp_path / "c", "--lens", "bm25").code == 0
    recent = trilens("search", tmp_path / "c", "words", "--filter", '{"year": {"$gte": 2020}}', "--json")
    assert [hit["text"] for hit in recent.json["hits"]] == ["recent words"]
    assert recent.err == ""
    bought = trilens("search", tmp_path / "c", "words", "--filter", '{"bought": {"$gte": "2020-01-01"}}', "--json")
    assert [hit["metadata"]["bought"] for hit in bought.json["hits"]] == ["2021-06-01T14:30:00Z"]
    mistaken = trilens("search", tmp_path / "c", "words", "--filter", '{"zip": 1099}', "--json")
    assert (mistaken.json["hits"], mistaken.code) == ([], 0)
    assert mistaken.err == "note: zip is text in 2 documents; expected a number, with which the filter compares it\n"

"""`trilens index` again: unchanged files are not read, --prune removes what is gone, --watch follows; kills lose nothing."""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from trilens.cli import progress
from trilens.collection import Collection
from trilens.errors import BadInput
from trilens.read import reader_table
from trilens.read.formats import InputFile
from trilens.store.sources import SOURCES, SourceMemory
from trilens.text.document import Document

from .conftest import Trilens
from .test_interrupts import listen_to_sigint

LONG_AGO_NS = 1_000_000_000 * 10**9
SECONDS = 240  # of waiting for a process on a busy machine


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three pages and a file of two records, all written long ago."""
    folder = tmp_path / "docs"
    folder.mkdir()
    for name in ("a", "b", "c"):
        write(folder / f"{name}.txt", f"page {name}")
    write(folder / "rows.jsonl", *records("1", "2"))
    return folder


def records(*ids: str) -> list[str]:
    return [json.dumps({"id": doc_id, "text": f"row {doc_id}"}) for doc_id in ids]


def write(path: Path, *lines: str, modified_ns: int = LONG_AGO_NS) -> None:
    path.write_text("\n".join(lines))
    os.utime(path, ns=(modified_ns, modified_ns))


def ids(target: Path) -> list[str]:
    with Collection.open(target) as collection:
        return sorted(document.doc_id for document in collection.documents())


@pytest.fixture
def index(folder: Path, tmp_path: Path, trilens: Trilens) -> Callable[..., dict[str, int]]:
    def run(*options: str) -> dict[str, int]:
        outcome = trilens("index", folder, "--to", tmp_path / "c", "--lens", "bm25", "--json", *options)
        assert outcome.code == 0, outcome.err
        answer: dict[str, int] = outcome.json
        return answer

    assert run()["added"] == 5
    return run


def test_a_file_of_the_same_time_and_size_is_not_read(
    folder: Path, tmp_path: Path, index: Callable[..., dict[str, int]]
) -> None:
    write(folder / "a.txt", "PAGE A")
    assert (index()["replaced"], index()["unchanged"]) == (0, 5)
    write(folder / "a.txt", "PAGE A", modified_ns=LONG_AGO_NS + 1)
    assert (index()["replaced"], index()["unchanged"]) == (1, 5)


def test_a_file_is_read_again_if_its_documents_or_the_options_have_changed(
    folder: Path, tmp_path: Path, index: Callable[..., dict[str, int]]
) -> None:
    with Collection.open(tmp_path / "c") as collection:
        collection.delete(["a.txt"])
    assert index()["added"] == 1
    assert index("--id-prefix", "x/")["added"] == 5


def test_what_was_just_written_is_compared_by_content(folder: Path, index: Callable[..., dict[str, int]]) -> None:
    (folder / "a.txt").write_text("page 1")
    modified_ns = (folder / "a.txt").stat().st_mtime_ns
    assert index()["replaced"] == 1
    write(folder / "a.txt", "page 2", modified_ns=modified_ns)
    assert index()["replaced"] == 1


def test_a_file_that_cannot_be_read_is_parsed_once(
    folder: Path, index: Callable[..., dict[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[str] = []

    def parse(file: InputFile) -> Iterator[Document]:
        parsed.append(file.name)
        if file.name == "half.log":
            yield Document("half", "words")
        raise BadInput(f"{file.where} takes more than 60 s to parse")

    write(folder / "slow.log", "words")
    write(folder / "half.log", "words")
    readers = dict(reader_table.reader_table().by_suffix) | {".log": replace(reader_table.LIKE_TEXT, read=parse)}
    monkeypatch.setattr(reader_table, "reader_table", lambda: reader_table.ReaderTable(readers, ()))
    answer = index()
    assert (answer["added"], answer["skipped"]) == (1, 2)
    assert parsed == ["half.log", "slow.log", "half.log"]


def test_prune_removes_files_and_records_that_are_gone(
    folder: Path, tmp_path: Path, index: Callable[..., dict[str, int]], trilens: Trilens
) -> None:
    other = tmp_path / "other.jsonl"
    write(other, *records("3"))
    assert trilens("index", other, "--to", tmp_path / "c").code == 0
    (folder / "a.txt").unlink()
    write(folder / "rows.jsonl", *records("2"), modified_ns=LONG_AGO_NS + 1)
    assert index()["deleted"] == 0
    assert index("--prune")["deleted"] == 2
    assert ids(tmp_path / "c") == ["2", "3", "b.txt", "c.txt"]
    assert index("--prune")["deleted"] == 0


def test_prune_spares_what_cannot_be_read_or_is_elsewhere(
    folder: Path, tmp_path: Path, index: Callable[..., dict[str, int]]
) -> None:
    write(folder / "a.txt", "")
    (folder / "b.txt").unlink()
    (folder / "b.txt").symlink_to("nowhere")
    write(folder / "rows.jsonl", *records("1"), "{broken")
    write(folder / "more.jsonl", *records("2"))
    assert index("--prune")["deleted"] == 0
    write(folder / "rows.jsonl", *records("1"), modified_ns=LONG_AGO_NS + 1)
    assert index("--prune")["deleted"] == 0  # the record 2 has moved to another file
    (folder / "more.jsonl").unlink()
    assert index("--prune")["deleted"] == 1
    with Collection.open(tmp_path / "c") as collection:
        collection.upsert([document_of(collection, "c.txt")])
    (folder / "c.txt").unlink()
    assert index("--prune")["deleted"] == 0  # it was changed by someone else since


def document_of(collection: Collection, doc_id: str) -> Document:
    document = collection.get(doc_id)
    assert document is not None
    return replace(document, text="written by hand")


def test_prune_spares_folders_that_are_not_there_at_the_moment(tmp_path: Path, trilens: Trilens) -> None:
    """A link to a disk that is not mounted leads nowhere, and what was below it is not gone."""
    folder, disk = tmp_path / "docs", tmp_path / "disk"
    for place in (folder, disk / "manuals"):
        place.mkdir(parents=True)
        write(place / "a.txt", f"page of {place.name}")
    (folder / "disk").symlink_to(disk)
    command = ("index", folder, "--to", tmp_path / "c", "--lens", "bm25", "--prune", "--json")
    assert trilens(*command).json["added"] == 2
    disk.rename(tmp_path / "unmounted")
    without = trilens(*command)
    assert (without.json["deleted"], without.json["documents"]) == (0, 2)
    assert without.err == "skipped 1 file: 1 dangling link\n"
    (folder / "disk").unlink()
    assert trilens(*command).json["deleted"] == 1


def test_prune_does_not_take_a_missing_or_empty_source_for_one_without_documents(
    folder: Path, tmp_path: Path, index: Callable[..., dict[str, int]], trilens: Trilens
) -> None:
    folder.rename(tmp_path / "moved")
    command = ("index", folder, "--to", tmp_path / "c", "--prune")
    assert "docs does not exist" in trilens(*command).err
    folder.mkdir()
    assert "docs holds no readable file" in trilens(*command).err
    other = tmp_path / "other.jsonl"
    write(other, *records("3"))
    answer = trilens(*command, other, "--skip-bad", "--json").json
    assert (answer["deleted"], answer["documents"]) == (0, 6)


def test_progress_is_never_that_of_finished_work(
    index: Callable[..., dict[str, int]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing has changed, and removing what is gone takes long."""
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.01)
    shown: list[str] = []

    def after_line(line: str, method: Callable[[SourceMemory], Any]) -> Callable[[SourceMemory], Any]:
        def waiting(memory: SourceMemory) -> Any:
            while line not in capsys.readouterr().err:
                Event().wait(0.01)
            shown.append(line)
            return method(memory)

        return waiting

    monkeypatch.setattr(SourceMemory, "keep", after_line("indexing: 0 docs in ", SourceMemory.keep))
    monkeypatch.setattr(SourceMemory, "gone", after_line("removing: 0 docs in ", SourceMemory.gone))
    assert index("--prune")["unchanged"] == 5
    assert len(shown) == 2


def test_a_collision_with_another_source_is_reported(tmp_path: Path, trilens: Trilens) -> None:
    for name in ("a", "b"):
        write(tmp_path / f"{name}.csv", "id,text", f"1,words of {name}")
    assert trilens("index", tmp_path / "a.csv", "--to", tmp_path / "c", "--lens", "bm25").err == ""
    err = trilens("index", tmp_path / "b.csv", "--to", tmp_path / "c").err
    assert f"1 documents replace those of other sources, such as '1' of {tmp_path / 'a.csv'}; --id-prefix" in err


def test_a_damaged_memory_is_made_anew(tmp_path: Path, index: Callable[..., dict[str, int]]) -> None:
    (tmp_path / "c" / SOURCES).write_bytes(b"not a database" * 100)
    assert index()["unchanged"] == 5
    assert index("--prune")["unchanged"] == 5


KILLS = {
    "before the commit": "Collection.ingest = killed",
    "after the commit": "SourceMemory.gone = killed",
    "before the removal": "Collection.delete = killed",
    "after the removal": "SourceMemory.forget = killed",
}


@pytest.mark.parametrize("moment", KILLS)
def test_a_kill_loses_nothing_and_removes_nothing_wrongly(
    moment: str, folder: Path, tmp_path: Path, index: Callable[..., dict[str, int]]
) -> None:
    (folder / "a.txt").unlink()
    write(folder / "b.txt", "another page")
    write(folder / "d.txt", "one more page")
    write(folder / "rows.jsonl", *records("2", "3"), modified_ns=LONG_AGO_NS + 1)
    script = f"""
import os, signal
from trilens.cli.main import main
from trilens.collection import Collection
from trilens.store.sources import SourceMemory

def killed(*_):
    os.kill(os.getpid(), signal.SIGKILL)

{KILLS[moment]}
main()
"""
    command: list[str | Path] = [sys.executable, "-c", script, "index", folder, "--to", tmp_path / "c", "--prune"]
    assert subprocess.run(command, check=False, timeout=SECONDS).returncode == -signal.SIGKILL
    expected = ["2", "3", "b.txt", "c.txt", "d.txt"]
    if moment == "after the removal":
        with Collection.open(tmp_path / "c") as collection:
            collection.add([Document("a.txt", "written by hand")])
        expected = ["2", "3", "a.txt", "b.txt", "c.txt", "d.txt"]
    index("--prune")
    assert ids(tmp_path / "c") == expected
    with Collection.open(tmp_path / "c") as collection:
        assert [collection.get(doc_id).text for doc_id in ("b.txt", "3")] == ["another page", "row 3"]  # type: ignore[union-attr]
        assert collection.check().problems == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_watch_reports_each_change_and_ends_with_a_signal(
    number: signal.Signals, code: int, folder: Path, tmp_path: Path
) -> None:
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "trilens",
        "index",
        folder,
        "--to",
        tmp_path / "c",
        "--lens",
        "bm25",
        "--prune",
        "--watch",
    ]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdout=pipe, stderr=pipe, env=environment, preexec_fn=listen_to_sigint)
    assert process.stdout is not None and process.stderr is not None

    def line() -> str:
        assert process.stdout is not None
        assert select.select([process.stdout], [], [], SECONDS)[0]
        return process.stdout.readline().decode().strip()

    try:
        assert line().startswith("5 added")
        assert process.stderr.readline().decode() == f"watching {folder}; Ctrl-C ends it\n"
        (folder / "d.txt").write_text("one more page")
        assert line() == "updated 0, added 1, removed 0 documents"
        for name in ("a.txt", "rows.jsonl"):
            (folder / name).replace(tmp_path / name)
        assert line() == "updated 0, added 0, removed 3 documents"
        folder.rename(tmp_path / "away")
        assert process.stderr.readline().decode().startswith(f"trilens: {folder} does not exist; ")
        (tmp_path / "away").rename(folder)
        (folder / "d.txt").write_text("another page")
        assert line() == "updated 1, added 0, removed 0 documents"
        shutil.copytree(folder, tmp_path / "copy")
        folder.rename(tmp_path / "old")
        (tmp_path / "copy").rename(folder)
        (folder / "b.txt").write_text("another page as well")
        assert line() == "updated 1, added 0, removed 0 documents"
        shutil.copytree(folder, tmp_path / "copy")
        shutil.rmtree(folder)
        shutil.copytree(tmp_path / "copy", folder)  # may have the number of the old folder
        (folder / "e.txt").write_text("one more page")
        while "e.txt" not in ids(tmp_path / "c"):
            line()
        (folder / "e.txt").unlink()
        while "e.txt" in ids(tmp_path / "c"):
            line()
        process.send_signal(number)
        _, errors = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
    assert (process.returncode, errors.decode().splitlines()[-1]) == (
        code,
        f"trilens: interrupted; 3 documents are kept in {tmp_path / 'c'}, and the same command resumes",
    )
    assert ids(tmp_path / "c") == ["b.txt", "c.txt", "d.txt"]

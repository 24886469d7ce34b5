"""Datasets by name, from a server on this machine: whole downloads, broken ones, wrong ones, and none."""

import hashlib
import io
import re
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from trilens.errors import BadInput, ServiceFailed
from trilens.evaluate.beir_archives import ADDRESS_VARIABLE, ARCHIVES, Archive, beir_folder, fetch, unpack
from trilens.evaluate.datasets import open_dataset

FILES = {
    "tiny/corpus.jsonl": '{"_id": "d", "text": "word"}\n' * 1,
    "tiny/queries.jsonl": '{"_id": "q", "text": "word"}\n',
    "tiny/qrels/test.tsv": "query-id\tcorpus-id\tscore\nq\td\t1\n",
    "tiny/filling.txt": "".join(hashlib.sha256(bytes([number])).hexdigest() for number in range(200)),
}


def zipped(files: dict[str, str]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return stream.getvalue()


class Server(ThreadingHTTPServer):
    """Serves one file at any address; `cut` bytes of each answer at most, ranges if it `resumes`."""

    def __init__(self, content: bytes) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content = content
        self.cut: int | None = None
        self.resumes = True
        self.status = 200
        self.asked: list[str | None] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        asked = self.headers.get("Range")
        self.server.asked.append(asked)
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and self.server.resumes else 0
        if start and start >= len(self.server.content):
            self.send_error(416)
            return
        rest = self.server.content[start:]
        self.send_response(206 if start else self.server.status)
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        self.wfile.write(rest[: self.server.cut])

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(zipped(FILES)) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def archive(server: Server, monkeypatch: pytest.MonkeyPatch) -> Archive:
    monkeypatch.setenv(ADDRESS_VARIABLE, server.address)
    return Archive(hashlib.md5(server.content).hexdigest(), len(server.content))


def test_a_dataset_is_fetched_once(server: Server, archive: Archive, tmp_path: Path) -> None:
    told: list[float] = []
    folder = beir_folder("tiny", archive, tmp_path / "cache", told.append)
    assert {str(path.relative_to(folder.parent)) for path in folder.rglob("*") if path.is_file()} == set(FILES)
    assert sum(told) == len(server.content)
    assert beir_folder("tiny", archive, tmp_path / "cache") == folder
    assert len(server.asked) == 1
    assert {path.name for path in folder.parent.iterdir()} <= {"tiny", "tiny.lock"}


def test_a_download_that_broke_off_goes_on(server: Server, archive: Archive, tmp_path: Path) -> None:
    server.cut = 5000
    for attempt in (1, 2):
        with pytest.raises(ServiceFailed, match=f"broke off after {5000 * attempt:,} bytes; the same command goes on"):
            beir_folder("tiny", archive, tmp_path)
        assert not (tmp_path / "tiny").exists()
        assert not (tmp_path / "tiny.zip").exists()
    server.cut = None
    told: list[float] = []
    folder = beir_folder("tiny", archive, tmp_path, told.append)
    assert (folder / "filling.txt").read_text() == FILES["tiny/filling.txt"]
    assert server.asked == [None, "bytes=5000-", "bytes=10000-"]
    assert (told[0], sum(told)) == (10000, len(server.content))


def test_a_server_that_cannot_go_on_begins_again(server: Server, archive: Archive, tmp_path: Path) -> None:
    server.cut, server.resumes = 5000, False
    with pytest.raises(ServiceFailed, match="broke off after 5,000 bytes"):
        beir_folder("tiny", archive, tmp_path)
    server.cut = None
    assert (beir_folder("tiny", archive, tmp_path) / "corpus.jsonl").is_file()


def test_what_was_whole_but_not_yet_named_so_is_used(server: Server, archive: Archive, tmp_path: Path) -> None:
    """A process that died between the last byte and the check."""
    (tmp_path / "tiny.zip.part").write_bytes(server.content)
    assert (beir_folder("tiny", archive, tmp_path) / "corpus.jsonl").is_file()


def test_a_wrong_checksum_is_refused_and_nothing_is_kept(server: Server, archive: Archive, tmp_path: Path) -> None:
    wrong = Archive("0" * 32, archive.bytes)
    with pytest.raises(BadInput, match=f"md5 checksum {archive.md5}; expected {'0' * 32}"):
        beir_folder("tiny", wrong, tmp_path)
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".lock"] == []


def test_bytes_of_another_version_before_the_break_are_refused(server: Server, archive: Archive, tmp_path: Path) -> None:
    (tmp_path / "tiny.zip.part").write_bytes(b"x" * 100)
    with pytest.raises(BadInput, match="nothing was kept, try again"):
        beir_folder("tiny", archive, tmp_path)
    assert (beir_folder("tiny", archive, tmp_path) / "corpus.jsonl").is_file()


def test_a_server_that_refuses_is_told(server: Server, tmp_path: Path) -> None:
    server.status = 404
    with pytest.raises(ServiceFailed, match=r"answered 404 Not Found; download it where there is a network"):
        fetch(f"{server.address}/x.zip", tmp_path / "x.zip", "", lambda count: None)


@pytest.mark.parametrize("address", ["http://127.0.0.1:9/", "http://no-such-host.invalid/", "no-address"])
def test_without_a_network_the_way_with_a_folder_is_told(address: str, tmp_path: Path) -> None:
    with pytest.raises(ServiceFailed, match=r"cannot be reached .* give its folder instead of the name"):
        fetch(f"{address}x.zip", tmp_path / "x.zip", "", lambda count: None)


@pytest.mark.parametrize(
    "member", ["../outside.txt", "/etc/outside.txt", "tiny/../../outside.txt", "..\\outside.txt", "C:/x.txt"]
)
def test_members_that_lead_outside_are_refused(member: str, tmp_path: Path) -> None:
    (tmp_path / "in" / "deep").mkdir(parents=True)
    path = tmp_path / "in" / "deep" / "tiny.zip"
    path.write_bytes(zipped({**FILES, member: "bad"}))
    with pytest.raises(BadInput, match="would lie outside its folder"):
        unpack(path, "tiny", path.with_name("tiny"))
    assert [found.name for found in tmp_path.rglob("*") if found.is_file()] == ["tiny.zip"]


def test_archives_of_something_else_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "tiny.zip"
    path.write_bytes(zipped({"other/corpus.jsonl": "{}"}))
    with pytest.raises(BadInput, match=re.escape("has no tiny/corpus.jsonl")):
        unpack(path, "tiny", tmp_path / "tiny")
    path.write_bytes(b"no zip file")
    with pytest.raises(BadInput, match="is not a zip file that can be read"):
        unpack(path, "tiny", tmp_path / "tiny")
    assert not (tmp_path / "tiny").exists()


def test_an_unpacking_that_was_interrupted_is_done_again(server: Server, archive: Archive, tmp_path: Path) -> None:
    (tmp_path / "tiny.zip").write_bytes(server.content)  # whole: its name says so
    (tmp_path / "tiny.unpacking" / "tiny").mkdir(parents=True)
    (tmp_path / "tiny.unpacking" / "tiny" / "corpus.jsonl").write_text("half")
    folder = beir_folder("tiny", archive, tmp_path)
    assert (folder / "corpus.jsonl").read_text() == FILES["tiny/corpus.jsonl"]
    assert server.asked == []


def test_a_cache_that_cannot_be_written_is_told(archive: Archive, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match=r"cannot be written .* XDG_CACHE_HOME"):
        beir_folder("tiny", archive, tmp_path / "file")


def test_names_are_looked_for_in_the_cache_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv(ADDRESS_VARIABLE, "http://127.0.0.1:9")
    for folder in ("scifact", "cqadupstack/android", "cqadupstack/english"):
        place = tmp_path / "trilens" / "beir" / folder
        (place / "qrels").mkdir(parents=True)
        for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"):
            (place / name).write_text(FILES[f"tiny/{name}"])
    assert open_dataset("beir/scifact").split("test").qrels == {"q": {"d": 1}}
    assert open_dataset("beir/cqadupstack/english").name == "english"
    with pytest.raises(BadInput, match="one of its parts, such as beir/cqadupstack/android"):
        open_dataset("beir/cqadupstack")
    with pytest.raises(BadInput, match="beir/scifact/english is no dataset"):
        open_dataset("beir/scifact/english")
    with pytest.raises(BadInput, match="no BEIR dataset 'scifakt' to download; expected one of arguana"):
        open_dataset("beir/scifakt")
    with pytest.raises(ServiceFailed, match="cannot be reached"):
        open_dataset("beir/nfcorpus")


def test_checksums_are_checksums() -> None:
    assert len(ARCHIVES) == 15
    assert all(re.fullmatch("[0-9a-f]{32}", archive.md5) for archive in ARCHIVES.values())

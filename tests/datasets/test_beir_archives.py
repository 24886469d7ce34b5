"""BEIR downloads from a local server: complete, interrupted, corrupt and unreachable."""

import hashlib
import io
import re
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from trilens.datasets.beir_archives import ADDRESS_VARIABLE, ARCHIVES, BeirArchive, beir_folder, fetch, unpack
from trilens.errors import BadInput, ServiceFailed

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
    """Serves one file at every URL; sends at most `cut` bytes per response, and honours ranges if `resumes` is set."""

    def __init__(self, content: bytes) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content = content
        self.cut: int | None = None
        self.resumes = True
        self.status = 200
        self.ranges: list[str | None] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        requested = self.headers.get("Range")
        self.server.ranges.append(requested)
        start = int(requested.removeprefix("bytes=").removesuffix("-")) if requested and self.server.resumes else 0
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
def archive(server: Server, monkeypatch: pytest.MonkeyPatch) -> BeirArchive:
    monkeypatch.setenv(ADDRESS_VARIABLE, server.address)
    return BeirArchive(hashlib.md5(server.content).hexdigest(), len(server.content))


def test_a_dataset_is_downloaded_once(server: Server, archive: BeirArchive, tmp_path: Path) -> None:
    received: list[float] = []
    folder = beir_folder("tiny", archive, tmp_path / "cache", received.append)
    assert {str(path.relative_to(folder.parent)) for path in folder.rglob("*") if path.is_file()} == set(FILES)
    assert sum(received) == len(server.content)
    assert beir_folder("tiny", archive, tmp_path / "cache") == folder
    assert len(server.ranges) == 1
    assert {path.name for path in folder.parent.iterdir()} <= {"tiny", "tiny.lock"}


def test_an_interrupted_download_is_resumed(server: Server, archive: BeirArchive, tmp_path: Path) -> None:
    server.cut = 5000
    for attempt in (1, 2):
        with pytest.raises(ServiceFailed, match=f"interrupted after {5000 * attempt:,} bytes; run the same command again"):
            beir_folder("tiny", archive, tmp_path)
        assert not (tmp_path / "tiny").exists()
        assert not (tmp_path / "tiny.zip").exists()
    server.cut = None
    received: list[float] = []
    folder = beir_folder("tiny", archive, tmp_path, received.append)
    assert (folder / "filling.txt").read_text() == FILES["tiny/filling.txt"]
    assert server.ranges == [None, "bytes=5000-", "bytes=10000-"]
    assert (received[0], sum(received)) == (10000, len(server.content))


def test_a_server_without_ranges_sends_the_whole_file_again(server: Server, archive: BeirArchive, tmp_path: Path) -> None:
    server.cut, server.resumes = 5000, False
    with pytest.raises(ServiceFailed, match="interrupted after 5,000 bytes"):
        beir_folder("tiny", archive, tmp_path)
    server.cut = None
    assert (beir_folder("tiny", archive, tmp_path) / "corpus.jsonl").is_file()


def test_a_complete_partial_file_is_used(server: Server, archive: BeirArchive, tmp_path: Path) -> None:
    """The process was killed between the last byte and the checksum."""
    (tmp_path / "tiny.zip.part").write_bytes(server.content)
    assert (beir_folder("tiny", archive, tmp_path) / "corpus.jsonl").is_file()


def test_a_download_with_a_wrong_checksum_is_refused_and_deleted(server: Server, archive: BeirArchive, tmp_path: Path) -> None:
    wrong = BeirArchive("0" * 32, archive.bytes)
    with pytest.raises(BadInput, match=f"MD5 checksum {archive.md5}; expected {'0' * 32}"):
        beir_folder("tiny", wrong, tmp_path)
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".lock"] == []


def test_a_partial_file_of_another_version_is_refused(server: Server, archive: BeirArchive, tmp_path: Path) -> None:
    (tmp_path / "tiny.zip.part").write_bytes(b"x" * 100)
    with pytest.raises(BadInput, match="the download was deleted; try again"):
        beir_folder("tiny", archive, tmp_path)
    assert (beir_folder("tiny", archive, tmp_path) / "corpus.jsonl").is_file()


def test_an_http_error_is_reported(server: Server, tmp_path: Path) -> None:
    server.status = 404
    with pytest.raises(ServiceFailed, match=r"answered 404 Not Found; download .* on a machine with network access"):
        fetch(f"{server.address}/x.zip", tmp_path / "x.zip", "", lambda count: None)


@pytest.mark.parametrize("address", ["http://127.0.0.1:9/", "http://no-such-host.invalid/", "no-address"])
def test_an_unreachable_server_suggests_a_folder(address: str, tmp_path: Path) -> None:
    with pytest.raises(ServiceFailed, match=r"cannot be reached .* pass its folder instead of the name"):
        fetch(f"{address}x.zip", tmp_path / "x.zip", "", lambda count: None)


@pytest.mark.parametrize(
    "member", ["../outside.txt", "/etc/outside.txt", "tiny/../../outside.txt", "..\\outside.txt", "C:/x.txt"]
)
def test_archive_members_outside_the_folder_are_refused(member: str, tmp_path: Path) -> None:
    (tmp_path / "in" / "deep").mkdir(parents=True)
    path = tmp_path / "in" / "deep" / "tiny.zip"
    path.write_bytes(zipped({**FILES, member: "bad"}))
    with pytest.raises(BadInput, match="outside its folder; expected only relative paths"):
        unpack(path, "tiny", path.with_name("tiny"))
    assert [file.name for file in tmp_path.rglob("*") if file.is_file()] == ["tiny.zip"]


def test_archives_without_the_dataset_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "tiny.zip"
    path.write_bytes(zipped({"other/corpus.jsonl": "{}"}))
    with pytest.raises(BadInput, match=re.escape("has no tiny/corpus.jsonl")):
        unpack(path, "tiny", tmp_path / "tiny")
    path.write_bytes(b"no zip file")
    with pytest.raises(BadInput, match="is not a readable zip file"):
        unpack(path, "tiny", tmp_path / "tiny")
    assert not (tmp_path / "tiny").exists()


def test_an_interrupted_unpacking_is_repeated(server: Server, archive: BeirArchive, tmp_path: Path) -> None:
    (tmp_path / "tiny.zip").write_bytes(server.content)  # complete: it has no .part suffix
    (tmp_path / "tiny.unpacking" / "tiny").mkdir(parents=True)
    (tmp_path / "tiny.unpacking" / "tiny" / "corpus.jsonl").write_text("half")
    folder = beir_folder("tiny", archive, tmp_path)
    assert (folder / "corpus.jsonl").read_text() == FILES["tiny/corpus.jsonl"]
    assert server.ranges == []


def test_an_unwritable_cache_is_reported(archive: BeirArchive, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match=r"cannot be written .* XDG_CACHE_HOME"):
        beir_folder("tiny", archive, tmp_path / "file")


def test_every_archive_has_an_md5_checksum() -> None:
    assert len(ARCHIVES) == 15
    assert all(re.fullmatch("[0-9a-f]{32}", archive.md5) for archive in ARCHIVES.values())

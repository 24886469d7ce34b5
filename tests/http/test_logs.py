"""Access and audit log of a real service."""

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from trilens.errors import BadInput
from trilens.http.log_file import LogFile

from .running import READ_KEY, WRITE_KEY, make_collection, running

SEARCH = {"queries": ["delete a directory", "square root"]}
PUT = {"documents": [{"doc_id": "a", "text": "one"}, {"doc_id": "rmtree", "text": "two"}]}
PATIENCE = 30


def entries(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.fixture
def named(tmp_path: Path) -> Path:
    file = tmp_path / "keys"
    file.touch(mode=0o600)
    file.write_text(f"read {READ_KEY} reader\nwrite {WRITE_KEY} indexer\n")
    return file


def test_requests_are_logged_without_texts_and_writes_with_their_commits(tmp_path: Path, named: Path) -> None:
    path = make_collection(tmp_path / "notes.trilens", ("bm25",))
    access, audit = tmp_path / "access.jsonl", tmp_path / "audit.jsonl"
    with running(path, "--keys", named, "--write", "--access-log", access, "--audit-log", audit) as service:
        service.call("POST", "/collections/notes/search", READ_KEY, json=SEARCH)
        service.call("GET", "/collections/notes/documents/rmtree")
        service.call("PUT", "/collections/notes/documents", WRITE_KEY, json=PUT)
        service.call("DELETE", "/collections/notes/documents", WRITE_KEY, params={"id": ["a", "nothing"]})
        service.call("DELETE", "/collections/notes/documents/nothing", WRITE_KEY)
        assert service.call("PUT", "/collections/notes/documents/b", READ_KEY, json={"text": "x"}).status_code == 403
        for file in (access, audit):
            assert file.stat().st_mode & 0o777 == 0o600
            file.rename(file.with_suffix(".1"))
        service.process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + PATIENCE
        while not access.exists() and time.monotonic() < deadline:
            service.call("PUT", "/collections/notes/documents/c", WRITE_KEY, json={"text": "a third"})
    logged = entries(access.with_suffix(".1"))
    search, get, *_ = logged
    assert (search["client"], search["key"], search["method"], search["status"]) == ("127.0.0.1", "reader", "POST", 200)
    assert (search["route"], search["collection"], search["queries"]) == ("/collections/{name}/search", "notes", 2)
    assert search["ms"] > 0 and search["bytes"] > 100 and search["time"].startswith("20")
    assert (get["key"], get["status"], get["queries"]) == (None, 401, 0)
    text = access.with_suffix(".1").read_text() + audit.with_suffix(".1").read_text()
    assert not [word for word in ("square", READ_KEY, WRITE_KEY, "one") if word in text]
    put_begun, put_done, delete_begun, delete_done, failed_begun, failed = entries(audit.with_suffix(".1"))
    assert put_begun["write"] == put_done["write"] != delete_begun["write"]
    who = [put_begun[name] for name in ("event", "client", "key")]
    what = [put_begun[name] for name in ("collection", "operation", "documents", "ids", "commit")]
    assert (who, what) == (["begun", "127.0.0.1", "indexer"], ["notes", "put", 2, ["a", "rmtree"], 1])
    assert [put_done[name] for name in ("event", "commit", "added", "replaced", "deleted")] == ["committed", 2, 1, 1, 0]
    assert [delete_done[name] for name in ("commit", "deleted", "missing")] == [3, 1, 1]
    assert (failed_begun["commit"], failed["event"]) == (3, "failed")
    assert "there is no document 'nothing'" in failed["error"]
    assert entries(access)[-1]["route"].startswith("/collections/{name}/documents/{doc_id")
    assert entries(audit)[-1]["event"] == "committed"


def test_texts_of_queries_are_logged_on_request(plain: Path, tmp_path: Path) -> None:
    with running(plain, "--access-log", "-", "--log-queries") as service:
        service.call("POST", "/collections/plain/search", json=SEARCH)
        service.call("POST", "/collections/plain/explain", json={"query": "line\nend", "doc_ids": ["rmtree"]})
        assert service.process.stdout is not None
        lines = [json.loads(service.process.stdout.readline()) for _ in range(2)]
    assert [line["texts"] for line in lines] == [SEARCH["queries"], ["line\nend"]]


def test_a_full_disk_refuses_changes_and_disturbs_no_search(tmp_path: Path, named: Path) -> None:
    path = make_collection(tmp_path / "notes.trilens", ("bm25",))
    full = Path("/dev/full")
    with running(path, "--keys", named, "--write", "--access-log", full, "--audit-log", full) as service:
        for _ in range(2):
            assert service.call("POST", "/collections/notes/search", READ_KEY, json=SEARCH).status_code == 200
        answer = service.call("PUT", "/collections/notes/documents", WRITE_KEY, json=PUT)
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "30")
        assert "the audit log cannot be written (No space left on device); nothing was changed" in answer.json()["error"]
        assert service.call("GET", "/collections/notes", READ_KEY).json()["commit"] == 1
        service.process.send_signal(signal.SIGTERM)
        assert service.process.stderr is not None
        assert service.process.stderr.read().count("access log /dev/full cannot be written") == 1


def test_a_log_that_cannot_be_opened_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"the log .* cannot be written \(No such file or directory\); choose another file"):
        LogFile(tmp_path / "none" / "access.jsonl")


def test_an_incomplete_line_is_taken_back(tmp_path: Path) -> None:
    """A line that does not fit below the limit of the file's size."""
    import resource

    log = LogFile(tmp_path / "log")
    log.write({"first": "x"})
    before = (tmp_path / "log").read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 10, hard))
        with pytest.raises(OSError, match="No space left"):
            log.write({"second": "x" * 100})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)
    assert (tmp_path / "log").read_bytes() == before
    log.write({"third": "x"})
    log.close()
    assert len(entries(tmp_path / "log")) == 2

"""What a commit names is on the disk before the commit is, so that a loss of power cannot separate them.

The order of calls is recorded; no power is cut.
"""

import re
from pathlib import PurePosixPath

import pytest

from trilens.store.folders import FOLDER, UNFINISHED
from trilens.store.last_commit import COMMIT_FILE
from trilens.store.schema import FILE_NAME

from .fault_process import FaultDriver

COMMITTED = f"sync\t/c/{FILE_NAME}-wal"
RECORDED = f"rename\t/c/{COMMIT_FILE}"
LINKED = f"link\t/c/{FILE_NAME}"
STAGING = re.compile(f"/{FOLDER}/{UNFINISHED}[0-9a-f]+/{FOLDER}")
REPLACED = f"rename\t/c/{FILE_NAME}"


def files_not_synced(calls: list[str]) -> set[str]:
    """The files that were written after they were last synced. Removed ones do not count."""
    left: set[str] = set()
    for name, path in (call.split("\t") for call in calls):
        if name in ("open", "write", "resize"):
            left.add(path)
        elif name in ("sync", "unlink"):
            left.discard(path)
    return left


def names_not_synced(calls: list[str]) -> set[str]:
    """The files and folders that got their name after the folder around them was last synced."""
    left: set[str] = set()
    for name, path in (call.split("\t") for call in calls):
        if name in ("open", "mkdir", "link", "rename"):
            left.add(path)
        elif name in ("unlink", "rmdir"):
            left.discard(path)
        elif name == "sync":
            left = {made for made in left if str(PurePosixPath(made).parent) != path}
    return left


def in_their_place(calls: list[str]) -> list[str]:
    """The calls that concern folders of the collection, under the names that they have in the end."""
    staged = {path.split("/")[3] for call in calls if STAGING.search(path := call.split("\t")[1])}
    kept = []
    for call in calls:
        name, path = call.split("\t")
        parts = path.split("/")
        if len(parts) > 3 and parts[3] in staged:
            parts = ["", "c", *parts[4:]]
        if parts[:3] == ["", "c", FOLDER] and len(parts) > 3:
            kept.append(f"{name}\t{'/'.join(parts).replace(UNFINISHED, '')}")
        elif path == f"/c/{FOLDER}":
            kept.append(call)
    return kept


def point_of_commit(calls: list[str]) -> int:
    """Where the first commit takes effect."""
    if RECORDED in calls and COMMITTED in calls[: calls.index(RECORDED)]:
        recorded = calls.index(RECORDED)
        return recorded - 1 - calls[:recorded][::-1].index(COMMITTED)
    return calls.index(LINKED if LINKED in calls else REPLACED)


@pytest.mark.parametrize("operation", ["upsert", "optimize", "retrain", "restore", "repair"])
def test_folders_are_synced_before_the_commit_that_names_them(faults: FaultDriver, operation: str) -> None:
    calls = faults.calls(operation, "kill before")
    before = in_their_place(calls[: point_of_commit(calls)])
    assert any(call.startswith("sync") for call in before)
    assert files_not_synced(before) == set()
    assert names_not_synced(before) - {f"/c/{FOLDER}"} == set()


@pytest.mark.parametrize("operation", ["create", "restore", "repair"])
def test_catalogs_are_synced_before_they_get_their_name(faults: FaultDriver, operation: str) -> None:
    calls = faults.calls(operation, "kill before")
    named = point_of_commit(calls)
    assert not {path for path in files_not_synced(calls[:named]) if FILE_NAME in path or COMMIT_FILE in path}
    assert names_not_synced(calls[:named]) & {f"/c/{FOLDER}", f"/c/{COMMIT_FILE}"} == set()
    assert "sync\t/c" in calls[named:]

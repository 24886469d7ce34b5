"""A process that imports and compiles everything once, then forks writers on demand. The test kills those.

A line of JSON on stdin orders a writer; stdout says `pid N`, `commit N` for each commit, and `dead STATUS` in the end.
"""

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from unittest.mock import patch

from trilens.collection import Collection
from trilens.store import creation, folders, writer
from trilens.store.catalog import Catalog
from trilens.store.schema import FolderRecord, SharedRecord

from ..store.tiny import LENSES, TinyEncoder
from .history import PASSAGES, History, apply, make_segments_small

SECONDS_TO_LIVE = 60
Condition = Callable[..., bool]


def say(line: str) -> None:
    """One write, so that lines of parent and child never mix."""
    os.write(1, f"{line}\n".encode())


def die() -> None:
    """SIGKILL this process here and now."""
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(SECONDS_TO_LIVE)


def before(owner: Any, name: str, condition: Condition = lambda *_, **__: True) -> None:
    """Die instead of making this call."""
    original = getattr(owner, name)

    def dying(*values: Any, **named: Any) -> Any:
        if condition(*values, **named):
            die()
        return original(*values, **named)

    setattr(owner, name, dying)


def after(owner: Any, name: str, condition: Condition = lambda *_, **__: True) -> None:
    """Die as soon as this call has returned."""
    original = getattr(owner, name)

    def dying(*values: Any, **named: Any) -> Any:
        result = original(*values, **named)
        if condition(*values, **named):
            die()
        return result

    setattr(owner, name, dying)


def calls(number: int) -> Condition:
    """True from the call of this number on, counted from 1."""
    made = 0

    def reached(*_: Any, **__: Any) -> bool:
        nonlocal made
        made += 1
        return made >= number

    return reached


def statement(text: str) -> Condition:
    """For `Catalog._run`: it runs this statement."""
    return lambda _, given, *__: given.startswith(text)


def shared(_: Catalog, record: FolderRecord) -> bool:
    """For `Catalog.add_folder`: it is a shared part."""
    return isinstance(record, SharedRecord)


def half_a_removal(folder: Path, **_: Any) -> None:
    """Die when some files of a folder are removed and some are not."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    for path in files[: len(files) // 2]:
        path.unlink()
    die()


def in_finish(owner: Any, name: str, replaced: Callable[..., None]) -> None:
    """Replace this call, but only while a writer commits and removes unreferenced folders."""
    finish = writer.Writer._finish

    def finishing(self: writer.Writer, **named: bool) -> None:
        with patch.object(owner, name, replaced):
            finish(self, **named)

    setattr(writer.Writer, "_finish", finishing)  # noqa: B010  mypy forbids the plain form


def while_retraining(owner: Any, name: str, condition: Condition) -> None:
    """Die instead of making this call, but only while everything is encoded again."""
    reencode = writer.Writer._reencode

    def encoding(self: writer.Writer) -> None:
        before(owner, name, condition)
        reencode(self)

    setattr(writer.Writer, "_reencode", encoding)  # noqa: B010  mypy forbids the plain form


# Each point, whether the commit has happened when the process dies there, and how to die there.
POINTS: dict[str, tuple[bool, Callable[[], None]]] = {
    "first file of a segment": (False, lambda: before(folders, "record_file")),
    "some files forced": (False, lambda: before(folders, "record_file", calls(5))),
    "before the rename": (False, lambda: before(Path, "rename")),
    "after the rename": (False, lambda: after(Path, "rename")),
    "second segment of a commit": (False, lambda: after(writer, "write_segment", calls(2))),
    "segment in the transaction": (False, lambda: after(Catalog, "add_folder")),
    "before a merge": (False, lambda: before(writer, "merge_segments")),
    "after a merge": (False, lambda: after(writer, "merge_segments")),
    "merged segments removed from the transaction": (False, lambda: after(Catalog, "remove_folder")),
    "all folders removed from the transaction": (False, lambda: after(Catalog, "remove_folders")),
    "second segment of a retraining": (False, lambda: while_retraining(writer, "write_segment", calls(2))),
    "before the commit number": (False, lambda: before(Catalog, "_run", statement("INSERT OR REPLACE INTO facts"))),
    "before COMMIT": (False, lambda: before(Catalog, "_run", statement("COMMIT"))),
    "after COMMIT": (True, lambda: after(Catalog, "_run", statement("COMMIT"))),
    "before the number of the commit has its name": (True, lambda: before(Path, "replace")),
    "half swept": (True, lambda: in_finish(shutil, "rmtree", half_a_removal)),
    "before VACUUM": (True, lambda: before(Catalog, "_run", statement("VACUUM"))),
    "after VACUUM": (True, lambda: after(Catalog, "_run", statement("VACUUM"))),
    "before the lock is given up": (True, lambda: in_finish(writer.Writer, "_release", lambda _: die())),
}

SHARING_POINTS: dict[str, tuple[bool, Callable[[], None]]] = {
    "before a shared part": (False, lambda: before(writer, "write_shared", calls(2))),
    "shared part with a name": (False, lambda: before(Catalog, "add_folder", shared)),
    "shared part in the transaction": (False, lambda: after(Catalog, "add_folder", shared)),
    "shared parts of a sample": (False, lambda: while_retraining(writer.Writer, "_put", calls(1))),
}

CREATION_POINTS: dict[str, Callable[[], None]] = {
    "no catalog yet": lambda: before(creation, "write_catalog"),
    "catalog without its name": lambda: before(os, "link"),
}


def write(root: Path, seed: int, first: int, last: int, tiny: bool) -> None:
    """Take the collection from state `first` to state `last`, with the tiny encoder or its own model."""
    history = History(seed)
    collection = Collection.open(root, threads=1, encoder=TinyEncoder() if tiny else None)
    for number in range(first, last):
        apply(collection, history.step(number))
        say(f"commit {number + 1}")
    collection.close()


def serve() -> None:
    """Fork a writer for each order."""
    make_segments_small()
    warm_up()
    say("ready")
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            signal.alarm(SECONDS_TO_LIVE)  # a writer that hangs must not hang the test
            point = order["point"]
            if "create" in order:
                CREATION_POINTS[point]()
                Collection.create(order["create"], lenses=["bm25"])
            else:
                if point:
                    (POINTS | SHARING_POINTS)[point][1]()
                write(Path(order["root"]), order["seed"], order["first"], order["last"], order["tiny"])
            os._exit(0)
        say(f"pid {child}")
        _, status = os.waitpid(child, 0)
        say(f"dead {os.waitstatus_to_exitcode(status)}")


def warm_up() -> None:
    """Compile the kernels and import what is imported late."""
    root = Path(mkdtemp())
    Collection.create(root / "warm", lenses=LENSES, encoder=TinyEncoder(), passages=PASSAGES).close()
    history = History(0)
    with Collection.open(root / "warm", encoder=TinyEncoder()) as collection:
        for number in range(4):
            apply(collection, history.step(number))
        collection.optimize(retrain=True)
    shutil.rmtree(root)


if __name__ == "__main__":
    serve()

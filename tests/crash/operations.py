"""The operations that are killed and made to fail: how to prepare one, run it, repeat it, and what must hold afterwards.

To cover another operation, add an `Operation` to `OPERATIONS`.
"""

import json
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from trilens.collection import Collection
from trilens.errors import CollectionMissing, TrilensError
from trilens.store import pace
from trilens.store.changes import Changes
from trilens.store.folders import FOLDER
from trilens.store.schema import FILE_NAME, FORMAT_VERSION
from trilens.text.document import Document
from trilens.text.vectors import write_vector

from ..store.test_upgrade import old_collection
from ..store.tiny import TinyEncoder
from .history import COMMON, WORDS, State, apply
from .operation import BEFORE, HISTORY, OPTIONS, STEPS, Operation, Say, opened, require_writable, say_nothing
from .publications import Publishing, Pull
from .states import require_documents, require_no_other_files, require_swept


class Creation(Operation):
    """A collection is created: it is there, or it is not and can be created."""

    def run(self, root: Path, say: Say) -> None:
        Collection.create(root / "c", encoder=TinyEncoder(), **OPTIONS).close()
        say(1)

    def again(self, root: Path, say: Say) -> None:
        if not (root / "c" / FILE_NAME).exists():  # else it was created although an error was raised
            self.run(root, say)

    def verify(self, root: Path, acknowledged: int) -> None:
        try:
            collection = opened(root)
        except CollectionMissing:
            assert not acknowledged
            collection = Collection.create(root / "c", encoder=TinyEncoder(), **OPTIONS)
        require_documents(collection, {}, 0)
        require_writable(collection, {})


class Change(Operation):
    """A change of a collection with several segments, deleted rows and changed metadata, from state to state."""

    def __init__(self, change: Callable[[Collection, Say], None], *states: State, partial: State | None = None) -> None:
        """`states` are the documents after each commit of `change`; the last one may be `partial` if an error was raised."""
        self._change = change
        self._states = [BEFORE, *states]
        self._partial = partial
        self._collection: Collection | None = None

    def prepare(self, root: Path) -> None:
        Collection.create(root / "c", encoder=TinyEncoder(), **OPTIONS).close()
        with opened(root) as collection:
            for number in range(STEPS):
                apply(collection, HISTORY.step(number))

    def run(self, root: Path, say: Say) -> None:
        self._collection = None  # in case that opening fails
        self._collection = opened(root)
        self._change(self._collection, say)
        self._collection.close()

    def read(self, root: Path) -> object:
        return opened(root).snapshot

    def again(self, root: Path, say: Say) -> None:
        collection = self._collection or opened(root)
        collection.rollback()
        collection.refresh()
        self._require_state(collection, 0)
        if collection.snapshot.commit == STEPS:
            self._change(collection, say)
            require_documents(collection, self._states[-1], STEPS + len(self._states) - 1)
        collection.close()

    def verify(self, root: Path, acknowledged: int) -> None:
        collection = opened(root)
        require_writable(collection, self._require_state(collection, acknowledged))

    def _require_state(self, collection: Collection, acknowledged: int) -> State:
        """The collection is in one of the states from the acknowledged one on; returns it."""
        number = collection.snapshot.commit - STEPS
        assert acknowledged <= number < len(self._states), f"commit {number} of the operation; {acknowledged} acknowledged"
        documents = self._states[number]
        if self._partial and number == len(self._states) - 1 and len(collection) == len(self._partial):
            documents = self._partial
        require_documents(collection, documents, STEPS + number)
        return documents


class Addition(Operation):
    """Documents are added to a collection with other options than `OPTIONS`, and all segments are merged."""

    def __init__(self, name: str, options: Any, documents: Sequence[Document], encoder: TinyEncoder | None) -> None:
        self._name, self._options, self._encoder = name, options, encoder
        self._documents, self._added = documents[:-4], documents[-4:]

    @property
    def start(self) -> str:
        return self._name

    def prepare(self, root: Path) -> None:
        with Collection.create(root / "c", encoder=self._encoder, **self._options) as collection:
            collection.add(self._documents)

    def run(self, root: Path, say: Say) -> None:
        with self._opened(root) as collection:
            if collection.snapshot.commit == 1:  # else it was committed although an error was raised
                collection.add(self._added)
                collection.optimize()
        say(1)

    def verify(self, root: Path, acknowledged: int) -> None:
        self._require_state(root, [2] if acknowledged else [1, 2])
        self.run(root, say_nothing)
        self._require_state(root, [2])
        with self._opened(root) as collection:
            collection.delete([self._added[0].doc_id])
            collection.commit()
            require_swept(collection)

    def _opened(self, root: Path) -> Collection:
        return Collection.open(root / "c", threads=1, encoder=self._encoder)

    def _require_state(self, root: Path, commits: Sequence[int]) -> None:
        with self._opened(root) as collection:
            assert collection.snapshot.commit in commits
            assert collection.check().problems == []
            documents = [*self._documents, *(self._added if collection.snapshot.commit == 2 else ())]
            [found] = collection.search([documents[0].text], k=2 * len(documents), exact=True)
            assert {hit.doc_id: hit.document for hit in found} == {document.doc_id: document for document in documents}


class Backup(Operation):
    """A second backup: the first stays whole, and the second is whole or not listed."""

    def prepare(self, root: Path) -> None:
        Collection.create(root / "c", encoder=TinyEncoder(), **OPTIONS).close()
        with opened(root) as collection:
            for number in range(STEPS):
                apply(collection, HISTORY.step(number))
                if number == 1:
                    collection.backup(root / "b")

    def run(self, root: Path, say: Say) -> None:
        with opened(root) as collection:
            collection.backup(root / "b")
        say(1)

    def verify(self, root: Path, acknowledged: int) -> None:
        listed = [backup.commit for backup in Collection.backups(root / "b")]
        assert listed in ([2, STEPS], [2])
        assert len(listed) == 2 or not acknowledged
        with opened(root) as collection:
            require_documents(collection, BEFORE, STEPS)
            assert collection.backup(root / "b", verify=True).problems == []
        for commit in (2, STEPS):
            Collection.restore(root / "b", root / f"r{commit}", commit=commit)
            with Collection.open(root / f"r{commit}", encoder=TinyEncoder()) as restored:
                require_documents(restored, HISTORY.state(commit), commit)


class Restoration(Operation):
    """A restoration: the collection is there and whole, or it is not there and the backup can be restored again."""

    def prepare(self, root: Path) -> None:
        OPERATIONS["upsert"].prepare(root)
        with opened(root) as collection:
            collection.backup(root / "b")
        shutil.rmtree(root / "c")

    def run(self, root: Path, say: Say) -> None:
        Collection.restore(root / "b", root / "c")
        say(1)

    def again(self, root: Path, say: Say) -> None:
        if not (root / "c" / FILE_NAME).exists():  # else it was restored although an error was raised
            self.run(root, say)

    def verify(self, root: Path, acknowledged: int) -> None:
        assert (root / "c" / FILE_NAME).exists() or not acknowledged
        self.again(root, say_nothing)
        collection = opened(root)
        require_documents(collection, BEFORE, STEPS)
        require_writable(collection, BEFORE)


class Upgrade(Operation):
    """An upgrade: the collection has the old format and can be upgraded again, or the new one and all documents."""

    def __init__(self, version: int) -> None:
        self._version = version

    @property
    def start(self) -> str:
        return f"format-{self._version}"

    def prepare(self, root: Path) -> None:
        old_collection(self._version, root)
        shutil.copy(root / "texts" / FILE_NAME, root / "old.sqlite")

    def run(self, root: Path, say: Say) -> None:
        Collection.upgrade(root / "texts")
        say(1)

    def verify(self, root: Path, acknowledged: int) -> None:
        with closing(sqlite3.connect(root / "old.sqlite")) as old:
            rows = old.execute("SELECT doc_id, text, title, metadata FROM documents").fetchall()
        documents = {doc_id: Document(doc_id, text, title, json.loads(stored)) for doc_id, text, title, stored in rows}
        report = Collection.upgrade(root / "texts")
        assert report.documents == len(documents) > 0
        assert report.version == FORMAT_VERSION or not acknowledged
        collection = Collection.open(root / "texts", threads=1)
        assert collection.check().problems == []
        assert {doc_id: collection.get(doc_id) for doc_id in documents} == documents
        [found] = collection.search(["fox"], lenses=["bm25"])
        assert found and all(documents[hit.doc_id] == hit.document for hit in found)
        collection.delete(sorted(documents)[:1])
        collection.commit()
        assert collection.check().documents == len(documents) - 1
        require_swept(collection)
        collection.close()
        require_no_other_files(collection.path)


class Repair(Operation):
    """A repair of a collection with a damaged index: it can be repaired again, and no document is lost."""

    def prepare(self, root: Path) -> None:
        OPERATIONS["upsert"].prepare(root)
        damaged = max((root / "c" / FOLDER).glob("*/dense/vectors.npy"))
        damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")

    def run(self, root: Path, say: Say) -> None:
        report = Collection.repair(root / "c", encoder=TinyEncoder())
        assert (report.documents, report.lost) == (len(BEFORE), [])
        say(1)

    def verify(self, root: Path, acknowledged: int) -> None:
        report = Collection.repair(root / "c", encoder=TinyEncoder())
        assert (report.documents, report.lost) == (len(BEFORE), [])
        assert not (acknowledged and report.encoded)
        collection = opened(root)
        require_documents(collection, BEFORE, collection.snapshot.commit)
        require_writable(collection, BEFORE)


def _after(*documents: Document, without: Sequence[str] = ()) -> State:
    """The documents before the operation, with these changes."""
    kept = {doc_id: document for doc_id, document in BEFORE.items() if doc_id not in without}
    return kept | {document.doc_id: document for document in documents}


OLD = sorted(BEFORE)
NEW = [Document(f"n{number}", f"{COMMON} number {number} " + "reef " * 12 * number, "Reefs") for number in range(4)]
CHANGED = [
    Document(OLD[0], f"{COMMON} rewritten", "Again"),
    Document(OLD[1], BEFORE[OLD[1]].text, BEFORE[OLD[1]].title, {"a": 1}),
]
DELETED = OLD[::2]


def _index(collection: Collection, say: Say) -> None:
    """Ingest with a commit after each document."""
    commit = collection.commit

    def committing() -> Changes:
        changes = commit()
        if changes.added or changes.replaced:
            say(collection.snapshot.commit - STEPS)
        return changes

    collection.commit = committing  # type: ignore[method-assign]
    pace.SECONDS = -1
    collection.ingest([*NEW[:2], *CHANGED])


def _upsert(collection: Collection, say: Say) -> None:
    collection.upsert(CHANGED)
    collection.add(NEW)
    collection.commit()
    say(1)


def _delete(collection: Collection, say: Say) -> None:
    assert collection.delete(DELETED) == []
    collection.commit()
    say(1)


def _two_calls(collection: Collection, say: Say) -> None:
    """A call that fails leaves nothing of itself, and the calls before it are still there or reported as discarded."""
    failure: TrilensError | None = None
    collection.add(NEW[:1])
    try:
        collection.add(NEW[1:])
    except TrilensError as error:
        failure = error
    collection.commit()
    say(1)
    if failure:
        require_documents(collection, _after(NEW[0]), STEPS + 1)
        raise failure


def _optimize(retrain: bool) -> Callable[[Collection, Say], None]:
    def change(collection: Collection, say: Say) -> None:
        collection.optimize(retrain)
        say(1)

    return change


TEXTS = [Document(f"t{number}", f"{COMMON} {WORDS[number % len(WORDS)]} {number}") for number in range(260)]
VECTORS = [Document(f"v{number}", write_vector({COMMON: 1.0, f"t{number}": 0.5})) for number in range(10)]

OPERATIONS: dict[str, Operation] = {
    "create": Creation(),
    "index": Change(_index, _after(NEW[0]), _after(*NEW[:2]), _after(*NEW[:2], CHANGED[0]), _after(*NEW[:2], *CHANGED)),
    "upsert": Change(_upsert, _after(*CHANGED, *NEW)),
    "delete": Change(_delete, _after(without=DELETED)),
    "two calls": Change(_two_calls, _after(*NEW), partial=_after(NEW[0])),
    "optimize": Change(_optimize(retrain=False), BEFORE),
    "retrain": Change(_optimize(retrain=True), BEFORE),
    "backup": Backup(),
    "publish": Publishing(),
    "pull": Pull(),
    "restore": Restoration(),
    "upgrade": Upgrade(4),
    "upgrade by encoding": Upgrade(3),
    "repair": Repair(),
    "add to an IVF index": Addition("ivf", {"lenses": ["dense"], "dense": {"ann_rows": 256}}, TEXTS, TinyEncoder()),
    "add vectors": Addition("external", {"lenses": ["external"], "passages": {"words": 0, "overlap": 0}}, VECTORS, None),
}

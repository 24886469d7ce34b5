"""The publication of a commit and its pull as operations that are killed and made to fail."""

import shutil
from pathlib import Path

from trilens.cluster.publish import publish, pull
from trilens.collection import Collection

from ..store.tiny import TinyEncoder
from .history import apply
from .operation import BEFORE, HISTORY, OPTIONS, PROBE, STEPS, Operation, Say, opened, say_nothing
from .states import require_documents, require_swept


class Publishing(Operation):
    """A second commit is published: it is there and whole, or the first one is the last, and it can be published again."""

    def prepare(self, root: Path) -> None:
        Collection.create(root / "c", encoder=TinyEncoder(), **OPTIONS).close()
        with opened(root) as collection:
            for number in range(STEPS):
                apply(collection, HISTORY.step(number))
                if number == 1:
                    publish(root / "c", root / "p")

    def run(self, root: Path, say: Say) -> None:
        publish(root / "c", root / "p")
        say(1)

    def verify(self, root: Path, acknowledged: int) -> None:
        commit = pull(root / "p", root / "before").record.commit
        assert commit == STEPS or (commit == 2 and not acknowledged)
        with Collection.open(root / "before", encoder=TinyEncoder()) as pulled:
            require_documents(pulled, HISTORY.state(commit), commit)
        with opened(root) as collection:
            require_documents(collection, BEFORE, STEPS)
        assert publish(root / "c", root / "p").number == 2
        pull(root / "p", root / "before")
        with Collection.open(root / "before", encoder=TinyEncoder()) as pulled:
            require_documents(pulled, BEFORE, STEPS)


class Pull(Operation):
    """A collection is moved to a newer commit in place: it is at the old one or the new one, and can be moved and written."""

    def prepare(self, root: Path) -> None:
        Publishing().prepare(root)
        publish(root / "c", root / "p")
        shutil.rmtree(root / "c")
        pull(root / "p", root / "c", number=1)

    def run(self, root: Path, say: Say) -> None:
        pull(root / "p", root / "c")
        say(1)

    def read(self, root: Path) -> object:
        return opened(root).snapshot

    def verify(self, root: Path, acknowledged: int) -> None:
        with opened(root) as collection:
            commit = collection.snapshot.commit
            assert commit == STEPS or (commit == 2 and not acknowledged)
            require_documents(collection, HISTORY.state(commit), commit)
        self.run(root, say_nothing)
        with opened(root) as collection:
            require_documents(collection, BEFORE, STEPS)
            collection.upsert([PROBE])
        with opened(root) as collection:
            require_documents(collection, BEFORE | {PROBE.doc_id: PROBE}, STEPS + 1)
            require_swept(collection)
        assert publish(root / "c", root / "p").number == 3

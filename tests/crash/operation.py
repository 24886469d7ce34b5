"""What all operations that are killed and made to fail have in common."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from trilens.collection import Collection
from trilens.text.document import Document

from ..store.tiny import LENSES, TinyEncoder
from .history import COMMON, PASSAGES, History, State
from .states import require_documents, require_no_other_files, require_swept

Say = Callable[[int], None]


def say_nothing(state: int) -> None:
    """Acknowledge nothing."""


OPTIONS: dict[str, Any] = {"lenses": LENSES, "passages": PASSAGES}
HISTORY = History(11)
STEPS = 4  # commits before the operation
BEFORE = HISTORY.state(STEPS)
PROBE = Document("probe", f"{COMMON} after the fault")


class Operation:
    """An operation on the folder `root` below which I/O fails."""

    @property
    def start(self) -> str:
        """A name for what `prepare` makes, which operations may share."""
        return type(self).__name__

    def prepare(self, root: Path) -> None:
        """Make what the operation needs. The folder is empty."""

    def run(self, root: Path, say: Say) -> None:
        """The operation. `say` acknowledges the state of a number: it must never be lost."""
        raise NotImplementedError

    def read(self, root: Path) -> object:
        """What a reader holds open during the operation."""
        return root

    def again(self, root: Path, say: Say) -> None:
        """In the same process, after an error whose cause is gone: the operation succeeds."""
        self.run(root, say)

    def verify(self, root: Path, acknowledged: int) -> None:
        """In another process, without faults: nothing acknowledged is lost, nothing half appears, and writing goes on."""
        raise NotImplementedError


def opened(root: Path) -> Collection:
    """The collection of an operation."""
    return Collection.open(root / "c", threads=1, encoder=TinyEncoder())


def require_writable(collection: Collection, documents: State) -> None:
    """The next write works at once and leaves nothing else behind."""
    collection.upsert([PROBE])
    collection.delete(sorted(documents)[:1])
    number = collection.snapshot.commit
    collection.commit()
    left = {doc_id: documents[doc_id] for doc_id in sorted(documents)[1:]} | {PROBE.doc_id: PROBE}
    require_documents(collection, left, number + 1)
    require_swept(collection)
    collection.close()
    require_no_other_files(collection.path)

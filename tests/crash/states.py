"""What must hold of a collection in a known state."""

from collections.abc import Mapping
from pathlib import Path

from trilens.collection import Collection
from trilens.store.folders import FOLDER
from trilens.store.last_commit import COMMIT_FILE
from trilens.store.lock import LOCK_NAME
from trilens.store.schema import FILE_NAME
from trilens.text.document import Document

from .history import COMMON, IDS, WORDS

FILES = {FILE_NAME, FOLDER, COMMIT_FILE, LOCK_NAME}  # of a collection that no process has open


def require_documents(collection: Collection, documents: Mapping[str, Document], commit: int) -> None:
    """The collection is at this commit and holds exactly these documents, whole and findable."""
    assert collection.snapshot.commit == commit
    report = collection.check()
    assert report.problems == []
    assert report.documents == len(collection) == len(documents)
    assert {doc_id: collection.get(doc_id) for doc_id in documents} == documents
    for lens in collection.lenses:
        [found] = collection.search([COMMON], k=2 * len(IDS), lenses=[lens])
        assert {hit.doc_id: hit.document for hit in found} == documents
    for hits in collection.search(WORDS[:4], k=5):
        assert all(documents[hit.doc_id] == hit.document for hit in hits)


def require_swept(collection: Collection) -> None:
    """Only folders that the catalog names are left."""
    snapshot = collection.snapshot
    named = {segment.record.id for segment in snapshot.segments} | {part.record.id for part in snapshot.shared.every}
    assert {path.name for path in (collection.path / FOLDER).iterdir()} == named


def require_no_other_files(root: Path) -> None:
    """The folder of a collection that no process has open holds nothing else."""
    assert {path.name for path in root.iterdir()} == FILES

"""Moving a collection to a commit that was made elsewhere, in place: only what has changed is copied and written."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from trilens.errors import CollectionError
from trilens.store.catalog import Catalog, DocumentRow
from trilens.store.commit_record import CommitRecord
from trilens.store.creation import remove_left_overs
from trilens.store.documents import DocumentsPart, StoredDocuments
from trilens.store.failures import clear_errors
from trilens.store.folders import orphans, require_whole, sweep
from trilens.store.last_commit import open_verified, write_last_commit
from trilens.store.lock import lock
from trilens.store.records import read_records
from trilens.store.schema import FolderRecord, SegmentRecord
from trilens.store.segment import DOCUMENTS


def advance_collection(root: Path, expected: CommitRecord, record: CommitRecord, fill: Callable[[], object]) -> None:
    """Move a collection from the commit `expected`, which must be its last one, to the commit of `record`.

    `fill` brings the new folders in place. Searches that are under way keep their commit; an interruption leaves the old one.
    """
    with clear_errors(root), lock(root):
        remove_left_overs(root)
        with closing(open_verified(root)) as catalog:
            if CommitRecord.of(catalog) != expected:
                raise CollectionError(f"{root} has changed meanwhile; try again")
            catalog.rollback()
            if any(orphans(root, set(expected.folders))):
                catalog.settle()
                sweep(root, set(expected.folders))
            fill()
            catalog.begin_write()
            _rewrite(catalog, root, expected, record)
            catalog.commit_as_is()
        write_last_commit(root, record)
        sweep(root, set(record.folders))


def _rewrite(catalog: Catalog, root: Path, old: CommitRecord, new: CommitRecord) -> None:
    """Write what differs between two commits."""
    before, after = read_records(root, old.folders), read_records(root, new.folders)
    added = [segment for segment in after.segments if segment.id not in old.folders]
    deleted = set(new.deleted)
    for segment in before.segments:
        if segment.id not in new.folders:
            for key in _documents(root, segment).keys.tolist():
                catalog.delete(key, in_segment=False)
    for key in deleted - set(old.deleted):
        catalog.delete(key, in_segment=False)
    for segment in added:
        documents = _documents(root, segment)
        for position, key in enumerate(documents.keys.tolist()):
            if key not in deleted:
                catalog.restore(DocumentRow.of(key, documents.document(position, new.changed.get(key))))
    stored = StoredDocuments([_documents(root, segment) for segment in after.segments], new.changed)
    for key, metadata in new.changed.items():
        if old.changed.get(key) != metadata:
            catalog.set_metadata(stored.take([key])[key], key, in_segment=False)
    _rewrite_state(catalog, new, [*after.segments, *after.shared])


def _rewrite_state(catalog: Catalog, new: CommitRecord, folders: list[FolderRecord]) -> None:
    catalog.remove_folders()
    for folder in folders:
        catalog.add_folder(folder)
    for key in new.deleted:
        catalog.mark("deleted", key)
    for key in new.changed:
        catalog.mark("changed", key)
    catalog.set_facts(new.facts)
    catalog.set_next_key(new.next_key)


def _documents(root: Path, segment: SegmentRecord) -> DocumentsPart:
    return DocumentsPart.open(require_whole(root, segment, DOCUMENTS))

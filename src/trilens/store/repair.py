"""Repair of a damaged collection: keeps all folders that are whole, encodes the documents of the others again, lists the rest.

The repaired commit is staged beside the damaged one and takes its place at the end.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from trilens.errors import CollectionError, CollectionMissing
from trilens.store.check import check_collection
from trilens.store.commit_record import CommitRecord
from trilens.store.config import CollectionConfig
from trilens.store.creation import create_collection
from trilens.store.documents import DocumentsPart
from trilens.store.failures import clear_errors
from trilens.store.folders import FOLDER
from trilens.store.last_commit import COMMIT_FILE
from trilens.store.lens_set import LensSet
from trilens.store.lock import lock
from trilens.store.progress import DocumentsDone, no_report
from trilens.store.salvage import Salvage, is_segment, salvage_catalog, salvage_documents, salvage_folders
from trilens.store.schema import FILE_NAME, FolderRecord, SegmentRecord
from trilens.store.segment import DOCUMENTS
from trilens.store.staging import link_folder, staging, take_place
from trilens.store.writer import Writer

MakeLenses = Callable[[CollectionConfig], LensSet]


@dataclass(slots=True)
class RepairReport:
    """What a repair did: the documents there are, how many were encoded again, and the ids of those that are gone."""

    documents: int = 0
    encoded: int = 0
    lost: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def repair_collection(root: Path, make_lenses: MakeLenses, report: DocumentsDone = no_report) -> RepairReport:
    """Repair a collection as far as its files permit. Without damage nothing is changed."""
    if not any((root / name).exists() for name in (FILE_NAME, COMMIT_FILE)):
        raise CollectionMissing(f"there is no collection at {root}; expected the folder of a damaged collection")
    with clear_errors(root), lock(root):
        with suppress(CollectionError):  # the catalog cannot even be opened
            if (root / FILE_NAME).exists() and not (found := check_collection(root)).problems:
                return RepairReport(documents=found.documents)
        salvage = salvage_catalog(root)
        config = CollectionConfig.from_stored(salvage.record.facts["config"])
        with staging(root) as staged:
            repaired = _repair(root, staged, salvage, make_lenses(config), report)
            take_place(root, staged, CommitRecord.read(staged))
    return repaired


def _repair(root: Path, staged: Path, salvage: Salvage, lenses: LensSet, report: DocumentsDone) -> RepairReport:
    """Stage the repaired commit."""
    whole, broken = salvage_folders(root, salvage.record)
    if lenses.sharing and not all(is_segment(root, folder_id) for folder_id in broken):
        # A shared part is lost, and with it the meaning of all segments of its lens.
        broken += [folder.id for folder in whole if isinstance(folder, SegmentRecord)]
        whole = []
    kept, newest = _kept_commit(root, salvage, whole)

    def fill() -> None:
        for folder_id in kept.folders:
            link_folder(root / FOLDER / folder_id, staged / FOLDER / folder_id)

    create_collection(staged, kept, fill)
    encoded = 0
    writer = Writer(staged, lenses)
    writer.progress.report = report
    try:
        for folder_id in broken:
            for key, document in salvage_documents(root, folder_id, salvage):
                if key > newest.get(document.doc_id, 0):
                    newest[document.doc_id] = key
                    encoded += writer.upsert(document)
        writer.commit()
    except BaseException:
        writer.rollback()
        raise
    lost = [doc_id for doc_id in salvage.doc_ids if doc_id not in newest]
    return RepairReport(len(newest), encoded, lost, salvage.notes)


def _kept_commit(root: Path, salvage: Salvage, whole: Sequence[FolderRecord]) -> tuple[CommitRecord, dict[str, int]]:
    """The commit with the whole folders alone, and its keys by id. Only the newest version of a document stays live."""
    record, deleted = salvage.record, set(salvage.record.deleted)
    newest: dict[str, int] = {}
    in_folders: set[int] = set()
    for segment in whole:
        if isinstance(segment, SegmentRecord):
            part = DocumentsPart.open(root / FOLDER / segment.id / DOCUMENTS)
            for position, key in enumerate(part.keys.tolist()):
                in_folders.add(key)
                if key not in deleted:
                    doc_id = part.document(position).doc_id
                    older, newest[doc_id] = sorted((newest.get(doc_id, 0), key))
                    deleted.add(older)
    kept = replace(
        record,
        facts=record.facts | {"commit": str(record.commit + 1)},
        folders={folder.id: folder.checksum for folder in whole},
        deleted=tuple(sorted(deleted & in_folders)),
        changed={key: metadata for key, metadata in record.changed.items() if key in in_folders - deleted},
        next_key=max([record.next_key, *(key + 1 for key in in_folders)]),
    )
    return kept, newest

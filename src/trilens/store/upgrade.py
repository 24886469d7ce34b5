"""Upgrades a collection of an older format version, in place and atomically.

Version 4 kept titles and texts in the catalog: its segments get the documents of their rows and are otherwise taken over. The
documents of versions 1 to 3, whose indexes meant something else, are encoded again.
"""

import secrets
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np

from trilens.errors import CollectionMissing, UnknownFormat
from trilens.store.catalog import Catalog
from trilens.store.catalog_file import format_version
from trilens.store.commit_record import CommitRecord
from trilens.store.config import CollectionConfig
from trilens.store.creation import create_collection
from trilens.store.documents import DocumentsPart
from trilens.store.failures import clear_errors
from trilens.store.folders import FOLDER, Record, record_file, require_whole, write_manifest
from trilens.store.lens_set import LensSet
from trilens.store.lock import lock
from trilens.store.old_catalog import OldCatalog
from trilens.store.progress import DocumentsDone, no_report
from trilens.store.schema import FILE_NAME, FORMAT_VERSION, FolderRecord, SegmentRecord
from trilens.store.segment import DOCUMENTS
from trilens.store.staging import link_folder, staging, take_place
from trilens.store.writer import Writer

WITH_TEXTS_IN_CATALOG = 4  # the version whose segments can be taken over
DOCUMENTS_AT_ONCE = 10_000

MakeLenses = Callable[[CollectionConfig], tuple[CollectionConfig, LensSet]]
"""The configuration tied to a model that is at hand, and its lenses."""


@dataclass(frozen=True, slots=True)
class UpgradeReport:
    """What an upgrade found and did."""

    version: int
    documents: int
    encoded: bool


def upgrade_collection(root: Path, make_lenses: MakeLenses, report: DocumentsDone = no_report) -> UpgradeReport:
    """Upgrade a collection to the present format version; one that has it already is left alone."""
    if not (root / FILE_NAME).exists():
        raise CollectionMissing(f"there is no collection at {root}; expected the folder of a collection")
    with clear_errors(root):
        version = format_version(root)
        if version > FORMAT_VERSION:
            raise UnknownFormat(
                f"{root} has format version {version}; this trilens upgrades to version {FORMAT_VERSION}: use a newer trilens"
            )
        if version == FORMAT_VERSION:
            catalog = Catalog.open(root)
            count = catalog.count()
            catalog.close()
            return UpgradeReport(version, count, encoded=False)
        with lock(root), staging(root) as staged, OldCatalog.opened(root) as old:
            documents, encoded = old.count(), version < WITH_TEXTS_IN_CATALOG
            record = _encode(old, staged, make_lenses, report) if encoded else _take_over(root, old, staged)
            take_place(root, staged, record)
        return UpgradeReport(version, documents, encoded)


def _take_over(root: Path, old: OldCatalog, staged: Path) -> CommitRecord:
    """Stage the folders of an old collection, with documents and manifests."""
    segments = [segment for segment in old.segments() if any(old.documents(segment.first_key, segment.last_key))]
    taken: list[FolderRecord] = [_take_segment(root, old, segment, staged) for segment in segments]
    taken += [_take_folder(root, part, staged) for part in old.shared() if segments]
    facts = {"config": old.config().to_stored(), "commit": old.facts["commit"], "id": secrets.token_hex(16)}
    return CommitRecord(
        facts=facts | ({"tuned": old.facts["tuned"]} if "tuned" in old.facts else {}),
        folders={folder.id: folder.checksum for folder in taken},
        deleted=tuple(
            key for key in old.deleted() if any(segment.first_key <= key <= segment.last_key for segment in segments)
        ),
        next_key=old.next_key(),
    )


def _take_segment(root: Path, old: OldCatalog, segment: SegmentRecord, staged: Path) -> SegmentRecord:
    """Stage a segment with the documents that the catalog holds for its range of keys."""
    documents = old.documents(segment.first_key, segment.last_key)
    pieces = staged / "pieces"
    parts: list[DocumentsPart] = []
    while block := dict(islice(documents, DOCUMENTS_AT_ONCE)):
        DocumentsPart.write(block, pieces / str(len(parts)))
        parts.append(DocumentsPart.open(pieces / str(len(parts))))
    whole = staged / DOCUMENTS
    DocumentsPart.merge(parts, [np.ones(len(part), np.bool_) for part in parts], {}, whole)
    shutil.rmtree(pieces)
    return _take_folder(root, segment, staged, whole)


def _take_folder(root: Path, record: Record, staged: Path, documents: Path | None = None) -> Record:
    """Stage a folder under another id with a manifest; `documents` is moved into it."""
    folder_id = secrets.token_hex(8)
    folder = staged / FOLDER / folder_id
    link_folder(require_whole(root, record), folder)
    files = record.files
    if documents:
        documents.rename(folder / DOCUMENTS)
        files += tuple(record_file(folder, path) for path in sorted((folder / DOCUMENTS).iterdir()))
    return write_manifest(folder, replace(record, id=folder_id, files=files))


def _encode(old: OldCatalog, staged: Path, make_lenses: MakeLenses, report: DocumentsDone) -> CommitRecord:
    """Stage a collection of the same documents, encoded again."""
    config, lenses = make_lenses(old.config(weighting=False))
    empty = CommitRecord.empty(config)
    create_collection(staged, replace(empty, facts=empty.facts | {"commit": old.facts["commit"]}))
    writer = Writer(staged, lenses)
    writer.progress.report = report
    try:
        for _, document in old.documents():
            writer.add(document)
        writer.commit()
    except BaseException:
        writer.rollback()
        raise
    return CommitRecord.read(staged)

"""What can still be read of a damaged collection: its last commit, its whole folders, and the documents of the others."""

import errno
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from trilens.errors import (
    CollectionDamaged,
    CollectionError,
    CollectionLocked,
    CollectionReadOnly,
    OutOfResources,
    TrilensError,
    UnknownFormat,
)
from trilens.store.catalog import Catalog, DocumentRow
from trilens.store.catalog_file import raw_connection
from trilens.store.commit_record import CommitRecord
from trilens.store.documents import DocumentsPart, text_hash
from trilens.store.folders import FOLDER, read_record, require_whole
from trilens.store.last_commit import read_last_commit
from trilens.store.schema import FILE_NAME, FolderRecord
from trilens.store.segment import DOCUMENTS, ROWS
from trilens.text.document import Document

Value = TypeVar("Value")
TEMPORARY = (errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
DAMAGED = ("SQLITE_IOERR_SHORT_READ", "SQLITE_IOERR_DATA", "SQLITE_IOERR_CORRUPTFS")


@dataclass(slots=True)
class Salvage:
    """The commit to restore, the intact rows of its catalog by key, and one line for each thing that is uncertain."""

    record: CommitRecord
    rows: dict[int, DocumentRow] = field(default_factory=dict)
    doc_ids: list[str] = field(default_factory=list)  # also of damaged rows
    notes: list[str] = field(default_factory=list)


def salvage_catalog(root: Path) -> Salvage:
    """The last commit: from the catalog if that holds it and is whole, else from the record beside it."""
    recorded = _attempt(lambda: read_last_commit(root))
    catalog = _open_catalog(root)
    try:
        current = _attempt(lambda: _sealed_commit(catalog)) if catalog else None
        if current and (not recorded or current.commit >= recorded.commit):
            salvage = Salvage(current)
        elif recorded:
            salvage = Salvage(
                recorded, notes=["the catalog does not hold the last commit: its folders are taken from last-commit"]
            )
        else:
            raise CollectionDamaged(f"{root}: neither the catalog nor last-commit can be read; restore a backup")
        if catalog:
            _read_rows(catalog, salvage)
        else:
            salvage.notes.append("the catalog cannot be opened; the ids of documents that are gone are unknown")
        if salvage.record is recorded:
            _take_marks(catalog, salvage)
    finally:
        if catalog:
            catalog.close()
    return salvage


def salvage_folders(root: Path, record: CommitRecord) -> tuple[list[FolderRecord], list[str]]:
    """The folders whose files have their checksums, and the ids of the others."""
    whole: list[FolderRecord] = []
    broken: list[str] = []
    for folder_id, expected in record.folders.items():
        found = _attempt(lambda folder_id=folder_id, expected=expected: read_record(root, folder_id, expected))  # type: ignore[misc]
        if found and _is_whole(root, found):
            whole.append(found)
        else:
            broken.append(folder_id)
    return whole, broken


def is_segment(root: Path, folder_id: str) -> bool:
    """Whether a folder that may be damaged is a segment."""
    return any((root / FOLDER / folder_id / name).is_dir() for name in (DOCUMENTS, ROWS))


def salvage_documents(root: Path, folder_id: str, salvage: Salvage) -> Iterator[tuple[int, Document]]:
    """The live documents of a segment that are certainly intact: their hash is in the catalog, or their files are whole."""
    part = _attempt(lambda: DocumentsPart.open(root / FOLDER / folder_id / DOCUMENTS))
    if part is None:
        return
    expected = salvage.record.folders[folder_id]
    found = _attempt(lambda: read_record(root, folder_id, expected))
    is_whole = found is not None and _is_whole(root, found, DOCUMENTS)
    deleted = set(salvage.record.deleted)
    for position, key in enumerate(part.keys.tolist()):
        row = salvage.rows.get(key)
        metadata = row.metadata if row else salvage.record.changed.get(key)
        document = _attempt(lambda position=position, metadata=metadata: part.document(position, metadata))  # type: ignore[misc]
        if document is None or key in deleted:
            continue
        if is_whole if row is None else (document.doc_id, text_hash(document)) == (row.doc_id, row.hash):
            yield key, document


def _open_catalog(root: Path) -> Catalog | None:
    """The catalog, even if some of its tables are missing; None if SQLite cannot open it."""
    if not (root / FILE_NAME).exists():
        return None
    try:
        return Catalog.open(root)
    except UnknownFormat:
        raise
    except CollectionError as error:
        _require_damage(error)
        return _attempt(lambda: Catalog(root, raw_connection(root / FILE_NAME)))


def _is_whole(root: Path, record: FolderRecord, inside: str = "") -> bool:
    return _attempt(lambda: require_whole(root, record, inside, read=True)) is not None


def _sealed_commit(catalog: Catalog) -> CommitRecord:
    """The commit of a catalog whose records fit their digest."""
    catalog.begin()
    catalog.verify()
    if problems := catalog.problems():
        raise CollectionDamaged(problems[0])
    return CommitRecord.of(catalog)


def _read_rows(catalog: Catalog, salvage: Salvage) -> None:
    """The rows of the catalog, as far as they can be read."""
    try:
        for row in catalog.rows():
            salvage.doc_ids.append(str(row.doc_id))
            if row.is_intact:
                salvage.rows[row.key] = row
    except CollectionError as error:
        _require_damage(error)
        salvage.notes.append("not all rows of the catalog can be read; the ids of documents that are gone may be unknown")


def _take_marks(catalog: Catalog | None, salvage: Salvage) -> None:
    """Deleted keys and changed metadata, which last-commit does not hold."""
    salvage.notes.append("deletions and changes of metadata since the segment of a document was written may be undone")
    if catalog:
        deleted = _attempt(lambda: catalog.marked("deleted").tolist()) or ()
        changed = _attempt(catalog.changed) or {}
        intact = {key: metadata for key, metadata in changed.items() if key in salvage.rows}
        salvage.record = replace(salvage.record, deleted=tuple(deleted), changed=intact)


def _attempt(read: Callable[[], Value]) -> Value | None:
    """What a function returns; None if it finds damage."""
    try:
        return read()
    except (TrilensError, OSError, sqlite3.Error) as error:
        _require_damage(error)
        return None


def _require_damage(error: Exception) -> None:
    """Raise an error again that says nothing about the data: a repair would give up what can be read another time."""
    cause = error.__cause__ or error
    name = getattr(cause, "sqlite_errorname", "")
    if isinstance(error, OutOfResources | CollectionReadOnly | CollectionLocked) or getattr(cause, "errno", 0) in TEMPORARY:
        raise error
    if name.startswith("SQLITE_IOERR") and name not in DAMAGED:
        raise error

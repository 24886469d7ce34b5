"""Verification of a collection: checksums of all files, and that every document is indexed completely."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np

from trilens.errors import CollectionDamaged
from trilens.store.catalog import Catalog, DocumentRow, has_moved_on
from trilens.store.documents import DocumentsPart, StoredDocuments, text_hash
from trilens.store.failures import clear_errors
from trilens.store.folders import FOLDER, MANIFEST, REPAIR, file_problem, is_ours, read_record
from trilens.store.last_commit import read_last_commit, require_commit
from trilens.store.records import read_records
from trilens.store.schema import FILE_NAME, FileRecord, FolderRecord, SegmentRecord
from trilens.store.segment import DOCUMENTS, ROWS, PassageRows
from trilens.text.document import Document
from trilens.text.passages import covers, split_passages

BytesDone = Callable[[int], None]
Span = tuple[int, int]
TRIES = 100
NO_MORE: tuple[int, list[Span]] = (1 << 63, [])


@dataclass(slots=True)
class CheckReport:
    """Result of a verification: counts, and one line per problem."""

    documents: int = 0
    files: int = 0
    bytes: int = 0
    problems: list[str] = field(default_factory=list)


def check_collection(root: Path, report_bytes: BytesDone = lambda count: None) -> CheckReport:
    """Read the whole collection and compare it with its catalog.

    A concurrent merge can remove files during the check, so problems count only if there is no newer commit.
    """
    for _ in range(TRIES):
        with clear_errors(root):
            commit, report = _check_commit(root, report_bytes)
        if not report.problems or not has_moved_on(root, commit):
            break
    return report


def require_intact(root: Path) -> None:
    """Raise if a verification finds a problem."""
    if problems := check_collection(root).problems:
        more = f" (and {len(problems) - 1} more problems)" if len(problems) > 1 else ""
        raise CollectionDamaged(f"{problems[0]}{more}; {REPAIR}")


def _check_commit(root: Path, report_bytes: BytesDone) -> tuple[int, CheckReport]:
    """The number of the last commit, and the report on it."""
    commit, report = -1, CheckReport()
    catalog = Catalog.open(root)
    try:
        recorded = read_last_commit(root)
        catalog.begin()
        commit = catalog.commit_number()
        report.problems += catalog.problems()
        if report.problems:
            return commit, report
        require_commit(root, commit, recorded)
        catalog.verify()
        folders = catalog.folders()
        intact = {record.id: record for record in _check_manifests(root, folders, report)}
        for record in intact.values():
            _check_files(root / FOLDER / record.id, record, report, report_bytes)
        _check_foreign_files(root, list(intact.values()), set(folders), report)
        if not report.problems:
            _check_documents(root, catalog, read_records(root, folders, intact).segments, report)
    except (FileNotFoundError, CollectionDamaged) as error:
        report.problems.append(str(error))
    finally:
        catalog.close()
    return commit, report


def _check_manifests(root: Path, folders: Mapping[str, str], report: CheckReport) -> Iterator[FolderRecord]:
    for folder_id, expected in folders.items():
        try:
            yield read_record(root, folder_id, expected)
        except CollectionDamaged as error:
            report.problems.append(str(error))


def _check_files(folder: Path, record: FolderRecord, report: CheckReport, report_bytes: BytesDone) -> None:
    manifest = FileRecord(MANIFEST, (folder / MANIFEST).stat().st_size, record.checksum)
    for file in (manifest, *record.files):
        if problem := file_problem(folder, file):
            report.problems.append(problem)
        report.files += 1
        report.bytes += file.bytes
        report_bytes(file.bytes)


def _check_foreign_files(root: Path, records: Sequence[FolderRecord], known: set[str], report: CheckReport) -> None:
    """Report files that trilens did not write. Folders left by a killed writer are no damage: the next writer removes them."""
    foreign = [path for path in (root / FOLDER).glob("*") if path.name not in known and not is_ours(path.name)]
    for record in records:
        folder = root / FOLDER / record.id
        expected = {folder / MANIFEST, *(folder / file.path for file in record.files)}
        foreign += [path for path in folder.rglob("*") if path.is_file() and path not in expected]
    report.problems += [f"{path} does not belong to the collection; move it away" for path in sorted(foreign)]


def _check_documents(root: Path, catalog: Catalog, records: list[SegmentRecord], report: CheckReport) -> None:
    """Check that every document has its content and exactly the rows of its passages, and that every live row has one."""
    passages = catalog.config().passages
    parts = [DocumentsPart.open(root / FOLDER / record.id / DOCUMENTS) for record in records]
    documents = StoredDocuments(parts, catalog.changed())
    in_segments = _live_documents(root, catalog, records)
    row_key, spans = next(in_segments, NO_MORE)
    for row in catalog.rows():
        while row_key < row.key:
            report.problems.append(f"{root}: segments have rows of document key {row_key}, which is not in the catalog")
            row_key, spans = next(in_segments, NO_MORE)
        report.documents += 1
        document = documents.get(row.key)
        if row_key != row.key or document is None:
            report.problems.append(f"{root / FILE_NAME}: document {row.doc_id!r} is in no segment")
            continue
        report.problems += [f"{root / FILE_NAME}: document {row.doc_id!r} {fault}" for fault in _faults(row, document)]
        # Passages by tokens are not split again: a check needs no model.
        by_words = split_passages(document.text, passages.words, passages.overlap) if not passages.tokens else spans
        if spans != by_words or not covers(document.text, spans):
            report.problems.append(f"{root}: document {row.doc_id!r} is in its segment with other passages than its text has")
        row_key, spans = next(in_segments, NO_MORE)
    if row_key != NO_MORE[0]:
        report.problems.append(f"{root}: segments have rows of document key {row_key}, which is not in the catalog")


def _faults(row: DocumentRow, document: Document) -> Iterator[str]:
    """What does not fit between the row of a document in the catalog and its segment."""
    if not row.is_intact:
        yield "has changed: its row in the catalog does not fit its digest"
    elif (document.doc_id, document.metadata_json()) != (row.doc_id, row.metadata):
        yield "has another id or metadata in its segment"
    elif text_hash(document) != row.hash:
        yield "has changed: its text is not the one that was indexed"


def _live_documents(root: Path, catalog: Catalog, records: list[SegmentRecord]) -> Iterator[tuple[int, list[Span]]]:
    """Key and passage spans of the live documents of all segments, by ascending key."""
    for record in records:
        rows = PassageRows.open(root / FOLDER / record.id / ROWS)
        deleted = set(catalog.marked("deleted", record.first_key, record.last_key).tolist())
        edges = np.flatnonzero(np.diff(rows.keys, prepend=-1, append=-1))
        for first, end in pairwise(edges.tolist()):
            key = int(rows.keys[first])
            if key not in deleted:
                yield key, list(zip(rows.starts[first:end].tolist(), rows.ends[first:end].tolist(), strict=True))

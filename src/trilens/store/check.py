"""Verification of a collection: checksums of all files, and that every document is indexed completely."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np

from trilens.errors import CollectionDamaged
from trilens.store.catalog import Catalog, has_moved_on, text_hash
from trilens.store.folders import FOLDER, checksum, is_ours
from trilens.store.schema import FILE_NAME, FolderRecord, SegmentRecord
from trilens.store.segment import PassageRows
from trilens.text.passages import split_passages

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
        commit, report = _check_commit(root, report_bytes)
        if not report.problems or not has_moved_on(root, commit):
            break
    return report


def _check_commit(root: Path, report_bytes: BytesDone) -> tuple[int, CheckReport]:
    """The number of the last commit, and the report on it."""
    commit, report = -1, CheckReport()
    catalog = Catalog.open(root)
    try:
        catalog.begin()
        commit = catalog.commit_number()
        report.problems += catalog.problems()
        if report.problems:
            return commit, report
        segments = catalog.segments()
        folders = [*segments, *catalog.shared()]
        for record in folders:
            _check_files(root / FOLDER / record.id, record, report, report_bytes)
        for folder_id in sorted(catalog.folders() - {record.id for record in folders}):
            folder = root / FOLDER / folder_id
            report.problems.append(f"{root / FILE_NAME} lists {folder} as neither a segment nor a shared part")
        _check_foreign_files(root, folders, report)
        if not report.problems:
            _check_documents(root, catalog, segments, report)
    except (FileNotFoundError, CollectionDamaged) as error:
        report.problems.append(str(error))
    finally:
        catalog.close()
    return commit, report


def _check_files(folder: Path, record: FolderRecord, report: CheckReport, report_bytes: BytesDone) -> None:
    for file in record.files:
        path = folder / file.path
        if not path.is_file():
            report.problems.append(f"{path} is missing")
            continue
        size = path.stat().st_size
        if size != file.bytes:
            report.problems.append(f"{path} has {size} bytes; expected {file.bytes}")
        elif checksum(path) != file.checksum:
            report.problems.append(f"{path} has changed: its checksum is not the one in the catalog")
        report.files += 1
        report.bytes += size
        report_bytes(size)


def _check_foreign_files(root: Path, records: Sequence[FolderRecord], report: CheckReport) -> None:
    """Report files that trilens did not write. Folders left by a killed writer are no damage: the next writer removes them."""
    known = {record.id for record in records}
    foreign = [path for path in (root / FOLDER).glob("*") if path.name not in known and not is_ours(path.name)]
    for record in records:
        folder = root / FOLDER / record.id
        expected = {folder / file.path for file in record.files}
        foreign += [path for path in folder.rglob("*") if path.is_file() and path not in expected]
    report.problems += [f"{path} does not belong to the collection; move it away" for path in sorted(foreign)]


def _check_documents(root: Path, catalog: Catalog, records: list[SegmentRecord], report: CheckReport) -> None:
    """Check that every document has exactly the rows of its passages, and that every live row has a document."""
    passages = catalog.config().passages
    in_segments = _live_documents(root, catalog, records)
    row_key, spans = next(in_segments, NO_MORE)
    for key, digest, document in catalog.all_documents():
        while row_key < key:
            report.problems.append(f"{root}: segments have rows of document key {row_key}, which is not in the catalog")
            row_key, spans = next(in_segments, NO_MORE)
        report.documents += 1
        name = f"{root / FILE_NAME}: document {document.doc_id!r}"
        if text_hash(document) != digest:
            report.problems.append(f"{name} has changed: its text is not the one that was indexed")
        if row_key != key:
            report.problems.append(f"{name} is in no segment")
            continue
        if spans != split_passages(document.text, passages.words, passages.overlap):
            report.problems.append(f"{name} is in its segment with other passages than its text has")
        row_key, spans = next(in_segments, NO_MORE)
    if row_key != NO_MORE[0]:
        report.problems.append(f"{root}: segments have rows of document key {row_key}, which is not in the catalog")


def _live_documents(root: Path, catalog: Catalog, records: list[SegmentRecord]) -> Iterator[tuple[int, list[Span]]]:
    """Key and passage spans of the live documents of all segments, by ascending key."""
    for record in records:
        rows = PassageRows.open(root / FOLDER / record.id / "rows")
        deleted = set(catalog.deleted(record.first_key, record.last_key).tolist())
        edges = np.flatnonzero(np.diff(rows.keys, prepend=-1, append=-1))
        for first, end in pairwise(edges.tolist()):
            key = int(rows.keys[first])
            if key not in deleted:
                yield key, list(zip(rows.starts[first:end].tolist(), rows.ends[first:end].tolist(), strict=True))

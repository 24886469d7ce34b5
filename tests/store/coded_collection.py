"""Helpers for collections with a lens that has shared parts: the lists of words of `coded`."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from trilens.search.options import SearchOptions
from trilens.search.search import Search
from trilens.store.catalog import Catalog
from trilens.store.check import check_collection
from trilens.store.records import read_records
from trilens.store.schema import SharedRecord
from trilens.store.snapshot import Snapshot
from trilens.store.writer import Writer
from trilens.text.document import Document

from .coded import CodedLenses, word_id

WORDS = [f"word{number}" for number in range(40)]


def commit(root: Path, *documents: Document, delete: tuple[str, ...] = (), lenses: CodedLenses | None = None) -> None:
    writing = Writer(root, lenses or CodedLenses())
    for doc_id in delete:
        assert writing.delete(doc_id)
    for document in documents:
        writing.upsert(document)
    writing.commit()


def retrain(root: Path, lenses: CodedLenses | None = None) -> list[float]:
    """Encode everything again; returns the reported progress."""
    reported: list[float] = []
    writing = Writer(root, lenses or CodedLenses())
    writing.progress.report = reported.append
    writing.optimize(retrain=True)
    return reported


def shared_records(root: Path) -> list[SharedRecord]:
    catalog = Catalog.open(root)
    try:
        return read_records(root, catalog.folders()).shared
    finally:
        catalog.close()


@contextmanager
def opened(root: Path, previous: Snapshot | None = None) -> Iterator[Snapshot]:
    snapshot = Snapshot(root, CodedLenses(), previous)
    yield snapshot
    snapshot.close()


def words_of(root: Path) -> list[set[int]]:
    """The words of each shared part."""
    with opened(root) as snapshot:
        return [set(part.tolist()) for part in snapshot.shared.of("coded")]


def ids(*words: str) -> set[int]:
    return {word_id(word) for word in words}


def found(snapshot: Snapshot, query: str, **options: Any) -> dict[str, float]:
    [hits] = Search(snapshot, CodedLenses(), [query], SearchOptions(k=100, lenses=["coded"], **options)).hits()
    return {hit.doc_id: hit.score for hit in hits}


def folders(root: Path) -> set[str]:
    return {path.name for path in (root / "segments").iterdir()}


def require_consistent(root: Path) -> None:
    assert check_collection(root).problems == []
    with opened(root) as snapshot:
        named = {part.record.id for part in snapshot.shared.every} | {segment.record.id for segment in snapshot.segments}
    assert folders(root) == named


def damage(root: Path, statement: str) -> None:
    with closing(sqlite3.connect(root / "catalog.sqlite")) as connection, connection:
        connection.execute(statement)


def contents(root: Path) -> list[tuple[int, Document]]:
    with opened(root) as snapshot:
        return snapshot.page(0, 1000)

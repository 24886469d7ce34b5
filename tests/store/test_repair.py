"""A repair keeps every document whose text can be read, indexes it if its index is damaged, and lists the others."""

import os
import shutil
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from trilens.collection import Collection
from trilens.errors import CollectionDamaged, CollectionLocked, CollectionMissing
from trilens.store import repair as repairing
from trilens.store.folders import FOLDER
from trilens.store.repair import RepairReport
from trilens.store.staging import take_place
from trilens.text.document import Document

from .tiny import LENSES, TinyEncoder

DOCUMENTS = {f"d{n}": Document(f"d{n}", f"river number{n} " * (n + 1), f"Title {n}", {"n": n}) for n in range(8)}
OLD = Document("old", "gone river")
SECOND = ["d4", "d5", "d6", "d7"]


@pytest.fixture(scope="module")
def whole() -> Iterator[Path]:
    """Two segments: in the first, `old` is deleted, `d0` replaced by one in the second, and the metadata of `d1` changed."""
    with TemporaryDirectory() as folder:
        root = Path(folder) / "c"
        with Collection.create(root, lenses=LENSES, encoder=TinyEncoder()) as collection:
            collection.add(
                [Document("d0", "older text"), *(DOCUMENTS[f"d{n}"] for n in (1, 2, 3)), Document("old", "gone river")]
            )
            collection.upsert([Document("d1", DOCUMENTS["d1"].text, DOCUMENTS["d1"].title, {"n": 100})])
            collection.commit()
            collection.delete(["old"])
            collection.upsert([DOCUMENTS["d0"], DOCUMENTS["d1"], *(DOCUMENTS[doc_id] for doc_id in SECOND)])
        yield root


@pytest.fixture
def root(whole: Path, folder: Path) -> Path:
    shutil.copytree(whole, folder / "c")
    return folder / "c"


def segments(root: Path) -> list[Path]:
    """First the older one."""
    return sorted((path.parents[1] for path in root.rglob("documents/keys.npy")), key=lambda path: int(key_of(path)))


def key_of(segment: Path) -> int:
    return int(np.load(segment / "documents" / "keys.npy")[0])


def flip(path: Path, place: int = -1) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 0x55
    path.write_bytes(content)


def statement(text: str) -> Callable[[Path], None]:
    def run(root: Path) -> None:
        with closing(sqlite3.connect(root / "catalog.sqlite")) as connection, connection:
            connection.execute(text)

    return run


def overwrite(name: str) -> Callable[[Path], None]:
    def run(root: Path) -> None:
        (root / name).write_bytes(b"\x07" * 5000)

    return run


def repair(root: Path) -> RepairReport:
    return Collection.repair(root, encoder=TinyEncoder())


def require(root: Path, documents: dict[str, Document]) -> None:
    """The collection is whole, holds exactly these documents, finds them by every lens, and can be written."""
    with Collection.open(root, encoder=TinyEncoder(), verify=True) as collection:
        assert {document.doc_id: document for _, document in collection.snapshot.page(0, 100)} == documents
        for lens in LENSES:
            [found] = collection.search(["river"], k=20, lenses=[lens])
            assert {hit.doc_id: hit.document for hit in found} == documents
        collection.upsert([Document("next", "river")])
    with Collection.open(root, encoder=TinyEncoder(), verify=True) as collection:
        assert len(collection) == len(documents) + 1
        named = {segment.record.id for segment in collection.snapshot.segments}
        named |= {part.record.id for part in collection.snapshot.shared.every}
        assert {path.name for path in (root / FOLDER).iterdir()} == named


def test_without_damage_nothing_is_changed(root: Path) -> None:
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    assert repair(root) == RepairReport(documents=8)
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize(
    "inside", ["rows/keys.npy", "bm25/counts.npy", "dense/vectors.npy", "multi/offsets.npy", "manifest.json"]
)
@pytest.mark.parametrize("gone", [True, False])
def test_documents_with_a_damaged_index_are_encoded_again(root: Path, which: int, inside: str, gone: bool) -> None:
    segment = segments(root)[which]
    path = segment / inside
    if gone:
        path.unlink()
    else:
        flip(path)
    report = repair(root)
    assert (report.documents, report.encoded, report.lost, report.notes) == (8, [3, 5][which], [], [])
    require(root, DOCUMENTS)
    assert segment not in segments(root)


def test_a_damaged_text_is_the_only_one_that_is_gone(root: Path) -> None:
    content = segments(root)[1] / "documents" / "content.npy"
    flip(content, content.read_bytes().index(b"number6"))
    report = repair(root)
    assert (report.documents, report.encoded, report.lost) == (7, 4, ["d6"])
    require(root, {doc_id: document for doc_id, document in DOCUMENTS.items() if doc_id != "d6"})


def test_the_documents_of_a_segment_that_is_gone_are_listed(root: Path) -> None:
    shutil.rmtree(segments(root)[0])
    report = repair(root)
    assert sorted(report.lost) == ["d1", "d2", "d3"]
    require(root, {doc_id: DOCUMENTS[doc_id] for doc_id in ("d0", *SECOND)})


def test_a_damaged_shared_part_encodes_everything_again(root: Path) -> None:
    shared = [path for path in (root / FOLDER).iterdir() if not (path / "rows").exists()]
    flip(next(path for path in shared[0].rglob("*.npy")))
    report = repair(root)
    assert (report.documents, report.encoded, report.lost) == (8, 8, [])
    require(root, DOCUMENTS)


@pytest.mark.parametrize(
    "damage",
    [
        statement("UPDATE documents SET metadata = '{\"n\":900}' WHERE doc_id = 'd2'"),
        statement("UPDATE documents SET doc_id = 'other' WHERE doc_id = 'd2'"),
        statement("DELETE FROM documents WHERE doc_id = 'd2'"),
        statement("DELETE FROM folders"),
        statement("UPDATE facts SET value = '{' WHERE name = 'config'"),
        statement("DELETE FROM sqlite_sequence"),
        statement("DROP TABLE folders"),
        overwrite("last-commit"),
        lambda root: (root / "last-commit").unlink(),
    ],
)
def test_a_damaged_catalog_is_written_again(root: Path, damage: Callable[[Path], None]) -> None:
    damage(root)
    report = repair(root)
    assert (report.documents, report.encoded) == (8, 0)
    assert report.lost in ([], ["other"])
    require(root, DOCUMENTS)


@pytest.mark.parametrize("damage", [overwrite("catalog.sqlite"), lambda root: (root / "catalog.sqlite").unlink()])
def test_without_a_catalog_the_segments_are_kept(root: Path, damage: Callable[[Path], None]) -> None:
    """Changes since a segment was written are in the catalog alone, and the notes say so; a replaced text stays replaced."""
    damage(root)
    report = repair(root)
    assert "deletions and changes of metadata since the segment of a document was written may be undone" in report.notes
    older = Document("d1", DOCUMENTS["d1"].text, DOCUMENTS["d1"].title, {"n": 100})
    require(root, DOCUMENTS | {"d1": older, "old": OLD})


def test_a_lost_log_keeps_what_the_segments_hold(root: Path, whole: Path) -> None:
    """The catalog falls back to an older commit when SQLite loses its write-ahead log."""
    shutil.copy(root / "catalog.sqlite", root / "older")
    with Collection.open(root, encoder=TinyEncoder()) as collection:
        collection.upsert([Document("later", "river")])
    (root / "older").replace(root / "catalog.sqlite")
    with (
        pytest.raises(CollectionDamaged, match="commit 3 was made"),
        Collection.open(root, encoder=TinyEncoder()) as collection,
    ):
        collection.search(["river"])
    assert repair(root).documents == 9
    require(root, DOCUMENTS | {"later": Document("later", "river")})


def test_everything_is_damaged_at_once(root: Path) -> None:
    """The catalog is gone, and the index of one segment, whose documents have their checksums."""
    (root / "catalog.sqlite").unlink()
    flip(segments(root)[1] / "dense" / "vectors.npy")
    report = repair(root)
    assert report.documents == 9
    assert report.encoded == 5


def test_neither_catalog_nor_record(root: Path) -> None:
    overwrite("catalog.sqlite")(root)
    overwrite("last-commit")(root)
    with pytest.raises(CollectionDamaged, match="restore a backup"):
        repair(root)


def test_no_collection(tmp_path: Path) -> None:
    with pytest.raises(CollectionMissing):
        Collection.repair(tmp_path)


def test_a_collection_that_is_being_written_is_not_repaired(root: Path) -> None:
    with Collection.open(root, encoder=TinyEncoder()) as collection:
        collection.delete(["d1"])
        with pytest.raises(CollectionLocked):
            repair(root)
        collection.rollback()


@pytest.mark.parametrize("step", ["before", "after"])
def test_a_killed_repair_is_repeated(root: Path, step: str) -> None:
    flip(segments(root)[0] / "bm25" / "counts.npy")
    child = os.fork()
    if child == 0:

        def dying(*arguments: Any) -> None:
            if step == "after":
                take_place(*arguments)
            os.kill(os.getpid(), signal.SIGKILL)

        with patch.object(repairing, "take_place", dying):
            repair(root)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert repair(root).encoded == (3 if step == "before" else 0)
    require(root, DOCUMENTS)

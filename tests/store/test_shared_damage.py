"""Damaged shared parts are found, named and never mapped."""

from pathlib import Path

import pytest

from trilens.errors import CollectionDamaged
from trilens.store.check import check_collection
from trilens.store.segment import Segment
from trilens.text.document import Document

from .coded_collection import commit, damage, found, opened, require_consistent, retrain, shared_records


@pytest.fixture
def grown(root: Path) -> Path:
    """Two shared parts and two segments."""
    commit(root, Document("a", "red fox"))
    commit(root, Document("b", "blue owl"))
    return root


def shared_files(root: Path) -> list[Path]:
    return sorted(path for path in (root / "segments").rglob("words.npy"))


def refuses(root: Path) -> str:
    with pytest.raises(CollectionDamaged) as caught, opened(root):
        pass
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_every_flipped_byte_is_found(grown: Path) -> None:
    assert len(shared_files(grown)) == 2
    for path in shared_files(grown):
        content = path.read_bytes()
        for place in range(len(content)):
            path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
            assert [problem for problem in check_collection(grown).problems if problem.startswith(str(path))]
        path.write_bytes(content)
    require_consistent(grown)


def test_a_lost_shorter_or_longer_file_is_named_and_never_mapped(grown: Path) -> None:
    for path in shared_files(grown):
        content = path.read_bytes()
        for wrong in (None, b"", content[:-1], content + b"\0"):
            path.unlink() if wrong is None else path.write_bytes(wrong)
            assert [problem for problem in check_collection(grown).problems if problem.startswith(str(path))]
            assert str(path) in refuses(grown)
            path.write_bytes(content)
    require_consistent(grown)


def test_a_foreign_file_in_a_shared_part_is_named(grown: Path) -> None:
    foreign = shared_files(grown)[0].with_name("mine.txt")
    foreign.write_text("mine")
    assert check_collection(grown).problems == [f"{foreign} does not belong to the collection; move it away"]


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM folders",
        "DELETE FROM folders WHERE id = '{first}'",
        "DELETE FROM folders WHERE id = '{second}'",
        "UPDATE folders SET id = '0123456789abcdef' WHERE id = '{first}'",
        "UPDATE folders SET checksum = 'f' || substr(checksum, 2) WHERE id = '{first}'",
    ],
)
def test_a_changed_catalog_is_found(grown: Path, statement: str) -> None:
    first, second = [record.id for record in shared_records(grown)]
    damage(grown, statement.format(first=first, second=second))
    assert check_collection(grown).problems
    refuses(grown)


def test_retraining_mends_what_was_lost(grown: Path) -> None:
    """Retraining reads only the texts."""
    shared_files(grown)[0].unlink()
    next((grown / "segments").rglob("codes.npy")).write_bytes(b"")
    refuses(grown)
    with pytest.raises(CollectionDamaged):
        commit(grown, Document("c", "red"))
    retrain(grown)
    require_consistent(grown)
    with opened(grown) as snapshot:
        assert found(snapshot, "red owl") == {"a": 1, "b": 1}


def test_segments_do_not_open_shared_parts(grown: Path) -> None:
    with opened(grown) as snapshot:
        assert {type(segment) for segment in snapshot.segments} == {Segment}
        assert all("words" not in file.path for segment in snapshot.segments for file in segment.record.files)


def test_figures(grown: Path) -> None:
    with opened(grown) as snapshot:
        assert snapshot.figures("coded") == {"words": 4, "longest": 2}
        assert snapshot.figures("bm25") == {}

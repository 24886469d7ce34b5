"""What segments share grows with the commits, is as safe as they are, and can be made anew."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from trilens.errors import CollectionDamaged
from trilens.search.searcher import search
from trilens.store import merge, writer
from trilens.store.catalog import Catalog
from trilens.store.check import check_collection
from trilens.store.config import CollectionConfig, PassageConfig
from trilens.store.schema import SharedRecord
from trilens.store.segment import Segment
from trilens.store.snapshot import Snapshot
from trilens.store.writer import Writer
from trilens.text.document import Document

from .coded import CodedLens, CodedLenses, word_id

WORDS = [f"word{number}" for number in range(40)]


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "BUFFER_PASSAGES", 5)
    monkeypatch.setattr(merge, "FANOUT", 3)
    monkeypatch.setattr(merge, "SMALLEST", 6)


@pytest.fixture
def root(folder: Path) -> Path:
    (folder / "segments").mkdir()
    Catalog.create(folder, CollectionConfig(lenses=("bm25",), passages=PassageConfig(words=6, overlap=2)))
    return folder


def commit(root: Path, *documents: Document, delete: tuple[str, ...] = (), lenses: CodedLenses | None = None) -> None:
    writing = Writer(root, lenses or CodedLenses())
    for doc_id in delete:
        assert writing.delete(doc_id)
    for document in documents:
        writing.upsert(document)
    writing.commit()


def retrain(root: Path, lenses: CodedLenses | None = None) -> list[float]:
    """Make everything anew; returns what was reported."""
    reported: list[float] = []
    writing = Writer(root, lenses or CodedLenses())
    writing.report = reported.append
    writing.optimize(retrain=True)
    return reported


def shared_records(root: Path) -> list[SharedRecord]:
    catalog = Catalog.open(root)
    try:
        return catalog.shared()
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
    [hits] = search(snapshot, CodedLenses(), [query], 100, ["coded"], **options)
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


def test_the_list_grows_by_what_is_missing(root: Path) -> None:
    commit(root, Document("a", "red fox"))
    assert words_of(root) == [ids("red", "fox")]
    commit(root, Document("b", "fox red red"))
    assert words_of(root) == [ids("red", "fox")]
    commit(root, Document("c", "red owl"), Document("d", "blue fox"))
    assert words_of(root) == [ids("red", "fox"), ids("owl", "blue")]
    assert [(record.lens, record.place) for record in shared_records(root)] == [("coded", 0), ("coded", 1)]
    with opened(root) as snapshot:
        assert found(snapshot, "red fox") == {"a": 2, "b": 2, "c": 1, "d": 1}
        assert snapshot.shared.of("bm25") == []
    require_consistent(root)


def test_several_batches_of_one_commit_see_each_others(root: Path) -> None:
    documents = [Document(f"d{number}", f"{WORDS[number]} {WORDS[number // 2]}") for number in range(20)]
    commit(root, *documents)
    parts = words_of(root)
    assert len(parts) > 1
    assert sum(map(len, parts)) == len(set().union(*parts)) == 20
    with opened(root) as snapshot:
        assert found(snapshot, WORDS[9]) == {"d9": 1, "d18": 1, "d19": 1}


def test_what_was_rolled_back_vanishes(root: Path) -> None:
    commit(root, Document("a", "red fox"))
    before = folders(root)
    writing = Writer(root, CodedLenses())
    for number in range(7):
        writing.add(Document(f"d{number}", WORDS[number]))
    assert len(folders(root) - before) == 2  # a segment and a shared part that nobody sees
    assert words_of(root) == [ids("red", "fox")]
    writing.rollback()
    assert folders(root) == before
    assert words_of(root) == [ids("red", "fox")]
    commit(root, Document("b", "blue"))
    assert words_of(root) == [ids("red", "fox"), ids("blue")]
    require_consistent(root)


@pytest.mark.parametrize("method", ["share", "build", "merge"])
def test_an_error_in_the_lens_leaves_all_as_it_was(root: Path, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(root, Document("a", "red fox"))
    commit(root, Document("b", "blue fox"))
    before = folders(root)

    def fail(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(CodedLens, method, fail)
    with pytest.raises(ZeroDivisionError):
        commit(root, Document("c", "owl"), delete=("a",))
    assert folders(root) == before
    with opened(root) as snapshot:
        assert found(snapshot, "fox") == {"a": 1, "b": 1}


def test_a_refresh_opens_only_what_it_does_not_have(root: Path) -> None:
    commit(root, Document("a", "red fox"))
    with opened(root) as first:
        commit(root, Document("b", "blue"))
        with opened(root, first) as second:
            assert second.shared.every[0] is first.shared.every[0]
            assert len(second.shared.every) == 2
            retrain(root)
            with opened(root, second) as third:
                assert not {id(part) for part in third.shared.every} & {id(part) for part in second.shared.every}
                assert [found(view, "red blue") for view in (first, second, third)] == [
                    {"a": 1},
                    {"a": 1, "b": 1},
                    {"a": 1, "b": 1},
                ]


def test_parts_that_vanish_while_being_opened_belong_to_an_older_commit(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(root, Document("a", "red fox"))
    open_shared = CodedLens.open_shared
    done: list[bool] = []

    def retrain_first(self: CodedLens, folder: Path) -> Any:
        if not done:
            done.append(True)
            retrain(root)
        return open_shared(self, folder)

    monkeypatch.setattr(CodedLens, "open_shared", retrain_first)
    with opened(root) as snapshot:
        assert done
        assert found(snapshot, "fox") == {"a": 1}


def test_any_history_equals_its_documents(root: Path) -> None:
    for seed in range(3):
        random = Random(seed)
        kept: dict[str, Document] = {}
        for step in range(16):
            several = [
                Document(
                    f"d{random.randrange(30)}",
                    " ".join(random.choices(WORDS, k=random.choice([0, 2, 20]))),
                    metadata={"n": step},
                )
                for _ in range(random.randint(1, 8))
            ]
            gone = random.sample(sorted(kept), len(kept) // 4)
            commit(root, *several, delete=tuple(gone))
            kept = {doc_id: doc for doc_id, doc in kept.items() if doc_id not in gone} | {doc.doc_id: doc for doc in several}
            if random.random() < 0.2:
                retrain(root)
            require_consistent(root)
            with opened(root) as snapshot:
                for word in random.sample(WORDS, 5):
                    expected = {doc.doc_id: 1 for doc in kept.values() if word in doc.text.split()}
                    assert found(snapshot, word) == expected
                    some = {doc_id: 1 for doc_id in expected if kept[doc_id].metadata["n"] > step - 3}
                    assert found(snapshot, word, where={"n": {"$gt": step - 3}}) == some
        commit(root, delete=tuple(kept))


# Making everything anew


def contents(root: Path) -> list[tuple[int, bytes, Document]]:
    catalog = Catalog.open(root)
    try:
        return list(catalog.every())
    finally:
        catalog.close()


def test_retraining_keeps_documents_and_forgets_what_is_gone(root: Path) -> None:
    commit(root, *(Document(f"d{number}", WORDS[number], metadata={"n": number}) for number in range(12)))
    commit(root, Document("d3", "changed text", "title", {"n": -3}), delete=("d5", "d7"))
    before = contents(root)
    with opened(root) as old:
        reported = retrain(root)
        assert contents(root) == before
        assert sum(reported) == pytest.approx(10)
        assert len(set().union(*words_of(root))) == 9 + len(["title", "changed", "text"])
        require_consistent(root)
        with opened(root) as snapshot:
            assert len(snapshot.segments) == 1
            assert snapshot.live_rows == snapshot.rows == 10
            assert found(snapshot, "changed") == {"d3": 1}
            assert found(snapshot, WORDS[5]) == {}
            assert found(snapshot, f"{WORDS[6]} text", where={"n": {"$lt": 0}}) == {"d3": 1}
        assert found(old, WORDS[8]) == {"d8": 1}
    commit(root, Document("d5", WORDS[5]))
    assert contents(root)[-1][0] > before[-1][0]  # keys are never given again


def test_retraining_takes_what_waits_along(root: Path) -> None:
    commit(root, Document("a", "red fox"), Document("b", "owl"))
    writing = Writer(root, CodedLenses())
    writing.delete("b")
    for number in range(7):  # five of them are in a segment already, two still wait
        writing.upsert(Document(f"d{number}", WORDS[number]))
    changes = writing.optimize(retrain=True)
    assert (changes.added, changes.deleted) == (7, 1)
    with opened(root) as snapshot:
        assert found(snapshot, " ".join([*WORDS, "fox", "owl"])) == {"a": 1} | {f"d{number}": 1 for number in range(7)}
    require_consistent(root)


def test_what_is_shared_is_made_from_documents_of_all_ages(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "BUFFER_PASSAGES", 10)
    commit(root, *(Document(f"d{number}", f"only{number}") for number in range(200)))
    number_of = {word_id(f"only{number}"): number for number in range(200)}
    assert {number_of[word] for word in words_of(root)[0]} == set(range(10))
    retrain(root)
    first = words_of(root)[0]
    numbers = sorted(number_of[word] for word in first)
    assert len(numbers) == 10
    assert numbers[0] < 70
    assert numbers[-1] > 130
    assert np.std(numbers) > 30
    retrain(root)
    assert words_of(root)[0] == first  # chance has a seed


def test_a_document_of_many_passages_does_not_fill_the_sample_with_its_beginning(root: Path) -> None:
    commit(root, Document("long", " ".join(f"only{number}" for number in range(400))), Document("short", "short"))
    retrain(root)
    first = words_of(root)[0]
    assert len(first) <= 5 * 6 + 1
    beginning = ids(*(f"only{number}" for number in range(40)))
    assert len(first & beginning) < len(first) / 2
    require_consistent(root)


def test_documents_that_fit_into_one_batch_are_encoded_once(root: Path) -> None:
    commit(root, *(Document(f"d{number}", WORDS[number]) for number in range(4)))
    lenses = CodedLenses()
    retrain(root, lenses)
    assert lenses.coded.encoder.encoded == 4
    assert len(words_of(root)) == 1


@pytest.mark.parametrize("again", [False, True])
def test_an_empty_collection_shares_nothing(root: Path, again: bool) -> None:
    commit(root, Document("a", "red fox"))
    commit(root, delete=("a",))
    if again:
        retrain(root)
    assert folders(root) == set()
    assert words_of(root) == []
    commit(root, Document("a", "fox"))
    assert words_of(root) == [ids("fox")]


def test_an_interrupted_retraining_changes_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(root, *(Document(f"d{number}", WORDS[number]) for number in range(12)))
    before, documents = folders(root), contents(root)
    for calls in (1, 2, 3):
        left = [calls]
        build = CodedLens.build

        def interrupted(self: CodedLens, *given: Any, left: list[int] = left, build: Any = build) -> None:
            left[0] -= 1
            if not left[0]:
                raise KeyboardInterrupt
            build(self, *given)

        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(CodedLens, "build", interrupted)
            retrain(root)
        assert (folders(root), contents(root)) == (before, documents)
        require_consistent(root)


# Damage


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
    ("statement", "at_once"),
    [
        ("DELETE FROM shared WHERE place = 0", True),
        ("UPDATE shared SET place = 7 WHERE place = 1", True),
        ("DELETE FROM shared WHERE place = 1", False),
        ("DELETE FROM folders WHERE id IN (SELECT id FROM shared)", False),
        ("UPDATE files SET checksum = 'f' || substr(checksum, 2) WHERE path = 'coded/words.npy'", False),
        ("UPDATE files SET bytes = bytes + 1 WHERE path = 'coded/words.npy'", True),
    ],
)
def test_a_changed_catalog_is_found(grown: Path, statement: str, at_once: bool) -> None:
    damage(grown, statement)
    assert check_collection(grown).problems
    if at_once:
        refuses(grown)


def test_retraining_mends_what_was_lost(grown: Path) -> None:
    """Texts are all that it needs."""
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

"""Shared parts grow with the commits."""

from pathlib import Path
from random import Random
from typing import Any

import pytest

from trilens.store.writer import Writer
from trilens.text.document import Document

from .coded import CodedLens, CodedLenses
from .coded_collection import WORDS, commit, folders, found, ids, opened, require_consistent, retrain, shared_records, words_of


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
    assert len(folders(root) - before) == 2  # a segment and a shared part that no snapshot sees
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
                    assert found(snapshot, word, filter={"n": {"$gt": step - 3}}) == some
        commit(root, delete=tuple(kept))

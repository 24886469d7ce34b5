"""Retraining encodes all documents again and rebuilds the shared parts."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trilens.store import writer
from trilens.store.writer import Writer
from trilens.text.document import Document

from .coded import CodedLens, CodedLenses, word_id
from .coded_collection import WORDS, commit, contents, folders, found, ids, opened, require_consistent, retrain, words_of


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
            assert found(snapshot, f"{WORDS[6]} text", filter={"n": {"$lt": 0}}) == {"d3": 1}
        assert found(old, WORDS[8]) == {"d8": 1}
    commit(root, Document("d5", WORDS[5]))
    assert contents(root)[-1][0] > before[-1][0]  # keys are never reused


def test_retraining_takes_what_waits_along(root: Path) -> None:
    commit(root, Document("a", "red fox"), Document("b", "owl"))
    writing = Writer(root, CodedLenses())
    writing.delete("b")
    for number in range(7):  # five of them are in a segment already, two are still buffered
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
    assert words_of(root)[0] == first  # sampling is seeded


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

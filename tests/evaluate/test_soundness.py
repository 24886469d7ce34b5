"""Data checks of a split against the corpus."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from trilens import Collection, Document
from trilens.datasets.dataset import Split
from trilens.datasets.queries import Query
from trilens.errors import BadInput
from trilens.evaluate.soundness import Soundness, examine


@pytest.fixture
def collection(tmp_path: Path) -> Iterator[Collection]:
    with Collection.create(tmp_path / "c", lenses=["bm25"], threads=1) as made:
        made.add([Document("a", "word"), Document("b", "other")])
        made.commit()
        yield made


def test_clean_data_have_no_warnings(collection: Collection) -> None:
    sound = examine(Split("s", {"q": Query("word")}, {"q": {"a": 1, "b": 0}}), collection)
    assert set(sound.counts().values()) == {0}
    assert sound.lines() == []


def test_anomalies_are_counted(collection: Collection) -> None:
    queries = {"q1": Query("word", answers=("word",)), "q2": Query("other"), "q3": Query("none")}
    qrels = {"q1": {"a": 1, "gone": 1}, "q2": {"b": 2, "gone": 0, "lost": 0}, "q3": {"a": 0, "b": -1}}
    sound = examine(Split("s", queries, qrels, ["u1", "u2"]), collection)
    assert sound == Soundness(unjudged=2, nothing_relevant=1, missing_documents=2, missing_relevant=1, without_answers=2)
    assert sound.lines() == [
        "2 queries have neither judgements nor answers: they are skipped",
        "1 queries have no relevant document among their judgements: they count as zero",
        "2 judged documents are not in the corpus, 1 of them relevant: these count as not retrieved",
        "2 judged queries have no answers: Hit@k is averaged over the others",
    ]


def test_qrels_of_another_corpus_are_refused(collection: Collection) -> None:
    with pytest.raises(BadInput, match="none of the 2 relevant documents of split 's' is in the corpus, such as 'x'"):
        examine(Split("s", {"q": Query("word")}, {"q": {"x": 1, "y": 1, "a": 0}}), collection)
    with pytest.raises(BadInput, match="split 's' judges no document relevant; expected grades above 0"):
        examine(Split("s", {"q": Query("word")}, {"q": {"a": 0}}), collection)


def test_a_split_with_answers_needs_no_qrels(collection: Collection) -> None:
    assert examine(Split("s", {"q": Query("word", answers=("x",))}, {}), collection).lines() == []

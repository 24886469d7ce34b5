"""After any sequence of changes a collection equals a dict of its documents, and a collection built fresh from them."""

import shutil
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from trilens.collection import Collection
from trilens.encode.model import HeadsEncoder
from trilens.encode.models import resolve_model
from trilens.encode.onnx import OnnxEncoder
from trilens.search.hits import Hit
from trilens.store import merge, writer
from trilens.store.config import DEFAULT_MODEL
from trilens.text.document import Document

from .oracle import holds
from .tiny import LENSES, TinyEncoder, real_lenses

MEMORY = Path("/dev/shm")
REAL = real_lenses()
# Sparse scores are sums of hundreds of products, in the thousands with the bundled model.
TOLERANCE = {"bm25": 1e-5, "dense": 1e-4, "sparse": 1e-3, "tokens": 1e-3, "lexical": 1e-4, "multi": 1e-4}
IDS = [f"d{number}" for number in range(12)]
TITLES = ["", "", "On rivers", "The fox"]
TEXTS = [
    "",
    "the of and",
    "river",
    "river river river",
    "a fox",
    "The fox crossed a river.",
    "Foxes cross rivers at night.",
    "snow",
    "Snow fell on the river all night.",
    "A train left the station in the snow.",
    "trains, stations, rails",
    "The station master slept.",
    "日本の川",
    "川と雪",
    "Über den Fluss",
    "1999 was cold; 2001 was colder",
    "cold",
    "cold river, cold snow, cold train",
    "A fox slept on the train.",
    "night train",
    "one two three four five six seven eight nine ten eleven twelve",
    "river one. snow two. fox three. train four. station five. night six. cold seven. rail eight. road nine.",
    "road",
    "The road follows the river to the station and the rails follow the road through the cold night.",
    "fox fox fox snow snow train. fox road. fox rail. fox night. fox cold. fox river.",
    "!!! ???",
    "river’s edge",
    "ＲＩＶＥＲ",
    "the river of the fox",
    "a road, a rail, a river",
]
QUERIES = ["river", "fox in the snow", "night train station", "川", "cold 1999", "the", "nothing-of-this-stands-there"]
METADATA: list[dict[str, Any]] = [
    {},
    {"n": 1},
    {"n": 2.5},
    {"n": 2, "tags": ["x", "y"]},
    {"tags": []},
    {"n": None, "tags": "x"},
    {"n": True},
    {"n": {"m": 1}},
]
FILTERS: list[dict[str, Any]] = [
    {"n": {"$gte": 2}},
    {"n": {"$ne": 2}},
    {"tags": "x"},
    {"n": None},
    {"tags": {"$nin": ["x", 1]}, "n": {"$exists": True}},
    {"$or": [{"n": 1}, {"n.m": {"$exists": True}}, {"$not": {"n": {"$lt": 9}}}]},
]
ALL = 64


def scores(hits: list[Hit]) -> dict[str, float]:
    return {hit.doc_id: hit.score for hit in hits}


def require_same_ranking(found: list[Hit], expected: list[Hit], tolerance: float, complete: bool = True) -> None:
    """The same scores for the same documents; ties may be ordered, and cut off at k, in any way."""
    np.testing.assert_allclose(list(scores(found).values()), list(scores(expected).values()), tolerance, tolerance)
    if complete:
        assert scores(found) == pytest.approx(scores(expected), abs=tolerance, rel=tolerance)


documents = st.builds(
    Document,
    doc_id=st.sampled_from(IDS),
    text=st.sampled_from(TEXTS),
    title=st.sampled_from(TITLES),
    metadata=st.sampled_from(METADATA),
)


def in_order_of_keys(root: Path) -> list[Document]:
    """The committed documents in key order, so that a fresh collection draws the same sample."""
    with Collection.open(root) as collection:
        return [document for _, document in collection.snapshot.page(0, 1000)]


class Changes(RuleBasedStateMachine):
    """A collection and the two dicts that it must equal: the committed state and the pending one."""

    lenses: ClassVar[list[str]] = ["bm25"]
    encoder: ClassVar[HeadsEncoder | None] = None

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(mkdtemp(dir=MEMORY if MEMORY.is_dir() else None))
        self.opening: dict[str, Any] = {"threads": 1, "encoder": self.encoder}
        self.options = {"lenses": self.lenses, "passages": {"words": 8, "overlap": 2}, **self.opening}
        self.collection = Collection.create(self.folder / "changed", **self.options)
        self.pending: dict[str, Document] = {}
        self.committed: dict[str, Document] = {}
        self.commits = 0
        self.changed = False  # without a change there is no commit
        self.checked = -1

    @rule(several=st.lists(documents, max_size=6, unique_by=lambda document: document.doc_id))
    def add(self, several: list[Document]) -> None:
        new = [document for document in several if document.doc_id not in self.pending]
        self.collection.add(new)
        self._put(new)

    @rule(several=st.lists(documents, max_size=8))
    def upsert(self, several: list[Document]) -> None:
        self.collection.upsert(several)
        self._put(several)

    @rule(metadata=st.sampled_from(METADATA), doc_id=st.sampled_from(IDS))
    def change_metadata(self, metadata: dict[str, Any], doc_id: str) -> None:
        if old := self.pending.get(doc_id):
            self.upsert([Document(doc_id, old.text, old.title, metadata)])

    @rule(doc_ids=st.lists(st.sampled_from(IDS), max_size=5, unique=True))
    def delete(self, doc_ids: list[str]) -> None:
        unknown = self.collection.delete(doc_ids)
        assert unknown == [doc_id for doc_id in doc_ids if doc_id not in self.pending]
        for doc_id in doc_ids:
            self.changed |= self.pending.pop(doc_id, None) is not None

    @rule()
    def commit(self) -> None:
        self.collection.commit()
        self._committed(self.changed)

    @rule(retrain=st.sampled_from([False, False, True]))
    def optimize(self, retrain: bool) -> None:
        self.collection.optimize(retrain)
        self._committed(True)
        assert self.collection.info()["segments"] <= 1
        assert self.collection.info()["deleted_passages"] == 0

    @rule()
    def rollback(self) -> None:
        self.collection.rollback()
        self.pending, self.changed = dict(self.committed), False

    @rule()
    def reopen(self) -> None:
        self.collection.close()
        self.collection = Collection.open(self.folder / "changed", **self.opening)
        self.pending, self.changed = dict(self.committed), False

    @invariant()
    def holds_what_was_committed(self) -> None:
        assert self.collection.snapshot.commit == self.commits
        assert len(self.collection) == len(self.committed)
        for doc_id in IDS:
            assert self.collection.get(doc_id) == self.committed.get(doc_id)

    @rule()
    def compare_with_a_fresh_build(self) -> None:
        if self.checked == self.commits:
            return
        self.checked = self.commits
        report = self.collection.check()
        assert report.problems == []
        assert report.documents == len(self.committed)
        with Collection.create(self.folder / f"fresh{self.commits}", **self.options) as fresh:
            fresh.add(in_order_of_keys(self.folder / "changed"))
            fresh.commit()
            self._compare(self.collection, fresh, [lens for lens in self.lenses if lens != "multi"])
            self._filter()
            if "multi" in self.lenses:
                self._compare_multi(fresh)

    def _put(self, several: list[Document]) -> None:
        for document in several:
            self.changed |= self.pending.get(document.doc_id) != document
            self.pending[document.doc_id] = document

    def _committed(self, happened: bool) -> None:
        self.committed, self.changed = dict(self.pending), False
        self.commits += happened

    def _compare(self, changed: Collection, fresh: Collection, lenses: list[str]) -> None:
        for lens in lenses:
            for k in (3, ALL):
                found = changed.search(QUERIES, k, lenses=[lens])
                expected = fresh.search(QUERIES, k, lenses=[lens])
                for mine, theirs in zip(found, expected, strict=True):
                    require_same_ranking(mine, theirs, TOLERANCE[lens], complete=k == ALL)
        for hits in changed.search(QUERIES, ALL):
            assert all(hit.document == self.committed[hit.doc_id] for hit in hits)

    def _filter(self) -> None:
        for lens in self.lenses:
            everything = self.collection.search(QUERIES, ALL, lenses=[lens])
            for where in FILTERS:
                filtered = self.collection.search(QUERIES, ALL, lenses=[lens], filter=where)
                for some, every in zip(filtered, everything, strict=True):
                    kept = [hit for hit in every if holds(hit.document.metadata, where)]
                    require_same_ranking(some, kept, TOLERANCE[lens])

    def _compare_multi(self, fresh: Collection) -> None:
        """Scores depend slightly on the codebook's training data; after retraining, on the documents alone."""
        found = self.collection.search(QUERIES, ALL, lenses=["multi"])
        expected = fresh.search(QUERIES, ALL, lenses=["multi"])
        assert [scores(hits).keys() for hits in found] == [scores(hits).keys() for hits in expected]
        copy = self.folder / f"copy{self.commits}"
        shutil.copytree(self.folder / "changed", copy)
        fresh.optimize(retrain=True)
        with Collection.open(copy, **self.opening) as retrained:
            retrained.optimize(retrain=True)
            self._compare(retrained, fresh, self.lenses)

    def teardown(self) -> None:
        try:
            self.compare_with_a_fresh_build()
        finally:
            self.collection.close()
            shutil.rmtree(self.folder)


class ChangesWithVectors(Changes):
    """The same with every lens and the bundled model, which is loaded once for all collections."""

    lenses = REAL
    encoder = OnnxEncoder(resolve_model(DEFAULT_MODEL), threads=1) if "dense" in REAL else None


class ChangesWithTinyVectors(Changes):
    """The same with every lens and the tiny encoder."""

    lenses = LENSES
    encoder = TinyEncoder()


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few documents make segments and merges."""
    monkeypatch.setattr(writer, "BUFFER_PASSAGES", 5)
    monkeypatch.setattr(merge, "FANOUT", 3)
    monkeypatch.setattr(merge, "SMALLEST", 6)


def run(machine: type[RuleBasedStateMachine], examples: int, steps: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_changes() -> None:
    run(Changes, examples=60, steps=30)


def test_changes_with_tiny_vectors() -> None:
    run(ChangesWithTinyVectors, examples=12, steps=25)


@pytest.mark.skipif("dense" not in REAL, reason="the bundled model is not there")
def test_changes_with_vectors() -> None:
    run(ChangesWithVectors, examples=8, steps=25)


@pytest.mark.long
def test_many_changes() -> None:
    run(Changes, examples=1500, steps=50)


@pytest.mark.long
def test_many_changes_with_tiny_vectors() -> None:
    run(ChangesWithTinyVectors, examples=200, steps=40)


@pytest.mark.long
@pytest.mark.skipif("dense" not in REAL, reason="the bundled model is not there")
def test_many_changes_with_vectors() -> None:
    run(ChangesWithVectors, examples=100, steps=40)

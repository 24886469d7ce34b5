"""What a writer reports: all documents once, the last ones when they are committed, and what it is doing."""

from pathlib import Path
from typing import Any

import pytest

from trilens import Collection, Document
from trilens.store.merge import FANOUT

from .tiny import TinyEncoder

DOCUMENTS = [Document(str(number), "A few words. " * (1 + number * 20)) for number in range(9)]


class Recorder:
    """A report that keeps everything."""

    def __init__(self) -> None:
        self.done = 0.0
        self.stages: list[tuple[str, float]] = []

    def __call__(self, documents: float) -> None:
        self.done += documents

    def stage(self, name: str) -> None:
        self.stages.append((name, self.done))

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.stages]


@pytest.mark.parametrize("options", [{"lenses": ["bm25"]}, {"lenses": ["bm25", "dense"], "encoder": TinyEncoder()}])
def test_documents_are_done_when_they_are_committed(tmp_path: Path, options: dict[str, Any]) -> None:
    recorder = Recorder()
    with Collection.create(tmp_path / "c", **options) as collection:
        collection.ingest(DOCUMENTS, recorder)
        assert recorder.done == pytest.approx(len(DOCUMENTS))
        by_lens = [stage for name in options["lenses"] for stage in (f"indexing by {name}", "encoding")]
        order = [name for name in recorder.names if name != "encoding"]
        assert order == [*[name for name in by_lens if name != "encoding"], "reading", "committing"]
        # Whatever comes after encoding comes before the last document is done.
        assert all(done <= len(DOCUMENTS) - 1 for _, done in recorder.stages)
        again = Recorder()
        collection.ingest(DOCUMENTS, again)
        assert (again.done, again.stages) == (len(DOCUMENTS), [])


def test_a_merge_and_a_retraining_are_reported(tmp_path: Path) -> None:
    with Collection.create(tmp_path / "c", lenses=["bm25"]) as collection:
        for document in DOCUMENTS[:FANOUT]:
            recorder = Recorder()
            collection.ingest([document], recorder)
        assert recorder.names[-2:] == ["merging segments", "committing"]
        recorder = Recorder()
        collection.optimize(retrain=True, report=recorder)
        assert recorder.done == pytest.approx(FANOUT)
        assert recorder.names[0] == "encoding" and recorder.names[-1] == "committing"


def test_a_plain_function_is_enough(tmp_path: Path) -> None:
    done: list[float] = []
    with Collection.create(tmp_path / "c", lenses=["bm25"]) as collection:
        collection.ingest(DOCUMENTS, done.append)
    assert sum(done) == pytest.approx(len(DOCUMENTS))

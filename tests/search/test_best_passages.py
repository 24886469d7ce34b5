"""Scores of documents that a lens did not return: the same as if it had."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from trilens import Collection, Document, MultiParams
from trilens.search.ranking import best_passages

from ..bundled import with_multi

LENSES = ["bm25", "dense", "sparse", "tokens", "lexical", "multi"]
WORDS = [
    "cat",
    "dog",
    "bird",
    "ship",
    "harbour",
    "engine",
    "rain",
    "north",
    "river",
    "night",
    "old",
    "mechanic",
    "music",
    "violin",
    "bread",
]


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    """Three segments, split documents, deleted ones."""
    random = np.random.default_rng(7)
    folder: Path = tmp_path_factory.mktemp("filling")
    model = str(with_multi(folder / "model", skip_special=True))
    with Collection.create(folder / "c", lenses=LENSES, model=model, passages={"words": 12, "overlap": 2}, threads=1) as made:
        for batch in range(3):
            made.add(Document(f"{batch}-{n}", " ".join(random.choice(WORDS, random.integers(3, 40))) + ".") for n in range(8))
            made.commit()
        made.delete(["0-1", "2-3"])
        made.add([Document("marks", "!!!")])
        made.commit()
        yield made


def scored(collection: Collection, lens: str, query: str, keys: list[int], params: Any = None) -> dict[int, tuple[float, int]]:
    """Score and row of the best passage of each document, by key; documents without a score are left out."""
    encoded = collection._lenses.encode_queries([lens], [query], {lens: params})[lens]
    wanted: NDArray[np.int64] = np.array(sorted(keys), np.int64)
    rows, scores = best_passages(collection.snapshot, lens, encoded, 1, wanted, np.zeros(len(wanted), np.int64), params)
    columns = zip(wanted.tolist(), scores.tolist(), rows.tolist(), strict=True)
    return {key: (score, row) for key, score, row in columns if row >= 0}


@pytest.mark.parametrize("lens", LENSES)
def test_scores_are_those_of_a_search(collection: Collection, lens: str) -> None:
    queries = ["old ship engine", "a cat at night by the river", "violin"]
    names = [hit.doc_id for hit in collection.search(["cat"], 100, lenses=["dense"])[0]]
    assert len(names) == 23
    snapshot = collection.snapshot
    keys = {name: snapshot.key(name) for name in names}
    filled = [scored(collection, lens, query, [key for key in keys.values() if key]) for query in queries]
    for query, found in zip(queries, filled, strict=True):
        hits = collection.search([query], 100, lenses=[lens], exact=True)[0]
        assert hits
        for hit in hits:
            key = keys[hit.doc_id]
            assert key is not None
            score, row = found[key]
            assert score == pytest.approx(hit.score, abs=1e-5)
            places = snapshot.places(np.array([row]))
            assert (places.starts[0], places.ends[0]) == (hit.start, hit.end)
        missed = found.keys() - {keys[hit.doc_id] for hit in hits}
        assert all(found[key][0] == 0 for key in missed)
    assert (keys["marks"] in filled[0]) == (lens != "multi")  # it has no token that multi could score


def test_imputed_scores_are_those_of_a_search(collection: Collection) -> None:
    for params in (
        MultiParams(method="xtr", candidates=0, probes=2, reach=2),
        MultiParams(method="xtr", candidates=0, probes=3, nth=5),
    ):
        query = "old ship engine at night"
        hits = collection.search([query], 100, lenses=["multi"], params={"multi": params})[0]
        keys = {hit.doc_id: collection.snapshot.key(hit.doc_id) for hit in hits}
        found = scored(collection, "multi", query, [key for key in keys.values() if key], params)
        for hit in hits:
            key = keys[hit.doc_id]
            assert key is not None
            assert found[key][0] == pytest.approx(hit.score, abs=1e-3)


def test_nothing_wanted(collection: Collection) -> None:
    assert scored(collection, "bm25", "cat", []) == {}


def test_a_shallow_fusion_agrees_with_a_deep_one_on_what_it_returns(collection: Collection) -> None:
    deep = {hit.doc_id: hit for hit in collection.search(["old ship engine"], 30, fusion="weighted")[0]}
    for hit in collection.search(["old ship engine"], 3, fusion="weighted:depth=3")[0]:
        same = deep[hit.doc_id]
        assert hit.score == pytest.approx(same.score, abs=1e-4)
        for name, seen in hit.by_lens.items():
            assert seen.score == pytest.approx(same.by_lens[name].score, abs=1e-4)

"""Scores of documents that a lens did not return: the same as if it had."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from trilens import Collection, Document, MultiParams
from trilens.index.lens import RowScorer
from trilens.search.filling import fill_scores

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


@pytest.mark.parametrize("lens", LENSES)
def test_scores_are_those_of_a_search(collection: Collection, lens: str) -> None:
    queries = ["old ship engine", "a cat at night by the river", "violin"]
    names = [hit.doc_id for hit in collection.search(["cat"], 100, lenses=["dense"])[0]]
    assert len(names) == 23
    snapshot = collection.snapshot
    keys = {name: snapshot.key(name) for name in names}
    encoded = collection._lenses.encode_queries([lens], queries)[lens]
    filled = fill_scores(snapshot, lens, encoded, [[key for key in keys.values() if key]] * len(queries))
    for query, found in zip(queries, filled, strict=True):
        hits = collection.search([query], 100, lenses=[lens], exact=True)[0]
        assert hits
        for hit in hits:
            key = keys[hit.doc_id]
            assert key is not None
            assert found[key].score == pytest.approx(hit.score, abs=1e-5)
            assert (found[key].start, found[key].end) == (hit.start, hit.end)
        missed = found.keys() - {keys[hit.doc_id] for hit in hits}
        assert all(found[key].score == 0 for key in missed)
    assert (keys["marks"] in filled[0]) == (lens != "multi")  # it has no token that multi could score


def test_imputed_scores_are_those_of_a_search(collection: Collection) -> None:
    for params in (MultiParams("xtr", candidates=0, probes=2, reach=2), MultiParams("xtr", candidates=0, probes=3, nth=5)):
        query = "old ship engine at night"
        hits = collection.search([query], 100, lenses=["multi"], params={"multi": params})[0]
        encoded = collection._lenses.encode_queries(["multi"], [query])["multi"]
        keys = {hit.doc_id: collection.snapshot.key(hit.doc_id) for hit in hits}
        (found,) = fill_scores(collection.snapshot, "multi", encoded, [[key for key in keys.values() if key]], params)
        for hit in hits:
            key = keys[hit.doc_id]
            assert key is not None
            assert found[key].score == pytest.approx(hit.score, abs=1e-3)


def test_every_lens_can_be_asked(collection: Collection) -> None:
    for lens in LENSES:
        assert isinstance(collection.snapshot.searcher(lens), RowScorer)


def test_nothing_wanted(collection: Collection) -> None:
    encoded = collection._lenses.encode_queries(["bm25"], ["cat", "dog"])["bm25"]
    assert fill_scores(collection.snapshot, "bm25", encoded, [[], []]) == [{}, {}]


def test_a_shallow_fusion_agrees_with_a_deep_one_on_what_it_returns(collection: Collection) -> None:
    deep = {hit.doc_id: hit for hit in collection.search(["old ship engine"], 30, fusion="weighted")[0]}
    for hit in collection.search(["old ship engine"], 3, fusion="weighted:depth=3")[0]:
        same = deep[hit.doc_id]
        assert hit.score == pytest.approx(same.score, abs=1e-4)
        for name, seen in hit.by_lens.items():
            assert seen.score == pytest.approx(same.by_lens[name].score, abs=1e-4)

"""The oracle of a collection in parts is the same collection in one."""

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trilens.collection import Collection
from trilens.errors import BadInput
from trilens.search.hits import Hit
from trilens.store import merge, writer
from trilens.text.document import Document

from .parts import EVERY_LENS, QUERIES, WORDS, Joined, make_documents, split

SHARDS = 3
EXACT = {"bm25", "sparse", "lexical", "tokens"}  # whose scores are sums over terms

Pair = tuple[Collection, Joined]


def change(collection: Collection, seed: int) -> None:
    """Random upserts, changes of metadata and deletes, in several commits."""
    draw = random.Random(seed)
    for _ in range(4):
        present = [document.doc_id for document in collection.documents()]
        collection.delete(draw.sample(present, 9))
        chosen = [collection.get(doc_id) for doc_id in draw.sample(present, 8)]
        kept = [document for document in chosen if document]
        changed = [replace(document, text=" ".join(draw.choices(WORDS, k=7))) for document in kept[:4]]
        collection.upsert([*changed, *(replace(document, metadata={"n": -1, "even": True}) for document in kept[4:])])
        collection.add(make_documents(5, seed=draw.randrange(1000), first=10_000 + draw.randrange(10**6)))
        collection.commit()


@pytest.fixture(scope="module", params=["added", "changed", "optimized"])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """A collection and its parts: as added, after changes and merges, and after `optimize`, when two parts are empty."""
    folder = tmp_path_factory.mktemp("pair")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merge, "FANOUT", 5)
        collection = Collection.create(
            folder / "whole", lenses=EVERY_LENS, passages={"words": 12, "overlap": 2, "tokens": None}, threads=1
        )
        documents = make_documents(60)
        for start in range(0, len(documents), 20):
            collection.add(documents[start : start + 20])
            collection.commit()
        if request.param != "added":
            change(collection, seed=7)
        if request.param == "optimized":
            collection.optimize()
        joined = Joined(split(collection, folder, SHARDS))
    yield collection, joined
    joined.close()
    collection.close()


def require_equal(whole: list[list[Hit]], joined: list[list[Hit]]) -> None:
    for expected, found in zip(whole, joined, strict=True):
        assert [hit.doc_id for hit in found] == [hit.doc_id for hit in expected]
        for one, other in zip(expected, found, strict=True):
            assert (one.rank, one.document, one.start, one.end) == (other.rank, other.document, other.start, other.end)
            assert other.score == pytest.approx(one.score, abs=1e-5)
            assert {name: seen.rank for name, seen in one.by_lens.items()} == {
                name: seen.rank for name, seen in other.by_lens.items()
            }
            for name, seen in one.by_lens.items():
                assert other.by_lens[name].score == (seen.score if name in EXACT else pytest.approx(seen.score, abs=1e-5))
                assert other.by_lens[name].strength == pytest.approx(seen.strength, abs=1e-5)
            assert one.snippet == other.snippet


@pytest.mark.parametrize("lens", EVERY_LENS)
def test_every_lens_scores_as_in_one_collection(pair: Pair, lens: str) -> None:
    collection, joined = pair
    settings: dict[str, Any] = {"lenses": [lens], "k": 12, "exact": True}
    require_equal(collection.search(QUERIES, **settings), joined.search(QUERIES, **settings))
    filtered = settings | {"filter": {"even": True}, "offset": 3, "details": True}
    require_equal(collection.search(QUERIES, **filtered), joined.search(QUERIES, **filtered))


FUSIONS: list[dict[str, Any]] = [
    {},  # that of the model, which is damped
    {"lenses": ["bm25", "dense", "multi"], "details": True},
    *(
        {"fusion": f"{policy}:missing={missing},depth=15"}
        for policy in ("rrf", "minmax", "zscore")
        for missing in ("exact", "worst", "zero")
    ),
    {"fusion": "weighted:bm25=0.2,dense=1,multi=1,per_token=true,damp=true", "details": True},
    {"fusion": "zscore:bm25=1,sparse=1,damp=true", "filter": {"even": True}},
    {"lenses": ["bm25", "tokens"], "rerank": "multi"},
    {"lenses": ["bm25", "dense"], "rerank": "multi:depth=8,first=0.5", "k": 5},
    {"lenses": ["bm25", "dense"], "rerank": "dense", "details": True, "offset": 2, "k": 7},
]


@pytest.mark.parametrize("settings", FUSIONS, ids=str)
def test_every_fusion_ranks_as_in_one_collection(pair: Pair, settings: dict[str, Any]) -> None:
    collection, joined = pair
    require_equal(collection.search(QUERIES, exact=True, **settings), joined.search(QUERIES, exact=True, **settings))


@pytest.mark.parametrize(
    "settings",
    [
        {"lenses": ["bm25"]},
        {"lenses": ["sparse"]},
        {"lenses": ["multi"]},
        {},
        {"lenses": ["bm25", "dense"], "rerank": "multi"},
        {"rerank": "multi:first=0.5"},
    ],
    ids=str,
)
def test_explanations_are_those_of_one_collection(pair: Pair, settings: dict[str, Any]) -> None:
    collection, joined = pair
    query = QUERIES[1]
    hits = collection.search([query], exact=True, **settings)[0]
    last = [document.doc_id for document in collection.documents()][-1]  # hardly a hit
    for doc_id in (hits[0].doc_id, hits[-1].doc_id, last):
        expected = collection.explain(query, doc_id, exact=True, **settings)
        found = joined.explain(query, doc_id, exact=True, **settings)
        assert found.score == pytest.approx(expected.score, abs=1e-5)
        assert found.strength == pytest.approx(expected.strength, abs=1e-5)
        assert found.passage == expected.passage
        assert sum(part.score for part in found.parts) == pytest.approx(found.score, abs=1e-4)
        for one, other in zip(expected.parts, found.parts, strict=True):
            assert (one.label, one.kind, one.doc_spans) == (other.label, other.kind, other.doc_spans)
            assert other.score == pytest.approx(one.score, abs=1e-5)
            assert {name: value for name, value in other.facts.items() if isinstance(value, str)} == {
                name: value for name, value in one.facts.items() if isinstance(value, str)
            }
            for name, value in one.facts.items():
                if isinstance(value, int | float):
                    assert other.facts[name] == pytest.approx(value, abs=1e-5)


def test_a_search_takes_three_rounds(pair: Pair) -> None:
    joined = pair[1]
    joined.asked.clear()
    joined.search(QUERIES)
    assert joined.asked == ["statistics", "find", "hits"]


def test_what_parts_cannot_score_alike_is_refused(pair: Pair) -> None:
    joined = pair[1]
    with pytest.raises(BadInput, match="cannot expand"):
        joined.search(QUERIES, lenses=["bm25"], expand="on")
    with pytest.raises(BadInput, match=r"params.multi lets scores depend on all passages"):
        joined.search(QUERIES, lenses=["multi"], params={"multi": {"method": "xtr", "candidates": 0}})


def test_collections_that_share_a_sequence_of_keys_are_parts_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents are dealt out by a hash of their ids; ties are between equal texts in different parts."""
    monkeypatch.setattr(writer, "BUFFER_PASSAGES", 16)
    documents = make_documents(60)
    with Collection.create(tmp_path / "whole", lenses=["bm25", "dense"], threads=1) as whole:
        whole.add(documents)
        whole.commit()
        parts = [Collection.create(tmp_path / f"p{shard}", lenses=["bm25", "dense"], threads=1) for shard in range(SHARDS)]
        for shard, part in enumerate(parts):
            mine = [(key, document) for key, document in enumerate(documents, start=1) if hash_of(document) == shard]
            part.add([document for _, document in mine], keys=[key for key, _ in mine])
            part.commit()
        joined = Joined(parts)
        every: list[dict[str, Any]] = [{"lenses": ["bm25"]}, {"lenses": ["dense"]}, {}]
        for settings in every:
            require_equal(whole.search(QUERIES, k=15, **settings), joined.search(QUERIES, k=15, **settings))
        joined.close()


def hash_of(document: Document) -> int:
    return sum(document.doc_id.encode()) % SHARDS


def test_a_lens_that_is_not_indexed_re_ranks(tmp_path: Path) -> None:
    with Collection.create(tmp_path / "c", lenses=["tokens"], threads=1) as collection:
        for first in (0, 10):
            collection.add(make_documents(10, first=first))
            collection.commit()
        joined = Joined(split(collection, tmp_path, 2))
        require_equal(collection.search(QUERIES, rerank="sparse"), joined.search(QUERIES, rerank="sparse"))
        assert joined.asked == ["statistics", "find", "rerank", "hits"]
        joined.close()


def test_documents_are_found_in_their_parts(pair: Pair) -> None:
    collection, joined = pair
    assert len(joined) == len(collection)
    assert [joined.get(document.doc_id) for document in collection.documents()] == list(collection.documents())
    assert joined.get("nothing") is None
    with pytest.raises(BadInput, match="there is no document 'nothing'"):
        joined.explain("oil", "nothing")


def test_collections_that_are_no_parts_of_one_are_refused(tmp_path: Path) -> None:
    with (
        Collection.create(tmp_path / "one", lenses=["bm25"]) as one,
        Collection.create(tmp_path / "two", lenses=["bm25"], bm25={"k1": 2}) as two,
    ):
        one.add(make_documents(3))
        one.commit()
        with pytest.raises(BadInput, match="two has other lenses or another configuration"):
            Joined([one, two])
        with pytest.raises(BadInput, match="hold the same segment; expected each shard once"):
            Joined([one, one])
        with pytest.raises(BadInput, match="expected at least one"):
            Joined([])


def test_parts_with_codebooks_of_their_own_are_refused(tmp_path: Path) -> None:
    parts = [Collection.create(tmp_path / name, lenses=["multi"], threads=1) for name in ("one", "two")]
    for first, part in enumerate(parts):
        part.add(make_documents(3), keys=range(10 * first + 1, 10 * first + 4))
        part.commit()
    with pytest.raises(BadInput, match="has other codebooks than"):
        Joined(parts)
    for part in parts:
        part.close()


def test_an_empty_collection_has_no_hits(tmp_path: Path) -> None:
    with Collection.create(tmp_path / "empty", lenses=["bm25"]) as empty:
        joined = Joined(split(empty, tmp_path, 2))
        assert joined.search(["oil"]) == [[]]
        assert joined.search([]) == []
        assert joined.asked == []
        joined.close()


def test_statistics_that_lack_a_term_are_an_error(tmp_path: Path) -> None:
    with Collection.create(tmp_path / "c", lenses=["bm25"]) as collection:
        collection.add(make_documents(5))
        collection.commit()
        snapshot, lens = collection.snapshot, collection._lenses["bm25"]
        oil, water = lens.encoder.encode_queries(["oil"]), lens.encoder.encode_queries(["water"])
        given = snapshot.given(snapshot.statistics({"bm25": oil}, {}))
        np.testing.assert_array_equal(given.search("bm25", oil, 5).scores, snapshot.search("bm25", oil, 5).scores)
        with pytest.raises(BadInput, match="do not count the term 'water'"):
            given.search("bm25", water, 5)

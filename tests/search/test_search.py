from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trilens.encode.encoder import Encoded, Progress
from trilens.errors import BadFilter, BadInput
from trilens.lenses.bm25 import Bm25Lens
from trilens.lenses.dense import DenseLens
from trilens.represent import Dense
from trilens.search.fusion import Fusion
from trilens.search.hits import Hit
from trilens.search.options import MOST_HITS, SearchOptions
from trilens.search.search import Search
from trilens.store.commit_record import CommitRecord
from trilens.store.config import CollectionConfig
from trilens.store.creation import create_collection
from trilens.store.lens_set import LensSet
from trilens.store.snapshot import Snapshot
from trilens.store.writer import Writer
from trilens.text.document import Document

BOTH = ["bm25", "dense"]
DOCS = [
    Document("cats", "cat cat cat", metadata={"legs": 4}),
    Document("owl", "owl owl", metadata={"legs": 2}),
    Document("zoo", "cat owl dog", title="Zoo", metadata={"legs": 4}),
]


class LetterEncoder:
    """A text is how often it has a, b … z: enough of a model for vectors that can be worked out by hand."""

    fingerprint = "letters"

    def encode_docs(self, texts: Sequence[str], progress: Progress | None = None) -> Encoded:
        counts = [[text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]
        return Encoded(dense=Dense(np.array(counts, np.float32)))

    def encode_queries(self, texts: Sequence[str]) -> Encoded:
        return self.encode_docs(texts)


class LetterLenses(LensSet):
    """A model as small as the documents."""

    def __init__(self) -> None:
        super().__init__(CollectionConfig(lenses=("bm25",)))
        self._lenses = {"bm25": Bm25Lens(), "dense": DenseLens(LetterEncoder())}


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snapshot]:
    root = make(tmp_path_factory.mktemp("searcher"))
    writer = Writer(root, LetterLenses())
    for document in DOCS:
        writer.add(document)
    writer.commit()
    made = Snapshot(root, LetterLenses())
    yield made
    made.close()


def make(root: Path) -> Path:
    create_collection(root, CommitRecord.empty(CollectionConfig()))
    return root


def find(snapshot: Snapshot, query: str, k: int = 10, names: Sequence[str] = ("bm25",), **options: Any) -> list[Hit]:
    (hits,) = search(snapshot, [query], k, names, **options)
    return hits


def search(snapshot: Snapshot, queries: Sequence[str], k: int, names: Sequence[str], **options: Any) -> list[list[Hit]]:
    return Search(snapshot, LetterLenses(), queries, SearchOptions(k=k, lenses=names, **options)).hits()


def test_one_lens_ranks_by_its_own_score(snapshot: Snapshot) -> None:
    # Letters of "owl": owl owl has 2 + 2 + 2, Zoo cat owl dog has 4 o, 1 w, 1 l.
    hits = find(snapshot, "owl", names=["dense"])
    assert [(hit.doc_id, hit.rank, hit.score) for hit in hits] == [("owl", 1, 6), ("zoo", 2, 6), ("cats", 3, 0)]
    assert [hit.by_lens["dense"].rank for hit in hits] == [1, 2, 3]
    assert all(hit.by_lens["dense"].score == hit.score for hit in hits)


def test_several_lenses_are_fused_by_rank(snapshot: Snapshot) -> None:
    # bm25: cats, zoo; there is no cat in owl. Letters of "cat": cats has 3 + 3 + 3, zoo 1 + 1 + 1, owl none.
    assert [hit.doc_id for hit in find(snapshot, "cat")] == ["cats", "zoo"]
    hits = find(snapshot, "cat", names=BOTH)
    assert [hit.doc_id for hit in hits] == ["cats", "zoo", "owl"]
    assert [hit.score for hit in hits] == pytest.approx([1 / 61 + 1 / 61, 1 / 62 + 1 / 62, 1 / 63])
    assert [sorted(hit.by_lens) for hit in hits] == [BOTH, BOTH, BOTH]
    missed = hits[2].by_lens["bm25"]  # asked for its score, which is no part of the sum
    assert (missed.score, missed.rank, missed.contribution) == (0, None, 0)
    assert [hit.score for hit in hits] == [sum(seen.contribution for seen in hit.by_lens.values()) for hit in hits]
    assert [(hit.by_lens["dense"].rank, hit.by_lens["dense"].score) for hit in hits] == [(1, 9), (2, 3), (3, 0)]


def test_what_a_lens_missed_is_scored_exactly(snapshot: Snapshot) -> None:
    alone = {hit.doc_id: hit.score for hit in find(snapshot, "cat owl", names=["bm25"])}
    fusion = Fusion("weighted", {"dense": 0.5}, depth=1)
    hits = find(snapshot, "cat owl", k=1, names=BOTH, fusion=fusion)
    # Letters of "cat owl": cats has 3 c, 3 a, 3 t; zoo 2 c (dog has none), 1 a, 1 t, 4 o, 1 w, 1 l.
    everything = find(snapshot, "cat owl", names=BOTH, fusion=Fusion("weighted", {"dense": 0.5}))
    assert hits == [replace(everything[0], by_lens=hits[0].by_lens)]
    for hit in everything:
        assert hit.by_lens["bm25"].score == alone[hit.doc_id]
        assert hit.score == pytest.approx(alone[hit.doc_id] + 0.5 * hit.by_lens["dense"].score)
    filled = find(snapshot, "dog", names=BOTH, fusion=Fusion("minmax"))
    assert [hit.by_lens["bm25"].rank for hit in filled] == [1, None, None]


def test_a_fusion_looks_deeper_than_k(snapshot: Snapshot) -> None:
    firsts = [find(snapshot, "cat owl", k=1, names=[name])[0].doc_id for name in BOTH]
    assert firsts == ["zoo", "cats"]  # the lenses disagree, so one document of each is not enough
    everything = find(snapshot, "cat owl", names=BOTH)
    assert find(snapshot, "cat owl", k=1, names=BOTH) == everything[:1]
    assert len(everything[0].by_lens) == 2


@pytest.mark.parametrize("options", [{}, {"names": BOTH}, {"names": ["bm25"], "rerank": "dense"}])
def test_a_page_is_a_slice_of_the_ranking(snapshot: Snapshot, options: dict[str, Any]) -> None:
    everything = find(snapshot, "cat owl", k=10, **options)
    for offset in range(4):
        for k in (1, 2):
            assert find(snapshot, "cat owl", k=k, offset=offset, **options) == everything[offset : offset + k]


def test_a_hit_carries_its_document_and_passage(snapshot: Snapshot) -> None:
    (hit,) = find(snapshot, "dog")
    assert hit.document == DOCS[2]
    assert (hit.passage, hit.start, hit.end) == ("cat owl dog", 0, 11)


@pytest.mark.parametrize("names", [["bm25"], ["dense"], BOTH])
def test_a_filter_excludes(snapshot: Snapshot, names: list[str]) -> None:
    assert {hit.doc_id for hit in find(snapshot, "cat owl", names=names, filter={"legs": 4})} == {"cats", "zoo"}
    assert find(snapshot, "cat owl", names=names, filter={"legs": 8}) == []


@pytest.mark.parametrize("fusion", [None, "zscore:bm25=0.3,dense=0.7,damp=true"])
def test_a_batch_is_its_queries_one_by_one(snapshot: Snapshot, fusion: str | None) -> None:
    queries = ["cat", "owl dog", "cat of unknown origin", "unknown", "cat"]
    together = search(snapshot, queries, 2, BOTH, fusion=fusion)
    assert together == [find(snapshot, query, 2, BOTH, fusion=fusion) for query in queries]


def test_exact_changes_nothing_where_nothing_is_approximate(snapshot: Snapshot) -> None:
    assert find(snapshot, "cat owl", names=BOTH, exact=True) == find(snapshot, "cat owl", names=BOTH)


def test_no_queries_have_no_answers(snapshot: Snapshot) -> None:
    assert search(snapshot, [], 10, BOTH) == []


def test_an_empty_collection_answers_nothing(tmp_path: Path) -> None:
    empty = Snapshot(make(tmp_path), LetterLenses())
    assert search(empty, ["cat", "owl"], 10, BOTH) == [[], []]
    empty.close()


@pytest.mark.parametrize(
    ("queries", "k", "names", "message"),
    [
        ("cat", 10, BOTH, "queries is one string"),
        (["cat", 3], 10, BOTH, "query 2 is int; expected a string"),
        (["cat", " \n"], 10, BOTH, "query 2 is empty"),
        (["\ud800"], 10, BOTH, r"query 1 holds the lone surrogate U\+D800"),
        (["cat"], 0, BOTH, "k is 0; expected a value greater than or equal to 1"),
        (["cat"], MOST_HITS + 1, BOTH, f"expected a value less than or equal to {MOST_HITS}"),
        (["cat"], 10, [], "lenses are none; expected one or more"),
        (["cat"], 10, "bm25", "lenses is 'bm25'; expected a list of lens names"),
        (["cat"], 10, ["bm25", "bm25"], "lenses are bm25, bm25; expected one or more, each once"),
        (["cat"], 10, ["sparse"], "there is no lens 'sparse' in this collection; expected one of bm25, dense"),
        ([], 10, ["sparse"], "there is no lens 'sparse'"),
    ],
)
def test_what_cannot_be_searched_is_refused(
    snapshot: Snapshot, queries: Any, k: int, names: Sequence[str], message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        search(snapshot, queries, k, names)


def test_a_filter_of_another_form_is_refused(snapshot: Snapshot) -> None:
    with pytest.raises(BadFilter):
        find(snapshot, "cat", filter={"legs": {"$about": 4}})

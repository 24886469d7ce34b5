from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from trilens.collection import Collection
from trilens.encode.encoder import Encoded
from trilens.lenses.bm25 import Bm25Lens
from trilens.search.ranking import DocTopK, best_documents
from trilens.text.document import Document

FILLER = "grey stone wall"
MANY = " ".join(["Apple pie now."] * 30)


def documents() -> list[Document]:
    """Three words to a passage; "many" has thirty good passages, the others one each that is worse."""
    return [
        Document("none", f"{FILLER}. {FILLER}."),
        Document("last", f"{FILLER}. An apple grows.", metadata={"kind": "tree"}),
        Document("many", MANY),
        Document("other", f"Apple pie {FILLER}.", metadata={"kind": "tree"}),
    ]


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    passages = {"words": 3, "overlap": 0}
    with Collection.create(tmp_path_factory.mktemp("ranking") / "c", lenses=["bm25"], passages=passages) as made:
        made.add(documents())
        made.commit()
        yield made


def encode(*queries: str) -> Encoded:
    return Bm25Lens().encoder.encode_queries(list(queries))


class Ranked(NamedTuple):
    key: int
    row: int
    score: float


def rank(collection: Collection, query: str, k: int, filter: dict[str, str] | None = None) -> list[Ranked]:
    (ranked,) = lists(best_documents(collection.snapshot, "bm25", encode(query), k, filter))
    return ranked


def lists(top: DocTopK) -> list[list[Ranked]]:
    rows = zip(top.keys.tolist(), top.rows.tolist(), top.scores.tolist(), strict=True)
    return [[one for one in map(Ranked, *columns) if one.row >= 0] for columns in rows]


def ids(collection: Collection, ranked: list[Ranked]) -> list[str]:
    found = collection.snapshot.documents([document.key for document in ranked])
    return [found[document.key].doc_id for document in ranked]


def test_the_collection_has_many_passages_of_one_document(collection: Collection) -> None:
    assert (collection.info()["passages"], len(collection)) == (2 + 2 + 30 + 2, 4)


@pytest.mark.parametrize("k", [1, 2, 3, 4, 50])
def test_a_document_with_many_good_passages_does_not_crowd_out_others(collection: Collection, k: int) -> None:
    assert ids(collection, rank(collection, "apple pies", k)) == ["many", "other", "last"][:k]


def test_each_document_stands_with_its_best_passage(collection: Collection) -> None:
    ranked = rank(collection, "apple", 3)
    texts = {document.doc_id: document.text for document in documents()}
    places = collection.snapshot.places(np.array([document.row for document in ranked]))
    spans = list(zip(places.starts.tolist(), places.ends.tolist(), strict=True))
    passages = {doc_id: texts[doc_id][slice(*span)] for doc_id, span in zip(ids(collection, ranked), spans, strict=True)}
    assert passages == {"many": "Apple pie now.", "other": f"Apple pie {FILLER}."[:14], "last": "An apple grows."}
    assert spans[ids(collection, ranked).index("many")][0] == 0  # of equal passages the first


def test_a_filter_excludes(collection: Collection) -> None:
    assert ids(collection, rank(collection, "apple pies", 2, {"kind": "tree"})) == ["other", "last"]
    assert rank(collection, "apple pies", 2, {"kind": "stone"}) == []


def test_every_query_has_its_own_ranking(collection: Collection) -> None:
    together = lists(best_documents(collection.snapshot, "bm25", encode("apple", "stone", "nothing", "grows"), 2))
    assert together == [rank(collection, query, 2) for query in ("apple", "stone", "nothing", "grows")]
    assert [len(ranked) for ranked in together] == [2, 2, 0, 1]


def test_fewer_documents_are_the_first_of_more(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    words = [f"word{number}" for number in range(30)]
    with Collection.create(tmp_path / "c", lenses=["bm25"], passages={"words": 4, "overlap": 1}) as made:
        for first in (0, 40):
            texts = [" ".join(random.choice(words, random.integers(1, 60))) for _ in range(40)]
            made.add(Document(f"d{first + i}", text) for i, text in enumerate(texts))
            made.commit()
        made.delete([f"d{number}" for number in range(0, 80, 7)])
        made.commit()
        everything = rank(made, "word1 word2 word3", 100)
        assert [ranked.score for ranked in everything] == sorted((ranked.score for ranked in everything), reverse=True)
        assert len({ranked.key for ranked in everything}) == len(everything) > 40
        for k in (1, 2, 5, 20, 40):
            assert rank(made, "word1 word2 word3", k) == everything[:k]

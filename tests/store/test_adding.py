from pathlib import Path

import pytest

from trilens.collection import Collection
from trilens.errors import BadInput
from trilens.text.document import Document

DOCUMENTS = [
    Document("a", "the engine needs oil. " * 20, title="Engines"),
    Document("b", "a river in winter"),
    Document("c", "the bridge over the river"),
]
PASSAGES = {"words": 30, "overlap": 5, "tokens": None}
QUERIES = ["oil in the engine", "the river"]


def make(path: Path, lenses: tuple[str, ...] = ("bm25", "dense", "multi")) -> Collection:
    return Collection.create(path, lenses=lenses, passages=PASSAGES, threads=1)


def test_what_was_encoded_elsewhere_is_indexed_as_if_it_was_encoded_here(tmp_path: Path) -> None:
    with make(tmp_path / "here") as here, make(tmp_path / "there") as there:
        here.add(DOCUMENTS)
        here.commit()
        there.add(DOCUMENTS, encoded=here.encode(DOCUMENTS))
        there.commit()
        assert there.search(QUERIES) == here.search(QUERIES)
        assert there.snapshot.rows > len(DOCUMENTS)  # the first has several passages
        assert [there.explain(QUERIES[0], doc_id).score for doc_id in "abc"] == [
            here.explain(QUERIES[0], doc_id).score for doc_id in "abc"
        ]


def test_encoded_documents_join_those_that_wait_for_encoding(tmp_path: Path) -> None:
    with make(tmp_path / "c", ("bm25",)) as collection:
        collection.add(DOCUMENTS[:1])
        collection.add(DOCUMENTS[1:2], encoded=collection.encode(DOCUMENTS[1:2]))
        collection.add(DOCUMENTS[2:])
        assert collection.commit().added == 3
        assert [document.doc_id for document in collection.documents()] == ["a", "b", "c"]
        assert len(collection.snapshot.segments) == 3


def test_given_keys_are_the_keys(tmp_path: Path) -> None:
    with make(tmp_path / "c", ("bm25",)) as collection:
        collection.add(DOCUMENTS[:2], keys=[7, 20])
        collection.add(DOCUMENTS[2:])
        collection.commit()
        assert [collection.snapshot.key(doc_id) for doc_id in "abc"] == [7, 20, 21]


def test_wrong_keys_and_encodings_are_refused_and_change_nothing(tmp_path: Path) -> None:
    with make(tmp_path / "c", ("bm25", "dense")) as collection:
        collection.add(DOCUMENTS[:1])
        collection.commit()
        encoded = collection.encode(DOCUMENTS[1:])
        with pytest.raises(BadInput, match="key of document 'b' is 1; expected 2 or more"):
            collection.add(DOCUMENTS[1:], keys=[1, 2])
        with pytest.raises(BadInput, match="there are 1 keys for 2 documents"):
            collection.add(DOCUMENTS[1:], keys=[5])
        with pytest.raises(BadInput, match=r"encoded has the lenses bm25; expected bm25, dense"):
            collection.add(DOCUMENTS[1:], encoded={"bm25": encoded["bm25"]})
        with pytest.raises(BadInput, match="encoded has 2 passages for bm25, but the documents have 1"):
            collection.add(DOCUMENTS[1:2], encoded=encoded)
        with pytest.raises(BadInput, match="document 'a' is in the collection already"):
            collection.add(DOCUMENTS[:1], encoded=collection.encode(DOCUMENTS[:1]))
        assert collection.commit().added == 0
        assert len(collection) == 1

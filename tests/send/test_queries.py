"""The vectors that are sent and those of queries make the scores of a search."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.conftest import Trilens
from tests.collection.small import with_model
from tests.store.tiny import LENSES
from trilens import Collection
from trilens.errors import BadInput
from trilens.represent import Dense, Multi, Representation, Sparse
from trilens.send.layout import layout_of
from trilens.send.passages import Passage, read_passages
from trilens.send.queries import encode_queries

from .conftest import DOCUMENTS

QUERIES = ["water at night", "frozen water of rivers", "fox"]


def product(query: Representation, passage: Representation) -> float:
    """The inner product, or MaxSim, of the only vector of each."""
    match query, passage:
        case Dense(), Dense():
            return float(query.vectors[0] @ passage.vectors[0])
        case Sparse(), Sparse():
            weights = dict(zip(passage.terms.tolist(), passage.weights.tolist(), strict=True))
            pairs = zip(query.terms.tolist(), query.weights.tolist(), strict=True)
            return float(sum(weight * weights.get(term, 0.0) for term, weight in pairs))
        case Multi(), Multi():
            return float((query.vectors @ passage.vectors.T).max(axis=1).sum()) if len(passage.vectors) else -np.inf
    raise AssertionError("query and passage have vectors of one kind")


def plain(vectors: Representation) -> tuple[list[Any], ...]:
    match vectors:
        case Dense():
            return (vectors.vectors.tolist(),)
        case Sparse():
            return (vectors.terms.tolist(), vectors.weights.tolist())
        case Multi():
            return (vectors.vectors.tolist(), vectors.offsets.tolist())


def all_passages(collection: Collection) -> list[Passage]:
    return [passage for some in read_passages(collection.snapshot, layout_of(collection, None)) for passage in some]


@pytest.mark.parametrize("lens", [lens for lens in LENSES if lens != "bm25"])
def test_products_are_scores(collection: Collection, lens: str) -> None:
    """With IDF, a boost of own terms, saturation, normalisation, quantisation and deleted rows."""
    passages = all_passages(collection)
    vectors = encode_queries(collection, QUERIES, [lens])[lens]
    for number, query in enumerate(QUERIES):
        (hits,) = collection.search(
            [query], k=100, lenses=[lens], params={"multi": {"method": "exact"}} if lens == "multi" else {}
        )
        assert hits
        own = vectors.take(np.array([number]))
        for hit in hits:
            of_document = [product(own, found.vectors[lens]) for found in passages if found.document.doc_id == hit.doc_id]
            assert hit.score == pytest.approx(max(of_document), rel=1e-5)
            best = next(found for found in passages if found.document.doc_id == hit.doc_id and found.start == hit.start)
            assert product(own, best.vectors[lens]) == pytest.approx(hit.score, rel=1e-5)


def test_vectors_of_some_rows_are_those_of_all(collection: Collection) -> None:
    """Whatever rows are read together, also across segments."""
    snapshot = collection.snapshot
    rows = np.arange(snapshot.rows)
    for lens in LENSES[1:]:
        searcher = snapshot.searcher(lens)
        every = searcher.vectors(rows)
        assert every is not None and len(every) == snapshot.rows
        some = rows[[0, 2, snapshot.rows - 1]]
        for chosen in (some, *(rows[row : row + 1] for row in rows)):
            taken = searcher.vectors(chosen)
            assert taken is not None and plain(taken) == plain(every.take(chosen))
    assert snapshot.searcher("bm25").vectors(rows) is None
    assert snapshot.query_vectors(["bm25"], ["water"]) == {"bm25": None}


@with_model
def test_the_command(trilens: Trilens, tmp_path: Path) -> None:
    with Collection.create(tmp_path / "c", lenses=["bm25", "dense", "lexical", "multi"]) as collection:
        collection.add(DOCUMENTS)
        collection.commit()
        expected = encode_queries(collection, QUERIES[:2])
    outcome = trilens("embed", tmp_path / "c", *QUERIES[:2], "--threads", 1)
    lines = [json.loads(line) for line in outcome.out.splitlines()]
    assert [line.pop("query") for line in lines] == QUERIES[:2]
    assert [list(line) for line in lines] == [["dense", "lexical", "multi"]] * 2
    for number, line in enumerate(lines):
        dense, lexical, multi = (plain(expected[lens].take(np.array([number]))) for lens in line)
        assert [line["dense"]] == dense[0]
        assert (line["lexical"]["terms"], line["lexical"]["weights"]) == lexical
        assert line["multi"] == multi[0]
    outcome = trilens("embed", tmp_path / "c", "query", "--lens", "bm25")
    assert outcome.code == 1 and outcome.err.startswith("trilens: lens bm25 has no vectors; expected lenses with vectors")


def test_what_is_no_query(collection: Collection) -> None:
    with pytest.raises(BadInput, match="queries is one string"):
        encode_queries(collection, "water")
    with pytest.raises(BadInput, match="query 2 is empty"):
        encode_queries(collection, ["water", " "])
    with pytest.raises(BadInput, match=r"^there is no lens 'x' in .*; expected some of bm25, dense"):
        encode_queries(collection, ["water"], ["x"])

"""The transformer and the indexer of PyTerrier, in pipelines."""

from pathlib import Path
from typing import Any

import pytest

pt = pytest.importorskip("pyterrier", reason="run by scripts/test-doors")

import pandas as pd

from tests.doors.conftest import TEXTS
from trilens import Collection
from trilens.errors import BadInput
from trilens.integrations.pyterrier import PyTerrierIndexer, PyTerrierRetriever

QUERIES = pd.DataFrame([["q1", "moving water"], ["q2", "undo a commit"], ["q3", "grease"]], columns=["qid", "query"])


def test_results_are_those_of_the_collection(collection: Collection) -> None:
    found = PyTerrierRetriever(collection, num_results=3, fields=["text", "title", "year"])(QUERIES)
    expected = [
        (qid, query, hit.doc_id, hit.score, hit.rank - 1, hit.document.text, hit.document.title)
        for (qid, query), hits in zip(QUERIES.values, collection.search(list(QUERIES["query"]), k=3), strict=True)
        for hit in hits
    ]
    columns = ["qid", "query", "docno", "score", "rank", "text", "title"]
    assert list(found[columns].itertuples(index=False, name=None)) == expected
    assert found.loc[found["docno"] == "git", "year"].iloc[0] == 2021


def test_pipelines_compose_without_java(collection: Collection) -> None:
    bm25, dense = (PyTerrierRetriever(collection, lenses=[lens]) for lens in ("bm25", "dense"))
    best: Any = bm25 % 1  # no string formatting
    assert list(best(QUERIES)["docno"]) == ["pumps", "git", "bearings"]
    lengths = pt.apply.doc_score(lambda row: float(len(TEXTS[row["docno"]])))
    by_length: Any = (dense % 2 >> lengths)(QUERIES)
    for _, group in by_length.groupby("qid"):
        assert len(group) == 2
        assert list(group.sort_values("rank")["score"]) == sorted((len(TEXTS[name]) for name in group["docno"]), reverse=True)
    both = (bm25 + dense)(QUERIES).set_index(["qid", "docno"])["score"]
    parts = [single(QUERIES).set_index(["qid", "docno"])["score"] for single in (bm25, dense)]
    pd.testing.assert_series_equal(both.sort_index(), (parts[0].add(parts[1], fill_value=0)).sort_index())
    assert not pt.java.started()


def test_a_rank_cutoff_becomes_the_number_of_results(collection: Collection) -> None:
    pipeline: Any = PyTerrierRetriever(collection, fields=["title"], lenses=["bm25"]) % 2
    compiled = pipeline.compile()
    assert isinstance(compiled, PyTerrierRetriever)
    assert (compiled.num_results, compiled.fields, compiled.search_options) == (2, ("title",), {"lenses": ["bm25"]})
    assert compiled.fuse_rank_cutoff(5).num_results == 2


def test_an_experiment_measures_it(collection: Collection) -> None:
    qrels = pd.DataFrame([["q1", "pumps", 1], ["q2", "git", 1], ["q3", "fins", 1]], columns=["qid", "docno", "label"])
    retriever = PyTerrierRetriever(collection, lenses=["bm25"])
    measured = pt.Experiment([retriever], QUERIES, qrels, eval_metrics=["recip_rank"])
    assert measured["recip_rank"].iloc[0] == pytest.approx(2 / 3)
    assert measured["name"].iloc[0] == "trilens(small.trilens, lenses=['bm25'])"


def test_queries_keep_their_columns_and_may_have_documents(collection: Collection) -> None:
    retriever = PyTerrierRetriever(collection, lenses=["bm25"])
    again = (retriever >> retriever)(QUERIES)
    assert list(again["docno"]) == list(retriever(QUERIES)["docno"])
    assert retriever(QUERIES.assign(query_0="before"))["query_0"].eq("before").all()
    none = retriever(pd.DataFrame([["q", "zebra"]], columns=["qid", "query"]))
    assert len(none) == 0 and {"qid", "query", "docno", "score", "rank"} <= set(none.columns)


def test_the_indexer_makes_and_updates_a_collection(tmp_path: Path) -> None:
    indexer = PyTerrierIndexer(tmp_path / "c", lenses=["bm25"])
    records = [{"docno": name, "text": text, "title": name.title(), "n": len(name)} for name, text in TEXTS.items()]
    with indexer.index(records) as collection:
        assert PyTerrierRetriever(collection).search("radiator")["docno"].tolist() == ["fins"]
        fins = collection.get("fins")
        assert fins and (fins.title, dict(fins.metadata)) == ("Fins", {"title": "Fins", "n": 4})
    with indexer.index([{"docno": "fins", "text": "Owls hunt."}]) as collection:
        assert len(collection) == len(TEXTS)
        assert PyTerrierRetriever(collection).search("owls")["docno"].tolist() == ["fins"]
    with pytest.raises(BadInput, match="expected docno and text"):
        indexer.index([{"docno": "x"}])
    with pytest.raises(BadInput, match="expected a list of text"):
        PyTerrierRetriever(collection, fields=["score"])
    with pytest.raises(BadInput, match="got str; expected a trilens"):
        PyTerrierRetriever("c")  # type: ignore[arg-type]

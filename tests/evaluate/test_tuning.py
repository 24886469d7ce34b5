"""Weights from judged queries: what is found, what it is worth on others, and where it is kept."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from trilens import Collection, Document
from trilens.datasets.beir import Beir
from trilens.errors import BadInput
from trilens.evaluate.measures import means, parse_measures, per_query
from trilens.evaluate.tuning import TuningSet, tune
from trilens.search.fusion import Fusion

WORDS = [f"word{n}" for n in range(60)]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Documents that only their rare words tell apart, so that bm25 is right and vectors of the letters are not."""
    folder = tmp_path_factory.mktemp("tuning")
    random = np.random.default_rng(3)
    docs = [" ".join(random.choice(WORDS, 12, replace=False)) for _ in range(40)]
    lines = [json.dumps({"_id": f"d{n}", "title": "", "text": text}) for n, text in enumerate(docs)]
    (folder / "corpus.jsonl").write_text("\n".join(lines) + "\n")
    queries = [" ".join(random.choice(text.split(), 4, replace=False)) for text in docs[:20]]
    lines = [json.dumps({"_id": f"q{n}", "text": text}) for n, text in enumerate(queries)]
    (folder / "queries.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "qrels").mkdir()
    for split, chosen in (("dev", range(12)), ("test", range(12, 20)), ("ten", range(10)), ("few", range(3))):
        rows = [f"q{n}\td{n}\t1" for n in chosen]
        (folder / "qrels" / f"{split}.tsv").write_text("query-id\tcorpus-id\tscore\n" + "\n".join(rows) + "\n")
    return folder


@pytest.fixture
def collection(dataset: Path, tmp_path: Path) -> Iterator[Collection]:
    with Collection.create(tmp_path / "c", lenses=["bm25", "dense"], threads=1) as made:
        for line in (dataset / "corpus.jsonl").read_text().splitlines():
            record = json.loads(line)
            made.add([Document(record["_id"], record["text"])])
        made.commit()
        yield made


def test_the_better_lens_gets_the_weight(collection: Collection, dataset: Path) -> None:
    found = tune([TuningSet(collection, Beir(dataset), "dev")], ["bm25", "dense"])
    assert found.queries == 12
    assert found.baselines["bm25"] > found.baselines["dense"]
    assert found.best.chosen_on >= max(found.baselines["bm25"], found.baselines["rrf"]) - 1e-9
    of_model = tune([TuningSet(collection, Beir(dataset), "dev")], ["bm25", "dense"], policies=["zscore"])
    assert of_model.best.chosen_on >= of_model.baselines["model"] - 1e-9
    assert {result.fusion.damp for result in found.results if result.fusion.policy == "rrf"} == {False}
    for result in found.results:
        assert sum(result.fusion.weights.values()) == pytest.approx(1)
        assert result.unseen <= result.chosen_on + 1e-9
        assert len(result.folds) == 5
    again = tune([TuningSet(collection, Beir(dataset), "dev")], ["bm25", "dense"])
    assert again == found


def test_what_was_saved_is_used(collection: Collection, dataset: Path) -> None:
    lenses = ["bm25", "dense"]
    found = tune([TuningSet(collection, Beir(dataset), "dev")], lenses, policies=["zscore"])
    query = ["word1 word2 word3"]
    before, of_model = collection.search(query)[0], collection.model.fusions["bm25+dense"]
    assert before == collection.search(query, fusion=of_model)[0]
    collection.save_tuned(lenses, found.record())
    record = collection.info()["tuned"]["bm25+dense"]
    assert record["fusion"] == str(found.best.fusion)
    with Collection.open(collection.path) as other:
        tuned = other.search(query, lenses=["dense", "bm25"])[0]
        assert tuned == other.search(query, lenses=["dense", "bm25"], fusion=found.best.fusion)[0]
        assert other.search(query)[0] == tuned != before
        assert other.search(query, fusion="none")[0] == other.search(query, fusion="rrf")[0]
        assert other.search(query, lenses=["bm25"])[0][0].score > 0
        other.add([Document("more", "word1")])
        other.commit()
        other.optimize()
        assert other.info()["tuned"]["bm25+dense"] == record
        assert other.check().problems == []
        other.save_tuned(lenses, None)
        assert other.info()["tuned"] == {}
        assert other.search(query)[0] == other.search(query, fusion=of_model)[0]


def test_the_value_is_that_of_a_search(collection: Collection, dataset: Path) -> None:
    found = tune([TuningSet(collection, Beir(dataset), "dev")], ["bm25", "dense"], policies=["minmax"])
    queries = Beir(dataset).queries("dev")
    answers = collection.search(list(queries.values()), 100, fusion=found.best.fusion)
    run = {one: {hit.doc_id: hit.score for hit in hits} for one, hits in zip(queries, answers, strict=True)}
    values = per_query(run, Beir(dataset).qrels("dev"), parse_measures(["nDCG@10"]))
    assert means(values)["nDCG@10"] == pytest.approx(found.best.chosen_on)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"split": "test"}, "weights must not be chosen on test queries"),
        ({"split": "Test-2"}, "weights must not be chosen on test queries"),
        ({"split": "few"}, "3 judged queries"),
        ({"lenses": ["bm25"]}, "two or more"),
        ({"measure": "beauty"}, "measure is 'beauty'"),
        ({"measure": "Hit@5"}, "measure is 'Hit@5'; expected a measure of relevance judgements"),
        ({"policies": ["convex"]}, "policies are convex"),
        ({"most": 9}, "most is 9; expected at least 10"),
        ({"lenses": ["bm25", "multi"]}, "has no multi; expected every collection to have all of bm25, multi"),
    ],
)
def test_what_cannot_be_tuned(collection: Collection, dataset: Path, options: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {"split": "dev", "lenses": ["bm25", "dense"], **options}
    asked = [TuningSet(collection, Beir(dataset), "dev"), TuningSet(collection, Beir(dataset), str(arguments.pop("split")))]
    with pytest.raises(BadInput, match=message):
        tune(asked, **arguments)  # type: ignore[arg-type]


def test_a_collection_of_something_else(dataset: Path, tmp_path: Path) -> None:
    with Collection.create(tmp_path / "other", lenses=["bm25", "tokens"], threads=1) as other:
        other.add([Document("x", "word1 word2")])
        other.commit()
        with pytest.raises(BadInput, match="none of the 12 relevant documents"):
            tune([TuningSet(other, Beir(dataset), "dev")], ["bm25", "tokens"])


def test_what_is_odd_about_the_queries_is_told(collection: Collection, dataset: Path, tmp_path: Path) -> None:
    assert not tune([TuningSet(collection, Beir(dataset), "dev")], ["bm25", "dense"], policies=["rrf"]).warnings
    odd = shutil.copytree(dataset, tmp_path / "odd")
    rows = [f"q{n}\td{n}\t{int(n > 8)}" for n in range(14)]
    (odd / "qrels" / "dev.tsv").write_text("\n".join(rows) + "\n")
    found = tune([TuningSet(collection, Beir(odd), "dev")], ["bm25", "dense"], policies=["rrf"])
    assert found.warnings[0].startswith("9 queries have no relevant document")
    assert found.warnings[1].startswith("2 of the queries are in the split 'test' too")
    (odd / "qrels" / "dev.tsv").write_text("\n".join(f"q{n}\td{n}\t0" for n in range(14)) + "\n")
    with pytest.raises(BadInput, match="judges no document relevant"):
        tune([TuningSet(collection, Beir(odd), "dev")], ["bm25", "dense"])


def test_collections_count_alike_however_many_queries_they_have(collection: Collection, dataset: Path, tmp_path: Path) -> None:
    with Collection.create(tmp_path / "titles", threads=1) as other:  # of the same ids, with other texts
        for line in (dataset / "corpus.jsonl").read_text().splitlines():
            record = json.loads(line)
            other.add([Document(record["_id"], " ".join(record["text"].split()[:6]))])
        other.commit()
        first, second = TuningSet(collection, Beir(dataset), "dev"), TuningSet(other, Beir(dataset), "ten")
        alone = [tune([one], ["bm25", "dense"], policies=["zscore"]) for one in (first, second)]
        both = tune([first, second], ["bm25", "dense"], policies=["zscore"])
        fewer = tune([first, second], ["bm25", "dense"], policies=["zscore"], most=11)
    assert (both.queries, fewer.queries) == (22, 21)
    assert (both.dataset, both.split) == (f"{dataset.name}, {dataset.name}", "dev, ten")
    for lens in ("bm25", "dense", "rrf"):
        assert both.baselines[lens] == pytest.approx(np.mean([one.baselines[lens] for one in alone]))
    assert both.best.chosen_on <= np.mean([one.best.chosen_on for one in alone]) + 1e-9
    assert both.best.chosen_on >= max(both.baselines.values()) - 1e-9


def test_the_same_queries_twice_change_nothing(collection: Collection, dataset: Path) -> None:
    one = TuningSet(collection, Beir(dataset), "dev")
    once, twice = tune([one], ["bm25", "dense"]), tune([one, one], ["bm25", "dense"])
    assert [result.folds for result in once.results] == [result.folds for result in twice.results]
    assert [result.unseen for result in once.results] == pytest.approx([result.unseen for result in twice.results])
    with pytest.raises(BadInput, match="nothing to tune on"):
        tune([], ["bm25", "dense"])


def test_only_fusions_of_these_lenses_are_kept(collection: Collection) -> None:
    with pytest.raises(BadInput, match="gives a weight to multi"):
        collection.save_tuned(["bm25", "dense"], {"fusion": str(Fusion("rrf", {"multi": 1.0}))})

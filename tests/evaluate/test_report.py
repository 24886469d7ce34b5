"""HTML reports: self-contained, well-formed, escaped, and with the right content."""

import json
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from trilens import Collection
from trilens.datasets.beir import Beir
from trilens.evaluate.comparison import compare
from trilens.evaluate.evaluation import LensResult, Task, evaluate
from trilens.evaluate.examples import ExampleFinder
from trilens.evaluate.report import DatasetReport, _rivals, comparison_page, dataset_report, evaluation_page
from trilens.evaluate.variants import parse_variant
from trilens.read.readers import read as read_documents

EVIL = '<img src=x onerror="alert(1)">&amp;'
VOID = {"meta", "br", "img", "input", "link"}
LATE = '{"lenses": ["tokens"], "rerank": "sparse"}'  # sparse is computed for the candidates at query time
WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]


class Strict(HTMLParser):
    """Checks that tags are nested correctly and that the page contains no scripts and no external resources."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("script", "img", "iframe", "link", "object", "form")
        for name, value in attrs:
            assert not name.startswith("on") and name != "src"
            assert name != "href" or (value or "").startswith("#")
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text += data


def read(page: str) -> Strict:
    parser = Strict()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    assert "http:" not in page and "https:" not in page and "url(" not in page
    assert "default-src 'none'" in page
    return parser


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "letters"
    (made / "qrels").mkdir(parents=True)
    docs = [{"_id": str(n), "title": "", "text": f"About {word}, {word} and {EVIL}"} for n, word in enumerate(WORDS)]
    (made / "corpus.jsonl").write_text("".join(json.dumps(doc) + "\n" for doc in docs))
    queries = [{"_id": f"q{n}", "text": f"what is {word} <b>"} for n, word in enumerate(WORDS)]
    (made / "queries.jsonl").write_text("".join(json.dumps(query) + "\n" for query in queries))
    (made / "qrels" / "test.tsv").write_text("\n".join(f"q{n}\t{n}\t1" for n in range(len(WORDS))))
    return made


@pytest.fixture
def collection(tmp_path: Path, folder: Path) -> Iterator[Collection]:
    with Collection.create(tmp_path / "c", lenses=["bm25", "tokens"], threads=1) as made:
        made.ingest(read_documents([folder / "corpus.jsonl"]))
        yield made


def measured(collection: Collection, folder: Path, *names: str) -> list[LensResult]:
    variants = [parse_variant(name, collection.lenses) for name in names]
    return evaluate(collection, Task(Beir(folder).split("test")), variants)


def reported(collection: Collection, folder: Path, results: list[LensResult]) -> DatasetReport:
    variants = [parse_variant(result.lens, collection.lenses) for result in results]
    return dataset_report(collection, "letters", Beir(folder).split("test"), variants, results)


def test_an_evaluation_report_is_self_contained_and_complete(collection: Collection, folder: Path) -> None:
    results = measured(collection, folder, "bm25", "tokens", "rrf", "tokens:query=bag", LATE)
    report = reported(collection, folder, results)
    page = read(evaluation_page([report]))
    for text in (
        "Retrieval quality by lens",
        "letters",
        "best",
        "8 judged queries",
        "tokens:query=bag",
        "MB",
        "Quality against cost",
    ):
        assert text in page.text
    assert {"svg", "circle", "table", "details"} <= page.tags
    assert report.bytes["rrf"] == report.bytes["bm25"] + report.bytes["tokens"] > 0
    assert report.bytes["tokens:query=bag"] == report.bytes[LATE] == report.bytes["tokens"]


def test_several_collections_have_an_overview(collection: Collection, folder: Path) -> None:
    results = measured(collection, folder, "bm25", "tokens")
    report = reported(collection, folder, results)
    page = read(evaluation_page([report, report]))
    assert "mean" in page.text and "not significantly worse than the best" in page.text


def test_a_report_of_one_lens(collection: Collection, folder: Path) -> None:
    page = read(evaluation_page([reported(collection, folder, measured(collection, folder, "bm25"))]))
    assert "no other run was compared" in page.text


def test_examples_are_explained_by_winner_and_loser(collection: Collection, folder: Path) -> None:
    results = measured(collection, folder, "bm25", "tokens")
    bad = {query: {doc: -score for doc, score in scores.items()} for query, scores in results[0].run.items()}
    worse = [results[0], type(results[1])("tokens", results[1].measures, 1.0, bad | {"q0": {"3": 1.0}})]
    report = reported(collection, folder, worse)
    [example, *_] = report.examples["bm25"]
    assert [reason.lens for reason in example.reasons] == ["bm25", "tokens"]
    assert (example.query_id, example.rival) == ("q0", "3")
    page = evaluation_page([report])
    assert EVIL not in page
    text = read(page).text
    assert "alert(1)" in text and "“what is alpha <b>”" in text and "Queries on which bm25 is best" in text


def test_a_comparison_page_escapes_its_inputs() -> None:
    qrels = {EVIL: {"x": 1}, "q": {"x": 1}}
    runs = {EVIL: {EVIL: {"x": 2.0, "n": 1.0}, "q": {"x": 1.0}}, "b": {EVIL: {EVIL: 2.0}, "lost": {"x": 1.0}}}
    comparison = compare(runs, qrels, ["RR"])
    examples = ExampleFinder(comparison, runs, qrels, {EVIL: EVIL}).largest_differences(5)
    page = comparison_page(comparison, examples, f"Comparison of {EVIL}")
    assert "<img" not in page
    text = read(page).text
    assert EVIL in text and "lacks 1 judged query (q)" in text and "1 query (lost) without judgements" in text


def test_rivals_have_other_lenses_and_single_lenses_come_first() -> None:
    names = ["rrf", "bm25", "tokens", "tokens:query=bag"]
    variants = {name: parse_variant(name, ["bm25", "tokens"]) for name in names}
    # Reciprocal ranks 1, 1/2, 1/3 and 1/4: the ranking is the order of the names.
    runs = {name: {"q": {f"d{n}": float(4 - n) for n in range(4)} | {"x": 4.5 - rank}} for rank, name in enumerate(names)}
    rivals = _rivals(compare(runs, {"q": {"x": 1}}, ["RR"]), variants)
    assert rivals == {
        "rrf": ["bm25", "tokens", "tokens:query=bag"],
        "bm25": ["tokens", "tokens:query=bag", "rrf"],
        "tokens": ["bm25", "rrf"],
    }

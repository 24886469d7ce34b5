"""Reports: one file that runs nothing, asks for nothing, says who wins, and escapes what it was given."""

import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from trilens import Collection
from trilens.evaluate.charts import Point, _labels, _meets, intervals, query_by_query, trade_off
from trilens.evaluate.comparison import compare
from trilens.evaluate.evaluation import LensResult, Task, evaluate
from trilens.evaluate.examples import Finder
from trilens.evaluate.pictures import comparison_picture
from trilens.evaluate.report import Evaluated, comparison_page, evaluation_page, gather
from trilens.evaluate.variants import parse_variant
from trilens.text.beir import Beir
from trilens.text.readers import read as read_documents

EVIL = '<img src=x onerror="alert(1)">&amp;'
VOID = {"meta", "br", "img", "input", "link"}
LATE = "rrf:tokens=1,rerank=sparse"  # sparse is made for the candidates alone
WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]


class Strict(HTMLParser):
    """Checks that tags close in order, and that nothing could run or be fetched."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("script", "img", "iframe", "link", "object", "form")
        for name, value in attrs:
            assert not name.startswith("on") and name != "src"
            assert name != "href" or (value or "").startswith("#")
        self.seen.add(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)

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


def gathered(collection: Collection, folder: Path, results: list[LensResult]) -> Evaluated:
    variants = [parse_variant(result.lens, collection.lenses) for result in results]
    return gather(collection, "letters", Beir(folder).split("test"), variants, results)


def test_a_report_is_one_safe_file_that_says_who_wins(collection: Collection, folder: Path) -> None:
    results = measured(collection, folder, "bm25", "tokens", "rrf", "tokens:query=bag", LATE)
    evaluated = gathered(collection, folder, results)
    page = read(evaluation_page([evaluated]))
    for text in (
        "Which lens finds best?",
        "letters",
        "best",
        "8 judged queries",
        "tokens:query=bag",
        "MB",
        "What quality costs",
    ):
        assert text in page.text
    assert {"svg", "circle", "table", "details"} <= page.seen
    assert evaluated.bytes["rrf"] == evaluated.bytes["bm25"] + evaluated.bytes["tokens"] > 0
    assert evaluated.bytes["tokens:query=bag"] == evaluated.bytes[LATE] == evaluated.bytes["tokens"]


def test_several_sets_have_an_overview(collection: Collection, folder: Path) -> None:
    results = measured(collection, folder, "bm25", "tokens")
    one = gathered(collection, folder, results)
    page = read(evaluation_page([one, one]))
    assert "mean" in page.text and "not significantly behind it" in page.text


def test_a_report_of_one_lens(collection: Collection, folder: Path) -> None:
    page = read(evaluation_page([gathered(collection, folder, measured(collection, folder, "bm25"))]))
    assert "nothing else was measured" in page.text


def test_examples_are_explained_by_winner_and_loser(collection: Collection, folder: Path) -> None:
    results = measured(collection, folder, "bm25", "tokens")
    bad = {query: {doc: -score for doc, score in found.items()} for query, found in results[0].run.items()}
    worse = [results[0], type(results[1])("tokens", results[1].measures, 1.0, bad | {"q0": {"3": 1.0}})]
    evaluated = gathered(collection, folder, worse)
    [example, *_] = evaluated.examples["bm25"]
    assert [why.lens for why in example.whys] == ["bm25", "tokens"]
    assert (example.query_id, example.rival) == ("q0", "3")
    page = evaluation_page([evaluated])
    assert EVIL not in page
    text = read(page).text
    assert "alert(1)" in text and "“what is alpha <b>”" in text and "bm25 answers best, for example" in text


def test_the_page_of_a_comparison_escapes_everything() -> None:
    qrels = {EVIL: {"x": 1}, "q": {"x": 1}}
    runs = {EVIL: {EVIL: {"x": 2.0, "n": 1.0}, "q": {"x": 1.0}}, "b": {EVIL: {EVIL: 2.0}, "lost": {"x": 1.0}}}
    comparison = compare(runs, qrels, ["RR"])
    examples = Finder(comparison, runs, qrels, {EVIL: EVIL}).largest_differences(5)
    page = comparison_page(comparison, examples, f"Comparison of {EVIL}")
    assert "<img" not in page
    text = read(page).text
    assert EVIL in text and "lacks 1 judged query (q)" in text and "1 query (lost) without judgements" in text


def test_charts_are_well_formed_and_within_their_frame() -> None:
    random = np.random.default_rng(1)
    points = [Point(f"lens {n}", 10.0 ** random.uniform(-1, 3), random.uniform(0.3, 0.6), "red") for n in range(12)]
    values = (random.uniform(0, 1, 50), random.uniform(0, 1, 50))
    found = compare({"a": {"q": {"x": 1.0}}, "b": {"q": {"y": 1.0}}}, {"q": {"x": 1}}, ["RR"])
    for drawn in (
        trade_off(points, "ms <", "nDCG & more"),
        trade_off([Point("alone", 5.0, 0.0, "red")], "ms", "nDCG"),
        query_by_query(*values, ("<a>", "b"), ("red", "blue")),
        intervals(found.pairs),
    ):
        image = ElementTree.fromstring(drawn)
        width, height = (float(size) for size in image.attrib["viewBox"].split()[2:])
        for circle in image.iter("circle"):
            assert 0 <= float(circle.attrib["cx"]) <= width and 0 <= float(circle.attrib["cy"]) <= height
        assert not re.search("nan|inf", drawn)


def test_labels_do_not_lie_on_each_other() -> None:
    spots = [(100.0 + 30 * n, 150.0 + 4 * n) for n in range(5)]
    boxes: list[tuple[float, float, float, float]] = []
    for label, x, y, anchor in _labels([f"lens-{n}" for n in range(5)], spots):
        width = 6.4 * len(label)
        left = x if anchor == "start" else x - width if anchor == "end" else x - width / 2
        box = (left, y - 11, left + width, y + 3)
        assert not _meets(box, boxes)
        boxes.append(box)
    [(label, *_)] = _labels(["one", "two"], [(100.0, 100.0), (101.0, 100.0)])
    assert label == "one = two"


def test_a_picture_of_a_comparison(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    found = compare({"a$": {"q": {"x": 1.0}}, "b": {"q": {"y": 1.0}}}, {"q": {"x": 1}}, ["RR"])
    comparison_picture(found, tmp_path / "c.png")
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")

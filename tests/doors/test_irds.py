"""Datasets of ir_datasets, registered in its own registry, as judged collections of `trilens eval`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ir_datasets = pytest.importorskip("ir_datasets", reason="run by scripts/test-doors")

from ir_datasets.datasets.base import Dataset
from ir_datasets.formats import TrecQrels, TsvDocs, TsvQueries
from ir_datasets.util import Download, LocalDownload, RequestsDownload

from trilens.cli.main import app
from trilens.datasets.layouts import open_dataset
from trilens.errors import BadInput, ServiceFailed
from trilens.read.readers import read


class TitledDoc(NamedTuple):
    """A document whose default text starts with its title."""

    doc_id: str
    title: str
    body: str

    def default_text(self) -> str:
        return f"{self.title} {self.body}"


DOCS = "d1\tPumps\tThey move water.\nd2\tOwls\tThey hunt at night.\nd3\t\tNo title.\n"
QUERIES = "1\twater pumps\n2\thunting owls\n3\tnobody judged this\n"
QRELS = {"one": "1 0 d1 2\n1 0 d2 0\n2 0 d2 1\n", "twice": "1 0 d1 1\n1 0 d1 0\n"}


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Datasets below one name: a corpus, two sets of judgements over it, and two whose documents cannot be obtained."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    name = f"trilens-test-{tmp_path.name}"

    def local(file: str, text: str) -> LocalDownload:
        (tmp_path / file).write_text(text)
        return LocalDownload(tmp_path / file)

    docs = TsvDocs(local("docs.tsv", DOCS), doc_cls=TitledDoc, lang="en")
    queries = TsvQueries(local("queries.tsv", QUERIES), lang="en")
    ir_datasets.registry.register(name, Dataset(docs, queries))
    for judged, qrels in QRELS.items():
        judgements = TrecQrels(local(judged, qrels), {0: "no", 1: "yes", 2: "very"})
        ir_datasets.registry.register(f"{name}/{judged}", Dataset(docs, queries, judgements))
    absent = LocalDownload(tmp_path / "absent.tsv")
    mirrors = [RequestsDownload("http://127.0.0.1:9/docs.tsv"), RequestsDownload("http://127.0.0.1:9/mirror.tsv")]
    unreachable = Download(mirrors, tmp_path / "unreachable.tsv")
    for problem, source in (("absent", absent), ("unreachable", unreachable)):
        ir_datasets.registry.register(f"{name}/{problem}", Dataset(TsvDocs(source), queries, judgements))
    yield name


def test_documents_queries_and_judgements(catalog: str) -> None:
    dataset = open_dataset(f"irds/{catalog}/one")
    documents = {document.doc_id: (document.title, document.text) for document in read(dataset.sources)}
    assert documents == {"d1": ("Pumps", "They move water."), "d2": ("Owls", "They hunt at night."), "d3": ("", " No title.")}
    split = dataset.split("test")
    assert split.texts() == {"1": "water pumps", "2": "hunting owls"} and split.languages() == ["en"]
    assert split.qrels == {"1": {"d1": 2, "d2": 0}, "2": {"d2": 1}} and split.unjudged == ["3"]
    assert (dataset.name, dataset.splits()) == (f"{catalog}-one", ["test"])


def test_datasets_with_the_same_documents_share_a_corpus(catalog: str, tmp_path: Path) -> None:
    (corpus,) = open_dataset(f"irds/{catalog}/one").sources
    (tmp_path / "docs.tsv").unlink()
    assert open_dataset(f"irds/{catalog}/twice").sources == [corpus]
    assert [path.name for path in corpus.parent.iterdir() if path.suffix == ".jsonl"] == ["corpus.jsonl"]


def test_eval_and_tune_take_the_name(catalog: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for_one: Any = [
        "eval",
        f"irds/{catalog}/one",
        "--lens",
        "bm25",
        "--measure",
        "RR",
        "--to",
        str(tmp_path / "runs"),
        "--json",
    ]
    with pytest.raises(SystemExit) as left:
        app(for_one)
    assert not left.value.code
    answer = json.loads(capsys.readouterr().out)
    assert answer["queries"] == 2 and "1.0" in json.dumps(answer)


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("trilens-no-such-dataset", BadInput, "ir_datasets has no dataset 'trilens-no-such-dataset'"),
        ("{}", BadInput, "has no qrels; expected documents, queries and judgements"),
        ("{}/absent", ServiceFailed, "cannot be obtained"),
        ("{}/unreachable", ServiceFailed, r"unreachable cannot be obtained \(All download sources failed\); repair"),
    ],
)
def test_errors_are_one_line(catalog: str, name: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        open_dataset(f"irds/{name.format(catalog)}")


def test_contradicting_judgements_and_other_splits_are_refused(catalog: str) -> None:
    with pytest.raises(BadInput, match="judges '1' and 'd1' several times"):
        open_dataset(f"irds/{catalog}/twice").split("test")
    with pytest.raises(BadInput, match="has no split 'dev'"):
        open_dataset(f"irds/{catalog}/one").split("dev")

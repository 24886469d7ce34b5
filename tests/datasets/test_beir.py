from pathlib import Path

import pytest

from tests.development_data import DATA, needs_data
from trilens.datasets.beir import Beir
from trilens.errors import BadInput


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "set" / "qrels").mkdir(parents=True)
    root = tmp_path / "set"
    (root / "corpus.jsonl").write_text('{"_id": "d1", "text": "x"}\n')
    (root / "queries.jsonl").write_text(
        '{"_id": "q2", "text": "two"}\n{"_id": "q1", "text": "one"}\n{"_id": 3, "text": "three"}\n'
    )
    write_qrels(root, "query-id\tcorpus-id\tscore\nq1\td 1\t2\nq1\td2\t0\nq2\td1\t-1\n")
    return root


def write_qrels(root: Path, text: str, split: str = "test") -> None:
    (root / "qrels" / f"{split}.tsv").write_text(text)


def test_the_layout_is_read(folder: Path) -> None:
    write_qrels(folder, "3\td1\t1\n", "dev")
    beir = Beir(folder)
    assert (beir.name, beir.corpus_path, beir.splits()) == ("set", folder / "corpus.jsonl", ["dev", "test"])
    assert beir.qrels("test") == {"q1": {"d 1": 2, "d2": 0}, "q2": {"d1": -1}}
    assert list(beir.queries("test").items()) == [("q2", "two"), ("q1", "one")]
    assert beir.queries("dev") == {"3": "three"}


def test_missing_parts_are_named(folder: Path) -> None:
    beir = Beir(folder)
    with pytest.raises(BadInput, match="has no split 'train'; expected one of 'test'"):
        beir.qrels("train")
    with pytest.raises(BadInput, match=r"has no split '../queries'"):
        beir.qrels("../queries")
    write_qrels(folder, "q9\td1\t1\nq1\td1\t1\n")
    with pytest.raises(BadInput, match=r"judges 1 unknown queries, such as 'q9'"):
        beir.queries("test")
    (folder / "queries.jsonl").unlink()
    with pytest.raises(BadInput, match=r"has no queries.jsonl"):
        beir.queries("test")
    (folder / "corpus.jsonl").unlink()
    with pytest.raises(BadInput, match=r"has no corpus.jsonl"):
        Beir(folder)


def test_without_judgements_there_are_no_splits(folder: Path) -> None:
    (folder / "qrels" / "test.tsv").unlink()
    assert Beir(folder).splits() == []
    with pytest.raises(BadInput, match=r"expected a file qrels/<split>\.tsv"):
        Beir(folder).qrels("test")


@pytest.mark.parametrize("line", ['{"_id": "q1", "text"', '{"_id": "q1"}', '{"_id": "q1", "text": "again"}'])
def test_bad_queries_name_the_line(folder: Path, line: str) -> None:
    with (folder / "queries.jsonl").open("a") as file:
        file.write(line + "\n")
    with pytest.raises(BadInput, match=r"queries.jsonl:4: "):
        Beir(folder).queries("test")


@needs_data
@pytest.mark.parametrize(
    ("name", "queries", "judgements"), [("scifact", 300, 339), ("nfcorpus", 323, 12334), ("limit-small", 1000, 2000)]
)
def test_real_datasets_have_their_published_sizes(name: str, queries: int, judgements: int) -> None:
    beir = Beir(DATA / name)
    assert len(beir.queries("test")) == queries
    assert sum(map(len, beir.qrels("test").values())) == judgements

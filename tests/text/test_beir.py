from pathlib import Path

import pytest

from trilens.errors import BadInput
from trilens.text.beir import Beir

DATA = Path("/work/shared/data")


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


@pytest.mark.parametrize("text", ["q1 0 d1 1\nq2 0 d1 0\n", "q1\t0\td1\t1\nq2\tQ0\td1\t0\n\n", "q1\td1\t1\r\nq2\td1\t0\r\n"])
def test_the_header_is_optional_and_trec_lines_are_read(folder: Path, text: str) -> None:
    write_qrels(folder, text)
    assert Beir(folder).qrels("test") == {"q1": {"d1": 1}, "q2": {"d1": 0}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("query-id\tcorpus-id\tscore\n", "test.tsv holds no judgement"),
        ("", "test.tsv holds no judgement"),
        ("q1\td1\t1\nq1\td2\thigh\n", r"test.tsv:2: the line is 'q1\\td2\\thigh'; expected query-id"),
        ("q1\td1\t1\nq1\td2\n", "test.tsv:2: the line is"),
        ("q1\td1\t1\tx\ty\n", "test.tsv:1: the line is"),
        ("q1\td1\t1\nq1\td1\t2\n", "test.tsv:2: 'q1' and 'd1' were judged 1 before and 2 here"),
        ("q1\td1\t1\n\0", "test.tsv:2 is binary"),
        ("q1 0 d1 1.0\nq2 0 d1 1\n", "test.tsv:1: the line is"),
        ("q1 0 d1\nq2 0 d1 1\n", "test.tsv:1: the line is"),
        ("q1 0 1 1\nq1 0 8\n", "test.tsv:2: the line has 3 columns, those before it 4"),
        ("q1\td1\t4000000000\n", "test.tsv:1: the line is .* of at most 1,000,000"),
        ("q1\td1\t1_0\n", "test.tsv:1: the line is"),
        ("q1\t\t1\n", "test.tsv:1: the line is"),
    ],
)
def test_bad_judgements_name_the_line(folder: Path, text: str, message: str) -> None:
    write_qrels(folder, text)
    with pytest.raises(BadInput, match=message):
        Beir(folder).qrels("test")


def test_a_judgement_said_twice_is_one(folder: Path) -> None:
    write_qrels(folder, "q1\td1\t1\nq1\td1\t1\n")
    assert Beir(folder).qrels("test") == {"q1": {"d1": 1}}


def test_missing_parts_are_named(folder: Path) -> None:
    beir = Beir(folder)
    with pytest.raises(BadInput, match="has no split 'train'; choose one of those it has: 'test'"):
        beir.qrels("train")
    with pytest.raises(BadInput, match=r"has no split '../queries'"):
        beir.qrels("../queries")
    write_qrels(folder, "q9\td1\t1\nq1\td1\t1\n")
    with pytest.raises(BadInput, match=r"judges 1 queries that are not among the queries, such as 'q9'"):
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
    with pytest.raises(BadInput, match="those it has: none"):
        Beir(folder).qrels("test")


@pytest.mark.parametrize("line", ['{"_id": "q1", "text"', '{"_id": "q1"}', '{"_id": "q1", "text": "again"}'])
def test_bad_queries_name_the_line(folder: Path, line: str) -> None:
    with (folder / "queries.jsonl").open("a") as file:
        file.write(line + "\n")
    with pytest.raises(BadInput, match=r"queries.jsonl:4: "):
        Beir(folder).queries("test")


@pytest.mark.skipif(not DATA.exists(), reason="the development data is not here")
@pytest.mark.parametrize(
    ("name", "queries", "judgements"), [("scifact", 300, 339), ("nfcorpus", 323, 12334), ("limit-small", 1000, 2000)]
)
def test_real_datasets_have_their_published_sizes(name: str, queries: int, judgements: int) -> None:
    beir = Beir(DATA / name)
    assert len(beir.queries("test")) == queries
    assert sum(map(len, beir.qrels("test").values())) == judgements

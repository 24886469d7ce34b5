from pathlib import Path

import pytest

from trilens.datasets.qrels import read_qrels
from trilens.errors import BadInput


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "test.tsv"


@pytest.mark.parametrize("text", ["q1 0 d1 1\nq2 0 d1 0\n", "q1\t0\td1\t1\nq2\tQ0\td1\t0\n\n", "q1\td1\t1\r\nq2\td1\t0\r\n"])
def test_the_header_is_optional_and_trec_lines_are_read(path: Path, text: str) -> None:
    path.write_text(text)
    assert read_qrels(path) == {"q1": {"d1": 1}, "q2": {"d1": 0}}


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
        ("q1 0 1 1\nq1 0 8\n", "test.tsv:2: the line has 3 columns, the lines before it 4"),
        ("q1\td1\t4000000000\n", "test.tsv:1: the line is .* of at most 1,000,000"),
        ("q1\td1\t1_0\n", "test.tsv:1: the line is"),
        ("q1\t\t1\n", "test.tsv:1: the line is"),
    ],
)
def test_bad_judgements_name_the_line(path: Path, text: str, message: str) -> None:
    path.write_text(text)
    with pytest.raises(BadInput, match=message):
        read_qrels(path)


def test_a_repeated_judgement_counts_once(path: Path) -> None:
    path.write_text("q1\td1\t1\nq1\td1\t1\n")
    assert read_qrels(path) == {"q1": {"d1": 1}}


def test_tabs_separate_ids_with_spaces(path: Path) -> None:
    path.write_text("query-id\tcorpus-id\tscore\nq 1\td 1\t2\nq 1\td2\t-1\n")
    assert read_qrels(path) == {"q 1": {"d 1": 2, "d2": -1}}


def test_queries_and_documents_keep_the_order_of_the_file(path: Path) -> None:
    path.write_text("b 0 z 1\na 0 y 1\nb 0 x 1\n")
    assert [(query_id, list(grades)) for query_id, grades in read_qrels(path).items()] == [("b", ["z", "x"]), ("a", ["y"])]

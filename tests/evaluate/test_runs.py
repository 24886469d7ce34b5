"""TREC run files: writing, reading, and errors with their line."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from trilens.errors import BadInput
from trilens.evaluate.runs import read_trec, strictly_decreasing, write_trec

LINES = "q1 Q0 a 1 2.5 tag\nq1 Q0 b 2 -1e-3 tag\n\nq2\tQ0\ta\t1\t7\ttag\r\n"
RUN = {"q1": {"a": 2.5, "b": -0.001}, "q2": {"a": 7.0}}


def test_a_run_is_read_with_tabs_spaces_and_empty_lines(tmp_path: Path) -> None:
    (tmp_path / "a.trec").write_text(LINES)
    assert read_trec(tmp_path / "a.trec") == RUN


def test_a_compressed_run_is_read(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "a.trec.gz", "wt") as file:
        file.write(LINES)
    assert read_trec(tmp_path / "a.trec.gz") == RUN


def test_writing_and_reading_round_trip(tmp_path: Path) -> None:
    write_trec(RUN, tmp_path / "a.trec", "tag")
    assert read_trec(tmp_path / "a.trec") == RUN


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("q1 Q0 c 3 0.5", "a.trec:4: the line is 'q1 Q0 c 3 0.5', 5 columns; expected the six"),
        ("q1 Q0 a b 3 0.5 tag", "7 columns"),
        ("q1 Q0 c 3 high tag", "a.trec:4: the score is 'high'"),
        ("q1 Q0 c 3 nan tag", "the score is 'nan'; expected a number"),
        ("q1 Q0 c 3 inf tag", "the score is 'inf'"),
        ("q1 Q0 a 3 0.5 tag", "a.trec:4: query 'q1' has the document 'a' a second time"),
    ],
)
def test_errors_name_the_line(line: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.trec"
    path.write_text(LINES.splitlines(keepends=True)[0] + "q1 Q0 b 2 1 tag\n\n" + line + "\n")
    with pytest.raises(BadInput) as error:
        read_trec(path)
    assert message in str(error.value)


def test_files_that_are_not_runs(tmp_path: Path) -> None:
    (tmp_path / "empty.trec").write_text("\n \n")
    with pytest.raises(BadInput, match="is an empty run"):
        read_trec(tmp_path / "empty.trec")
    (tmp_path / "binary.trec").write_bytes(b"q1 Q0 a\0 1 1 t\n")
    with pytest.raises(BadInput, match="binary"):
        read_trec(tmp_path / "binary.trec")
    with pytest.raises(BadInput, match="does not exist"):
        read_trec(tmp_path / "nothing.trec")


def test_a_run_has_six_columns_best_first(tmp_path: Path) -> None:
    write_trec({"q": {"low": 0.5, "high": 2.0}}, tmp_path / "runs" / "r.trec", "tag")
    assert (tmp_path / "runs" / "r.trec").read_text() == "q Q0 high 1 2 tag\nq Q0 low 2 0.5 tag\n"


def test_an_id_with_a_space_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="expected ids without spaces"):
        write_trec({"q": {"a b": 1.0}}, tmp_path / "r.trec", "tag")
    assert not list(tmp_path.iterdir())


def test_runs_cannot_be_written_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match=r"runs cannot be written to .*file"):
        write_trec({"q": {"a": 1.0}}, tmp_path / "file" / "r.trec", "tag")


def test_ties_are_broken_in_float32_without_changing_the_order(tmp_path: Path) -> None:
    scores = [3.0, 1.0, 1.0, 1.0 - 1e-12, 0.1, 0.1, 0.0, 0.0, -2.0, -2.0]
    distinct = strictly_decreasing((f"d{rank}", score) for rank, score in enumerate(scores))
    as_read = np.array(list(distinct.values()), np.float32)
    assert (np.diff(as_read) < 0).all()
    np.testing.assert_allclose(as_read, scores, rtol=1e-6, atol=1e-6)
    write_trec({"q": distinct}, tmp_path / "r.trec", "tag")
    columns = [line.split() for line in (tmp_path / "r.trec").read_text().splitlines()]
    assert [column[2] for column in columns] == list(distinct)
    assert [np.float32(column[4]) for column in columns] == as_read.tolist()

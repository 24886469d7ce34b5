"""Triples of ids, as lines and as arrays with scores."""

from pathlib import Path

import pytest

from trilens.errors import BadInput

from .files import jsonl, read, shown


@pytest.mark.parametrize("suffix", ["tsv", "jsonl"])
def test_triples(tmp_path: Path, corpus: Path, suffix: str) -> None:
    queries = tmp_path / "queries.tsv"
    queries.write_text("1\tfirst query\n2\tsecond query\n")
    triples = tmp_path / f"triples.{suffix}"
    triples.write_text("1\ta\tb\n2\t3\n\n1\tb\ta\t3\n" if suffix == "tsv" else '[1, "a", "b"]\n["2", 3]\n[1, "b", "a", 3]\n')
    examples = read(format="triples", path=triples, queries=queries, corpus=corpus).examples
    assert [shown(examples, index) for index in range(3)] == [
        ("first query", ["A\nabout a"], ["about b"]),
        ("second query", ["about c"], []),
        ("first query", ["about b"], ["A\nabout a", "about c"]),
    ]
    assert [examples.query_id(index) for index in range(3)] == ["1", "2", "1"]
    assert examples.teacher(0) is None


def test_scored_tuples(tmp_path: Path, corpus: Path) -> None:
    queries = jsonl(tmp_path / "queries.jsonl", {"_id": 7, "text": "seven"})
    tuples = jsonl(tmp_path / "tuples.jsonl", [7, ["a", 3.5], ["b", -1], ["b", 9], ["3", 0]])
    mixture = read(format="triples", path=tuples, queries=queries, corpus=corpus)
    assert mixture.examples.negatives(0).tolist() == [1, 2]
    assert mixture.examples.teacher(0).tolist() == [3.5, -1, 0]  # type: ignore[union-attr]
    assert mixture.reports[0].repeated_negatives == 1


def test_invalid_triples(tmp_path: Path, corpus: Path) -> None:
    (tmp_path / "q.tsv").write_text("1\tq\n")
    for line, message in [
        ("1", "1: the line is 1 columns"),
        ("2\ta", "1: the query '2' is not in the query file"),
        ('["1", ["a", 1], "b"]', "1: some passages have scores"),
        ('["1", ["a"]]', "1: a passage is an array of 1"),
    ]:
        path = tmp_path / ("t.jsonl" if line.startswith("[") else "t.tsv")
        path.write_text(line + "\n")
        with pytest.raises(BadInput, match=message):
            read(format="triples", path=path, queries=tmp_path / "q.tsv", corpus=corpus)

"""Tables with a column for each part of an example."""

import json
import lzma
from pathlib import Path

import pytest

from trilens.errors import BadInput

from .files import CORPUS, jsonl, read, shown

ROWS = [
    {"anchor": "q1", "positive": "p1", "negative": "n1", "negative_2": "n2", "negative_10": "n10"},
    {"anchor": "q2", "positive": "p2", "negative": "n1", "negative_2": "n3", "negative_10": "n4"},
]


EXPECTED = [("q1", ["p1"], ["n1", "n2", "n10"]), ("q2", ["p2"], ["n1", "n3", "n4"])]


@pytest.mark.parametrize("kind", ["jsonl", "json", "csv", "tsv", "parquet"])
def test_columns(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"rows.{kind}"
    if kind == "jsonl":
        jsonl(path, *ROWS)
    elif kind == "json":
        path.write_text(json.dumps(ROWS))
    elif kind == "parquet":
        pyarrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pyarrow.Table.from_pylist(ROWS), path)
    else:
        separator = "\t" if kind == "tsv" else ","
        path.write_text(
            "".join(separator.join(cells) + "\n" for cells in [list(ROWS[0]), *(list(row.values()) for row in ROWS)])
        )
    examples = read(format="columns", path=path).examples
    assert [shown(examples, index) for index in range(2)] == EXPECTED


def test_lists_in_columns(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "rows.jsonl", {"query": "q", "pos": ["p1", "p2"], "neg": ["n1"], "marks": [3, 2, 1]})
    examples = read(format="columns", path=path, scores="marks").examples
    assert shown(examples, 0) == ("q", ["p1", "p2"], ["n1"])
    assert examples.teacher(0).tolist() == [3, 2, 1]  # type: ignore[union-attr]


def test_named_columns(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("name,what,not\nn,w,x\n")
    examples = read(format="columns", path=path, query="name", positive="what", negatives=["not"]).examples
    assert shown(examples, 0) == ("n", ["w"], ["x"])


def test_pairs_from_a_compressed_file(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl.xz"
    path.write_bytes(lzma.compress(CORPUS.splitlines()[0].encode()))
    examples = read(format="pairs", path=path).examples
    assert shown(examples, 0) == ("A", ["about a"], [])  # the passage does not hold its own query
    assert examples.passage_id(0) == "a"


def test_missing_columns(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("left,right\na,b\n")
    with pytest.raises(BadInput, match=r"no column for the query; expected 'anchor' or .*, found 'left', 'right'"):
        read(format="columns", path=tmp_path / "t.csv")

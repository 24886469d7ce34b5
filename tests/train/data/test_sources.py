"""Every format by a file written here, and the real data where it is."""

import json
import lzma
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from trilens.errors import BadInput
from trilens.train.data.examples import Examples
from trilens.train.data.mixture import Mixture
from trilens.train.data.sources import corpus_path, parse_source, read_examples

SHARED = Path(os.environ.get("TRILENS_SHARED", "/work/shared")) / "data"
needs_data = pytest.mark.skipif(not SHARED.exists(), reason=f"the development data is not at {SHARED}")

CORPUS = '{"_id": "a", "title": "A", "text": "about a"}\n{"_id": "b", "text": "about b"}\n{"_id": 3, "text": "about c"}\n'


def jsonl(path: Path, *records: Any) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def read(**options: Any) -> Mixture:
    return read_examples([parse_source(options)], seed=1)


def shown(examples: Examples, example: int) -> tuple[str, list[str], list[str]]:
    def texts(numbers: NDArray[np.int64]) -> list[str]:
        return [examples.passage(number) for number in numbers.tolist()]

    return examples.query(example), texts(examples.positives(example)), texts(examples.negatives(example))


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    path.write_text(CORPUS)
    return path


@pytest.mark.parametrize("suffix", ["tsv", "jsonl"])
def test_triples(tmp_path: Path, corpus: Path, suffix: str) -> None:
    queries = tmp_path / "queries.tsv"
    queries.write_text("1\tfirst query\n2\tsecond query\n")
    triples = tmp_path / f"triples.{suffix}"
    triples.write_text("1\ta\tb\n2\t3\n\n1\tb\ta\t3\n" if suffix == "tsv" else '[1, "a", "b"]\n["2", 3]\n[1, "b", "a", 3]\n')
    examples = read(format="triples", path=triples, queries=queries, corpus=corpus).examples
    assert [shown(examples, at) for at in range(3)] == [
        ("first query", ["A\nabout a"], ["about b"]),
        ("second query", ["about c"], []),
        ("first query", ["about b"], ["A\nabout a", "about c"]),
    ]
    assert [examples.query_id(at) for at in range(3)] == ["1", "2", "1"]
    assert examples.teacher(0) is None


def test_scored_tuples(tmp_path: Path, corpus: Path) -> None:
    queries = jsonl(tmp_path / "queries.jsonl", {"_id": 7, "text": "seven"})
    tuples = jsonl(tmp_path / "tuples.jsonl", [7, ["a", 3.5], ["b", -1], ["b", 9], ["3", 0]])
    mixture = read(format="triples", path=tuples, queries=queries, corpus=corpus)
    assert mixture.examples.negatives(0).tolist() == [1, 2]
    assert mixture.examples.teacher(0).tolist() == [3.5, -1, 0]  # type: ignore[union-attr]
    assert mixture.reports[0].repeated_negatives == 1


def test_a_headerless_corpus_of_three_columns(tmp_path: Path) -> None:
    (tmp_path / "c.tsv").write_text('id\ttext\ttitle\nx\tsay "hello\tGreeting\ny\tplain\n')
    (tmp_path / "q.tsv").write_text("1\tq\n")
    (tmp_path / "t.tsv").write_text("1\tx\ty\n")
    examples = read(format="triples", path=tmp_path / "t.tsv", queries=tmp_path / "q.tsv", corpus=tmp_path / "c.tsv").examples
    assert shown(examples, 0) == ("q", ['Greeting\nsay "hello'], ["plain"])
    assert examples.document(0).title == "Greeting"
    assert examples.document(0).text == 'say "hello'


DPR = {
    "question": "who",
    "answers": ["me"],
    "positive_ctxs": [{"title": "T", "text": "x", "psg_id": 5, "score": 99}],
    "hard_negative_ctxs": [{"title": "", "text": "y"}, {"title": None, "text": "x2", "passage_id": "5"}],
    "negative_ctxs": [{"text": "z"}],
}


@pytest.mark.parametrize(
    ("negatives", "expected"), [("hard", ["y", "x2"]), ("other", ["z"]), ("both", ["y", "x2", "z"]), ("none", [])]
)
def test_dpr_with_texts(tmp_path: Path, negatives: str, expected: list[str]) -> None:
    path = tmp_path / "dpr.json"
    path.write_text(json.dumps([DPR, {**DPR, "question": "again"}], indent=1))
    examples = read(format="dpr", path=path, negatives=negatives).examples
    assert shown(examples, 1) == ("again", ["T\nx"], expected)
    assert examples.passage_count == 1 + len(expected)  # texts are held once
    assert examples.answers(0) == ["me"]
    assert examples.teacher(0) is None  # the scores in DPR's files are not those of a teacher


def test_two_passages_of_one_id_get_two(tmp_path: Path) -> None:
    examples = read(format="dpr", path=jsonl(tmp_path / "dpr.jsonl", DPR)).examples
    assert [examples.passage_id(number) for number in range(3)] == ["5", "passage-1", "5#2"]
    assert examples.passages.number("5#2") == 2
    assert examples.passages.number("6") is None


def test_dpr_with_ids(tmp_path: Path, corpus: Path) -> None:
    record = {
        "id": "q9",
        "question": "who",
        "positive_ctxs": ["a"],
        "hard_negative_ctxs": [{"passage_id": "b", "score": 2.5}, 3],
        "teacher_scores": [1, 0.5, -2],
    }
    examples = read(format="dpr", path=jsonl(tmp_path / "dpr.jsonl", record), corpus=corpus).examples
    assert shown(examples, 0) == ("who", ["A\nabout a"], ["about b", "about c"])
    assert examples.teacher(0).tolist() == [1, 0.5, -2]  # type: ignore[union-attr]
    assert (examples.query_id(0), examples.passage_id(2), examples.passage_count) == ("q9", "3", 3)


def test_beir(tmp_path: Path, corpus: Path) -> None:
    jsonl(tmp_path / "queries.jsonl", {"_id": "q1", "text": "one"}, {"_id": "q2", "text": "two"})
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "train.tsv").write_text("query-id\tcorpus-id\tscore\nq1\ta\t2\nq1\t3\t0\nq1\tb\t1\nq2\ta\t0\n")
    with pytest.raises(BadInput, match=r"train\.tsv: nothing is relevant to the query 'q2'"):
        read(format="beir", path=tmp_path)
    mixture = read(format="beir", path=tmp_path, skip_bad=True)
    assert shown(mixture.examples, 0) == ("one", ["A\nabout a", "about b"], [])
    assert (mixture.reports[0].kept, mixture.reports[0].skipped) == (1, 1)
    assert "q2" in mixture.reports[0].messages[0]
    judged = read(format="beir", path=tmp_path, skip_bad=True, judged_negatives=True).examples
    assert shown(judged, 0)[2] == ["about c"]


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
    assert [shown(examples, at) for at in range(2)] == EXPECTED


def test_lists_in_columns(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "rows.jsonl", {"query": "q", "pos": ["p1", "p2"], "neg": ["n1"], "marks": [3, 2, 1]})
    examples = read(format="columns", path=path, scores="marks").examples
    assert shown(examples, 0) == ("q", ["p1", "p2"], ["n1"])
    assert examples.teacher(0).tolist() == [3, 2, 1]  # type: ignore[union-attr]


def test_chosen_columns(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("name,what,not\nn,w,x\n")
    examples = read(format="columns", path=path, query="name", positive="what", negatives=["not"]).examples
    assert shown(examples, 0) == ("n", ["w"], ["x"])


def test_pairs_of_a_compressed_corpus(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl.xz"
    path.write_bytes(lzma.compress(CORPUS.splitlines()[0].encode()))
    examples = read(format="pairs", path=path).examples
    assert shown(examples, 0) == ("A", ["about a"], [])  # the passage does not hold its own query
    assert examples.passage_id(0) == "a"


def test_a_corpus_that_two_sources_name_is_read_once(tmp_path: Path, corpus: Path) -> None:
    path = jsonl(tmp_path / "dpr.jsonl", {"question": "who", "positive_ctxs": ["a"]})
    source = parse_source({"format": "dpr", "path": path, "corpus": corpus})
    mixture = read_examples([source, source])
    assert (len(mixture.examples), mixture.examples.passage_count) == (2, 3)
    assert corpus_path(source) == corpus


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "dpr", "pth": "x"}, r"dpr\.path: Field required"),
        ({"format": "dpr", "path": "x", "lens": "y"}, r"dpr\.lens: Extra inputs are not permitted"),
        ({"format": "csv", "path": "x"}, "formats are triples, dpr, beir, columns, pairs"),
        ({"path": "x"}, "formats are triples"),
        ({"format": "dpr", "path": "x", "weight": 0}, r"dpr\.weight: Input should be greater than 0"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        parse_source(options)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"question": "q", "positive_ctxs": []}', "2: the query 'q' has no positive"),
        ('{"question": " ", "positive_ctxs": ["a"]}', "2: the query is empty"),
        (
            '{"question": "q", "positive_ctxs": ["nowhere"]}',
            "2: the passage 'nowhere' is named by its id, but the corpus",
        ),
        ('{"question": "q", "positive_ctxs": [{"text": " "}]}', "2: a passage is empty"),
        ('{"question": "q", "positive_ctxs": [{"body": "x"}]}', "2: there is no field 'text'; found 'body'"),
        ('{"question": "q", "positive_ctxs": "a"}', "2: the field 'positive_ctxs' is a string; expected an array"),
        ('{"positive_ctxs": ["a"]}', "2: there is no field 'question' or 'query'"),
        ('{"question": "q", "positive_ctxs": ["a"], "teacher_scores": [1, 2]}', "2: there are 2 teacher scores for 1 passages"),
        ('{"question": "q", "positive_ctxs": ["a"], "teacher_scores": [NaN]}', "2: .*finite"),
        ('{"question": "q\\ud800", "positive_ctxs": ["a"]}', "2: .*lone surrogate"),
        ('{"question": "q", "positive_ctxs": ["a"]', "2: broken JSON"),
        ("[]", "2: the record is an array; expected an object"),
    ],
)
def test_bad_lines_are_errors_or_counted(tmp_path: Path, corpus: Path, line: str, message: str) -> None:
    path = tmp_path / "dpr.jsonl"
    path.write_text('{"question": "good", "positive_ctxs": ["a"]}\n' + line + "\n")
    with pytest.raises(BadInput, match=f"dpr.jsonl:{message}"):
        read(format="dpr", path=path, corpus=corpus)
    report = read(format="dpr", path=path, corpus=corpus, skip_bad=True).reports[0]
    assert (report.kept, report.skipped) == (1, 1)


def test_nothing_that_can_be_used(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "dpr.jsonl", {"question": "q", "positive_ctxs": []})
    with pytest.raises(BadInput, match="no example that can be used; 1 were skipped, such as"):
        read(format="dpr", path=path, skip_bad=True)
    with pytest.raises(BadInput, match=r"missing.jsonl does not exist"):
        read(format="dpr", path=tmp_path / "missing.jsonl")
    with pytest.raises(BadInput, match="no suffix"):
        read(format="dpr", path=tmp_path)
    with pytest.raises(BadInput, match="no data sources"):
        read_examples([])


def test_bad_triples(tmp_path: Path, corpus: Path) -> None:
    (tmp_path / "q.tsv").write_text("1\tq\n")
    for line, message in [
        ("1", "1: the line is 1 columns"),
        ("2\ta", "1: the query '2' is not in the file of queries"),
        ('["1", ["a", 1], "b"]', "1: some passages have scores"),
        ('["1", ["a"]]', "1: a passage is an array of 1"),
    ]:
        path = tmp_path / ("t.jsonl" if line.startswith("[") else "t.tsv")
        path.write_text(line + "\n")
        with pytest.raises(BadInput, match=message):
            read(format="triples", path=path, queries=tmp_path / "q.tsv", corpus=corpus)


def test_a_table_without_the_columns(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("left,right\na,b\n")
    with pytest.raises(BadInput, match=r"no column for the query; expected 'anchor' or .*, found 'left', 'right'"):
        read(format="columns", path=tmp_path / "t.csv")


@needs_data
def test_a_real_folder() -> None:
    scifact = read(format="beir", path=SHARED / "scifact").examples
    assert (len(scifact), scifact.passage_count) == (809, 5_183)


@needs_data
@pytest.mark.long
def test_all_real_data() -> None:
    squad = read(format="dpr", path=SHARED / "squad-retrieval/train.dpr.jsonl", corpus=SHARED / "squad-retrieval/corpus.jsonl")
    assert (len(squad.examples), squad.examples.passage_count) == (87_599, 20_958)
    assert squad.examples.columns.negatives.lengths.mean() > 3.99
    assert squad.examples.answers(0) == ["2008"]
    assert squad.examples.passage_id(int(squad.examples.positives(0)[0])) == "train-p0"
    both = read_examples(
        [parse_source({"format": "dpr", "path": SHARED / name / "train.jsonl"}) for name in ("medquad", "ni-qa")]
    )
    assert len(both.examples) == 16_407 + 15_512
    pairs = read(format="pairs", path=SHARED / "debian-en.jsonl.xz", skip_bad=True)
    assert pairs.reports[0].kept + pairs.reports[0].skipped == 61_485

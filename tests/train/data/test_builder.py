"""Validation and counts of `ExamplesBuilder`."""

from pathlib import Path

import pytest

from trilens.errors import BadInput
from trilens.train.data.sources import corpus_path, parse_source, read_examples

from .files import jsonl, read


def test_shared_corpus_is_read_once(tmp_path: Path, corpus: Path) -> None:
    path = jsonl(tmp_path / "dpr.jsonl", {"question": "who", "positive_ctxs": ["a"]})
    source = parse_source({"format": "dpr", "path": path, "corpus": corpus})
    mixture = read_examples([source, source])
    assert (len(mixture.examples), mixture.examples.passage_count) == (2, 3)
    assert corpus_path(source) == corpus


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"question": "q", "positive_ctxs": []}', "2: the query 'q' has no positive"),
        ('{"question": " ", "positive_ctxs": ["a"]}', "2: the query is empty"),
        (
            '{"question": "q", "positive_ctxs": ["nowhere"]}',
            "2: the passage 'nowhere' is given by id, but the corpus",
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


def test_no_usable_examples(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "dpr.jsonl", {"question": "q", "positive_ctxs": []})
    with pytest.raises(BadInput, match="no usable example; 1 were skipped, the first because"):
        read(format="dpr", path=path, skip_bad=True)
    with pytest.raises(BadInput, match=r"missing.jsonl does not exist"):
        read(format="dpr", path=tmp_path / "missing.jsonl")
    with pytest.raises(BadInput, match="no suffix"):
        read(format="dpr", path=tmp_path)
    with pytest.raises(BadInput, match="no data sources"):
        read_examples([])

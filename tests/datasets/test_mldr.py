"""MLDR: judgements that come with the queries, a corpus for each language."""

import gzip
import json
from pathlib import Path

import pytest

from trilens.datasets.mldr import Mldr, find_mldr
from trilens.datasets.queries import Query
from trilens.errors import BadInput
from trilens.read.readers import read

LINE = {
    "query_id": "q-zh-1",
    "query": "什么?",
    "positive_passages": [{"docid": "doc-1", "text": "long"}],
    "negative_passages": [{"docid": "doc-2", "text": "also long"}, {"docid": "doc-1", "text": "long"}],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for language in ("zh", "th"):
        inner = tmp_path / "mldr" / f"mldr-v1.0-{language}"
        inner.mkdir(parents=True)
        corpus = "".join(json.dumps({"docid": f"doc-{number}", "text": language * 9}) + "\n" for number in (1, 2, 3))
        (inner / "corpus.jsonl.gz").write_bytes(gzip.compress(corpus.encode()))
        for split in ("dev", "test"):
            (inner / f"{split}.jsonl.gz").write_bytes(gzip.compress((json.dumps(LINE) + "\n").encode()))
    return tmp_path / "mldr"


def found(folder: Path, language: str | None = None) -> Mldr:
    dataset = find_mldr(folder, language)
    assert dataset is not None
    return dataset


def test_one_language_of_many(folder: Path) -> None:
    dataset = found(folder, "zh")
    assert (dataset.name, dataset.language, dataset.splits()) == ("mldr-v1.0-zh", "zh", ["dev", "test"])
    assert [document.doc_id for document in read(dataset.sources)] == ["doc-1", "doc-2", "doc-3"]
    split = dataset.split("test")
    assert split.queries == {"q-zh-1": Query("什么?", "zh")}
    assert split.qrels == {"q-zh-1": {"doc-1": 1, "doc-2": 0}}
    assert found(folder / "mldr-v1.0-th").language == "th"
    with pytest.raises(BadInput, match="has a corpus for each language; choose one with --lang: th, zh"):
        find_mldr(folder, None)
    with pytest.raises(BadInput, match="has no split 'train'; expected one of 'dev', 'test'"):
        dataset.split("train")


def test_other_folders_are_none(tmp_path: Path) -> None:
    assert find_mldr(tmp_path, None) is None
    (tmp_path / "corpus.jsonl").write_text('{"docid": "d", "text": "x"}\n')
    assert find_mldr(tmp_path, None) is None
    (tmp_path / "test.jsonl").write_text('{"question": "x", "answers": ["y"]}\n')
    assert find_mldr(tmp_path, None) is None


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (json.dumps(LINE), "dev.jsonl:2: the query id 'q-zh-1' was read before"),
        ('{"query_id": "x", "positive_passages": []}', "dev.jsonl:2: there is no field 'query'"),
        ('{"query_id": "x", "query": "y", "positive_passages": [{}]}', "dev.jsonl:2: docid is null"),
        ("[]", "dev.jsonl:2: the record is an array"),
    ],
)
def test_bad_lines_are_named(folder: Path, line: str, says: str) -> None:
    inner = folder / "mldr-v1.0-zh"
    (inner / "dev.jsonl").write_text(json.dumps(LINE) + "\n" + line + "\n")
    with pytest.raises(BadInput, match=says):
        found(inner).split("dev")

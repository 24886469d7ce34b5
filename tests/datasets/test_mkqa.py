"""MKQA: many languages, English answers."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from trilens.datasets.mkqa import Mkqa
from trilens.datasets.queries import Query
from trilens.errors import BadInput


def example(number: int, kind: str, text: str | None, aliases: list[str] | None = None) -> dict[str, Any]:
    answer = {"type": kind, "entity": "Q1", "text": text, **({"aliases": aliases} if aliases is not None else {})}
    german = [{"type": kind, "text": "nicht gefragt"}]
    queries = {"en": f"question {number}", "de": f"Frage {number}"}
    return {"query": "as asked", "answers": {"en": [answer], "de": german}, "queries": queries, "example_id": number}


EXAMPLES = [
    example(7, "entity", "Paris", ["City of Light", "Paris"]),
    example(8, "unanswerable", None),
    example(9, "binary", "yes"),
    example(10, "long_answer", None),
    example(11, "date", "1973-01-01", ["1973"]),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "corpus.jsonl").write_text('{"_id": "d", "text": "Paris"}\n')
    lines = "".join(json.dumps(one) + "\n" for one in EXAMPLES)
    (tmp_path / "mkqa.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    return tmp_path


def test_questions_in_all_languages_have_the_english_answers(folder: Path) -> None:
    split = Mkqa(folder).split("test")
    paris, date = ("Paris", "City of Light"), ("1973-01-01", "1973")
    assert split.queries == {
        "en:7": Query("question 7", "en", paris),
        "de:7": Query("Frage 7", "de", paris),
        "en:11": Query("question 11", "en", date),
        "de:11": Query("Frage 11", "de", date),
    }
    assert split.languages() == ["de", "en"]
    assert split.unjudged == [f"{language}:{number}" for number in (8, 9, 10) for language in ("en", "de")]
    assert Mkqa(folder).sources == [folder / "corpus.jsonl"]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (json.dumps(EXAMPLES[0]), "mkqa.jsonl:2: the query id 'en:7' was read before"),
        ('{"example_id": 1, "queries": {"en": "x"}}', "mkqa.jsonl:2: the record is null; expected an object"),
        ('{"example_id": 1, "answers": {}, "queries": {"en": 5}}', "mkqa.jsonl:2: the field 'en' is the number 5"),
        ('{"answers": {}, "queries": {}}', "mkqa.jsonl:2: example_id is null"),
        ("{", "mkqa.jsonl:2: broken JSON"),
    ],
)
def test_bad_examples_name_the_line(folder: Path, line: str, says: str) -> None:
    (folder / "mkqa.jsonl").write_text(json.dumps(EXAMPLES[0]) + "\n" + line + "\n")
    with pytest.raises(BadInput, match=says):
        Mkqa(folder).split("test")


def test_other_splits_and_a_missing_corpus_are_errors(folder: Path) -> None:
    with pytest.raises(BadInput, match="no split 'dev'; expected 'test'"):
        Mkqa(folder).split("dev")
    (folder / "corpus.jsonl").unlink()
    with pytest.raises(BadInput, match=r"has mkqa.jsonl but no corpus"):
        Mkqa(folder)

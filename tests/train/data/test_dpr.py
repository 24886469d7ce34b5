"""DPR's format, with texts and with ids."""

import json
from pathlib import Path

import pytest

from .files import jsonl, read, shown

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

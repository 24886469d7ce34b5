"""Unique ids of passages."""

from pathlib import Path

from .files import jsonl, read

DPR = {
    "question": "who",
    "answers": ["me"],
    "positive_ctxs": [{"title": "T", "text": "x", "psg_id": 5, "score": 99}],
    "hard_negative_ctxs": [{"title": "", "text": "y"}, {"title": None, "text": "x2", "passage_id": "5"}],
    "negative_ctxs": [{"text": "z"}],
}


def test_duplicate_ids_get_a_suffix(tmp_path: Path) -> None:
    examples = read(format="dpr", path=jsonl(tmp_path / "dpr.jsonl", DPR)).examples
    assert [examples.passage_id(number) for number in range(3)] == ["5", "passage-1", "5#2"]
    assert examples.passages.number("5#2") == 2
    assert examples.passages.number("6") is None

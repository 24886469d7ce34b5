"""Merging of two passes, and the split of the questions."""

import json
from pathlib import Path

import pytest

from benchmarks.everyday.build import COLLECTIONS
from benchmarks.everyday.merge import PASSES, merge
from benchmarks.everyday.questions import QUESTIONS, Question, judge, read_questions, same
from trilens.datasets.beir import Beir
from trilens.errors import BadInput


def test_answers_are_those_of_both_passes_and_questions_without_one_are_dropped() -> None:
    first = [Question("a", ["x", "y", "z"]), Question("b", ["x"]), Question("c", [])]
    second = [Question("c", []), Question("b", ["y"]), Question("a", ["z", "x", "w"])]
    merged, agreement = merge(first, second)
    assert merged == [Question("a", ["x", "z"])]
    assert agreement == {
        "written": 3,
        "questions": 3,
        "kept": 1,
        "agreed": 0.3333,
        "overlap": 0.1667,  # 2 of w, x, y, z; 0 of x, y; nothing
        "answers_first": 1.33,
        "answers_second": 1.33,
        "answers_kept": 2.0,
    }


def test_equal_questions_count_once() -> None:
    first = [Question("Show a file!", ["x"]), Question("show  a file", ["y"])]
    merged, agreement = merge(first, [Question("show a file.", ["x", "y"])])
    assert merged == [Question("Show a file!", ["x"])]
    assert (agreement["written"], agreement["questions"]) == (2, 1)


def test_signs_that_distinguish_questions_are_kept() -> None:
    assert same("What is C++?") == "what is c++"
    assert same("edit .bashrc, please.") == "edit bashrc please"
    assert same("C") != same("C#")


def test_a_second_pass_that_lacks_a_question_is_refused() -> None:
    with pytest.raises(BadInput, match="lacks 1 questions, such as 'b'"):
        merge([Question("a", ["x"]), Question("b", ["x"])], [Question("a", ["x"])])
    with pytest.raises(BadInput, match="has no questions"):
        merge([], [])


def test_a_line_without_answers_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text('{"text": "a", "answers": ["x"]}\n{"text": "b"}\n', encoding="utf-8")
    with pytest.raises(BadInput, match="line 2"):
        read_questions(path)


def test_the_halves_are_about_equal_and_depend_on_the_words_alone() -> None:
    questions = [Question(f"question {number}", []) for number in range(1000)]
    assert 440 <= sum(question.split == "dev" for question in questions) <= 560
    assert [Question(f"Question  {n}?", ["x"]).row() for n in range(9)] == [
        question.row() | {"text": f"Question  {n}?", "answers": ["x"]} for n, question in enumerate(questions[:9])
    ]


def test_questions_whose_answers_are_all_missing_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text('{"_id": "x", "text": "an x"}\n{"_id": "y", "text": "a y"}\n', encoding="utf-8")
    questions = [Question(f"question {number}", [answer, "missing"]) for number in range(10) for answer in ("x",)]
    gone = [Question("gone", ["missing"])]
    assert judge(tmp_path, [*questions, *gone]) == 1
    dataset = Beir(tmp_path)
    for split in ("dev", "test"):
        expected = {question.question_id: question.text for question in questions if question.split == split}
        assert expected
        assert dataset.queries(split) == expected
        assert dataset.qrels(split) == {question_id: {"x": 1} for question_id in expected}


@pytest.mark.parametrize("name", COLLECTIONS)
def test_the_questions_are_the_merged_passes(name: str) -> None:
    merged, agreement = merge(*(read_questions(PASSES / f"{name}.{which}.jsonl") for which in ("first", "second")))
    lines = (QUESTIONS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [question.row() for question in merged]
    assert len({question.question_id for question in merged}) == agreement["kept"]

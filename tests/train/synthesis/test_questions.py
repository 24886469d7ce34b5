"""Prompts, and questions in answers."""

import pytest

from trilens.train.synthesis.questions import prompt_for, questions_in


def test_prompts() -> None:
    one, three = prompt_for("Cats sleep.", 1), prompt_for("Cats sleep.", 3)
    assert "one specific and valuable question" in one and one.endswith("\n\nText:\nCats sleep.")
    assert "3 different questions" in three and "one question per line" in three
    assert prompt_for("{braces}", 1).endswith("{braces}")


@pytest.mark.parametrize(
    ("answer", "questions"),
    [
        ("How long do cats sleep?", ["How long do cats sleep?"]),
        ('Question: "How long do cats sleep?"', ["How long do cats sleep?"]),
        ("Here are the questions:\n\n1. Why do cats sleep?\n2) Where do cats sleep?\nI hope this helps", None),
        ("- sleep of cats\n- cats and sleep\n- sleep of cats", ["sleep of cats", "cats and sleep"]),
        ("猫はどこで眠りますか？", ["猫はどこで眠りますか？"]),
        ("Q1: Why do cats sleep?\nQ2: Where?", ["Why do cats sleep?"]),
        ("", []),
        ("Sure!", []),
        ("Question 1:", []),
        ("?? !! ..", []),
        ("why " * 100 + "?", []),
    ],
)
def test_questions_of_answers(answer: str, questions: list[str] | None) -> None:
    expected = ["Why do cats sleep?", "Where do cats sleep?"] if questions is None else questions
    assert questions_in(answer, 5) == expected
    assert questions_in(answer, 1) == expected[:1]

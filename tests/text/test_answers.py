"""DPR's rule for answers, case by case."""

import pytest

from trilens.errors import BadInput
from trilens.text.answers import AnswerMatcher, answer_tokens, has_answer

FOUND = [
    ("Beyoncé was born in Houston.", "beyoncé"),  # case
    ("Beyonce\u0301 sings", "Beyonc\u00e9"),  # one accented letter, or a letter and an accent
    ("the U.S. Army", "U.S."),  # dots are tokens, in both
    ("It cost $12.50 then", "$12"),  # the tokens of 12.50 are 12, . and 50
    ("a well-known man", "well-known"),
    ("a well - known man", "well-known"),  # spaces do not count
    ("rock\nand   roll", "rock and roll"),
    ("the singer’s house", "singer's"),  # curly apostrophe
    ("in 1973–74", "1973"),  # a dash parts numbers
    ("ΟΔΟΣ 5", "οδος"),  # the last sigma of a word is another letter in lower case, in both
    ("数据 和 检索", "数据"),
    ("zero\u200bwidth", "zero width"),  # format characters part tokens
]
MISSING = [
    ("He is unhappy", "happy"),  # part of a token
    ("in 19731", "1973"),
    ("Beyonce sings", "Beyoncé"),  # the accent counts
    ("roll and rock", "rock and roll"),  # the order counts
    ("rock, and roll", "rock and roll"),  # punctuation is a token
    ("数据和检索", "数据"),  # letters without a space between them are one token
    ("anything", "..."),
]


@pytest.mark.parametrize(("text", "answer"), FOUND)
def test_an_answer_is_found(text: str, answer: str) -> None:
    assert has_answer(text, ["not there", answer])


@pytest.mark.parametrize(("text", "answer"), MISSING)
def test_an_answer_is_not_found(text: str, answer: str) -> None:
    assert not has_answer(text, ["not there", answer])


def test_tokens_by_hand() -> None:
    assert answer_tokens("Don’t pay €3.5m\u00a0now!") == ["don", "'", "t", "pay", "€", "3", ".", "5m", "now", "!"]
    assert answer_tokens("É") == ["e\u0301"]
    assert answer_tokens(" \t\u2028") == []


@pytest.mark.parametrize("empty", [[], [""], ["  ", "\u200b"]])
@pytest.mark.parametrize("kind", ["string", "regex"])
def test_nothing_to_look_for_is_in_no_text(empty: list[str], kind: str) -> None:
    matcher = AnswerMatcher(empty[:2] if kind == "string" else [one for one in empty if not one.strip()], kind)  # type: ignore[arg-type]
    assert not matcher
    assert not matcher.matches("any text")


def test_regular_expressions() -> None:
    matcher = AnswerMatcher([r"(Jan(uary)?|Feb)\s+\d{4}", "^caf\u00e9$"], "regex")
    assert matcher.matches("It was january\n1999.")
    assert matcher.matches("CAFE\u0301")
    assert not matcher.matches("It was March 1999 in a café")
    assert has_answer("unhappy", ["hap"], "regex")


def test_bad_answers() -> None:
    with pytest.raises(BadInput, match=r"'\(a' is no regular expression .*repair it"):
        AnswerMatcher(["(a"], "regex")
    with pytest.raises(BadInput, match="expected a list"):
        AnswerMatcher("one")
    with pytest.raises(BadInput, match="expected string or regex"):
        AnswerMatcher(["a"], "fuzzy")  # type: ignore[arg-type]

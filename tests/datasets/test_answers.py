"""DPR's rule for answers, case by case."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trilens.datasets.answers import AnswerMatcher, answer_tokens, has_answer
from trilens.errors import BadInput

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
    ("worth €1,000 now", "1,000"),  # commas are tokens, in both
    ("C++ and C#", "c#"),
    ("AC/DC plays", "ac / dc"),
    ("a snake_case name", "case"),  # an underscore is punctuation
    ("crème brûlée", "CRÈME BRU\u0302LE\u0301E"),
    ("20²", "20²"),  # a superscript is a number
    ("हिन्दी भाषा", "हिन्दी"),  # marks belong to their letters
]
MISSING = [
    ("He is unhappy", "happy"),  # part of a token
    ("in 19731", "1973"),
    ("Beyonce sings", "Beyoncé"),  # the accent counts
    ("roll and rock", "rock and roll"),  # the order counts
    ("rock, and roll", "rock and roll"),  # punctuation is a token
    ("数据和检索", "数据"),  # letters without a space between them are one token
    ("anything", "..."),
    ("the US Army", "U.S."),  # without the dots
    ("worth 1000", "1,000"),
    ("20²", "20"),
    ("straße", "strasse"),  # lower case, not folded
    ("Zurich", "Zürich"),
    ("ﬁrst", "first"),  # a ligature is a letter of its own
]


@pytest.mark.parametrize(("text", "answer"), FOUND)
def test_an_answer_is_found(text: str, answer: str) -> None:
    assert has_answer(text, ["not there", answer])


@pytest.mark.parametrize(("text", "answer"), MISSING)
def test_an_answer_is_not_found(text: str, answer: str) -> None:
    assert not has_answer(text, ["not there", answer])


ALPHABET = "aA1é\u0301ß數²ﬁ .,-_'\u200b\n\u00a0€"


def as_dpr(text: str, answers: list[str]) -> bool:
    """DPR's own steps: NFD; runs of letters, numbers and marks, or one other visible character; lower case; sublists."""

    def words(said: str) -> list[str]:
        found: list[str] = []
        inside = False
        for character in unicodedata.normalize("NFD", said):
            kind = unicodedata.category(character)[0]
            if kind in "LNM" and inside:
                found[-1] += character
            elif kind not in "ZC":
                found.append(character)
            inside = kind in "LNM"
        return [word.lower() for word in found]

    tokens = words(text)
    wanted = [words(answer) for answer in answers if words(answer)]
    return any(tokens[at : at + len(one)] == one for one in wanted for at in range(len(tokens) - len(one) + 1))


@given(st.text(ALPHABET, max_size=12), st.lists(st.text(ALPHABET, max_size=3), max_size=3))
def test_any_text_is_judged_as_dpr_does(text: str, answers: list[str]) -> None:
    assert has_answer(text, answers) == as_dpr(text, answers)


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
    with pytest.raises(BadInput, match=r"'\(a' is not a valid regular expression .*repair it"):
        AnswerMatcher(["(a"], "regex")
    with pytest.raises(BadInput, match="expected a list"):
        AnswerMatcher("one")
    with pytest.raises(BadInput, match="expected string or regex"):
        AnswerMatcher(["a"], "fuzzy")  # type: ignore[arg-type]

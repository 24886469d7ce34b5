"""Whether a text holds an answer: DPR's rule, token by token, or a regular expression as in TREC's questions."""

import re
import unicodedata
from collections.abc import Sequence
from typing import Literal

from trilens.errors import BadInput

AnswerKind = Literal["string", "regex"]


class _Spaced(dict[int, str]):
    """What each character becomes so that `split` finds DPR's tokens; asked once per character, since it is a table.

    Letters, numbers and marks stay together; any other visible character is a token of its own; the rest parts tokens.
    """

    def __missing__(self, code: int) -> str:
        character = chr(code)
        kind = unicodedata.category(character)[0]
        spaced = character if kind in "LNM" else " " if kind in "ZC" else f" {character} "
        self[code] = spaced
        return spaced


_SPACED = _Spaced()


def answer_tokens(text: str) -> list[str]:
    """The tokens of DPR's SimpleTokenizer: accents as marks of their own (NFD), lower case, curly apostrophes straight."""
    return _normalised(text).translate(_SPACED).lower().split()


class AnswerMatcher:
    """Looks for any of some answers in texts. Answers without a token are in no text."""

    def __init__(self, answers: Sequence[str], kind: AnswerKind = "string") -> None:
        if isinstance(answers, str):
            raise BadInput(f"answers is the string {answers[:40]!r}; expected a list of strings: put it into a list")
        if kind not in ("string", "regex"):
            raise BadInput(f"the kind of answers is {kind!r}; expected string or regex")
        self._needles: list[str] = []
        self._patterns: list[re.Pattern[str]] = []
        if kind == "string":
            self._needles = [_bordered(tokens) for answer in answers if (tokens := answer_tokens(answer))]
        else:
            self._patterns = [_pattern(answer) for answer in answers if answer.strip()]

    def __bool__(self) -> bool:
        """Whether there is anything to look for."""
        return bool(self._needles or self._patterns)

    def matches(self, text: str) -> bool:
        """Whether the tokens of an answer stand in the text one after the other, or a pattern is found in it."""
        if self._patterns:
            normalised = _normalised(text)
            return any(pattern.search(normalised) for pattern in self._patterns)
        if not self._needles:
            return False
        haystack = _bordered(answer_tokens(text))
        return any(needle in haystack for needle in self._needles)


def has_answer(text: str, answers: Sequence[str], kind: AnswerKind = "string") -> bool:
    """Whether a text holds any of the answers. For many texts and the same answers an `AnswerMatcher` is faster."""
    return AnswerMatcher(answers, kind).matches(text)


def _normalised(text: str) -> str:
    return unicodedata.normalize("NFD", text.replace("’", "'").replace("\n", " "))


def _bordered(tokens: list[str]) -> str:
    """No token holds a space, so a run of tokens is found as a string with spaces around it."""
    return f" {' '.join(tokens)} "


def _pattern(answer: str) -> re.Pattern[str]:
    try:
        return re.compile(_normalised(answer), re.IGNORECASE | re.MULTILINE)
    except re.error as error:
        raise BadInput(f"the answer {answer[:80]!r} is no regular expression ({error}); expected one: repair it") from error

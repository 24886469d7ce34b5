"""Answer matching: whether a text contains an answer, by DPR's tokens or by a regular expression as in TREC QA."""

import re
import unicodedata
from collections.abc import Sequence
from typing import Literal

from trilens.errors import BadInput

AnswerKind = Literal["string", "regex"]


class _TokenSpacing(dict[int, str]):
    """Translation table that puts spaces between DPR's tokens, filled on first use of each character.

    Runs of letters, numbers and marks are tokens, and so is any other visible character; the rest separates tokens.
    """

    def __missing__(self, code: int) -> str:
        character = chr(code)
        category = unicodedata.category(character)[0]
        spaced = character if category in "LNM" else " " if category in "ZC" else f" {character} "
        self[code] = spaced
        return spaced


_TOKEN_SPACING = _TokenSpacing()


def answer_tokens(text: str) -> list[str]:
    """The tokens of DPR's SimpleTokenizer: NFD, lower case, straight apostrophes."""
    return _normalised(text).translate(_TOKEN_SPACING).lower().split()


class AnswerMatcher:
    """Matches a list of answers against texts. Answers without a token match nothing."""

    def __init__(self, answers: Sequence[str], kind: AnswerKind = "string") -> None:
        if isinstance(answers, str):
            raise BadInput(f"answers is the string {answers[:40]!r}; expected a list of strings: put it into a list")
        if kind not in ("string", "regex"):
            raise BadInput(f"the kind of answers is {kind!r}; expected string or regex")
        self._needles: list[str] = []
        self._patterns: list[re.Pattern[str]] = []
        if kind == "string":
            self._needles = [_padded(tokens) for answer in answers if (tokens := answer_tokens(answer))]
        else:
            self._patterns = [_pattern(answer) for answer in answers if answer.strip()]

    def __bool__(self) -> bool:
        """Whether any answer can match."""
        return bool(self._needles or self._patterns)

    def matches(self, text: str) -> bool:
        """Whether the text contains the tokens of an answer as a contiguous sequence, or a match of a pattern."""
        if self._patterns:
            normalised = _normalised(text)
            return any(pattern.search(normalised) for pattern in self._patterns)
        if not self._needles:
            return False
        haystack = _padded(answer_tokens(text))
        return any(needle in haystack for needle in self._needles)


def has_answer(text: str, answers: Sequence[str], kind: AnswerKind = "string") -> bool:
    """Whether a text contains any of the answers. For many texts, reuse an `AnswerMatcher`."""
    return AnswerMatcher(answers, kind).matches(text)


def _normalised(text: str) -> str:
    return unicodedata.normalize("NFD", text.replace("’", "'").replace("\n", " "))


def _padded(tokens: list[str]) -> str:
    """Join tokens with spaces around each, so that a substring test compares whole tokens."""
    return f" {' '.join(tokens)} "


def _pattern(answer: str) -> re.Pattern[str]:
    try:
        return re.compile(_normalised(answer), re.IGNORECASE | re.MULTILINE)
    except re.error as error:
        raise BadInput(
            f"the answer {answer[:80]!r} is not a valid regular expression ({error}); expected one: repair it"
        ) from error

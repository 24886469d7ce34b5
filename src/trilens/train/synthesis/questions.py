"""The prompt that asks a language model for questions, and the questions in its answer."""

import re

PROMPT = (
    "You are a curious assistant. Write {count} about the core content of the text below, as people type them into a search "
    'engine: specific, in the language of the text, and clear without it, so without words such as "this" or "the text". '
    "Answer with {form}, and nothing else.\n\nText:\n{text}"
)
ONE, SEVERAL = ("one specific and valuable question", "the question alone"), ("{} different questions", "one question per line")

NUMBER = re.compile(r"^\s*(?:[-*•]+|\(?\d{1,2}[.):]|q(?:uestion|uery)?\s*\d*\s*:)\s*", re.IGNORECASE)
QUOTES = " \t\"'`*“”„«»"
LONGEST = 300  # characters; a longer line is no question


def prompt_for(text: str, count: int) -> str:
    """The prompt for `count` questions that a text answers."""
    wanted, form = ONE if count == 1 else (SEVERAL[0].format(count), SEVERAL[1])
    return PROMPT.format(count=wanted, form=form, text=text)


def questions_in(answer: str, count: int) -> list[str]:
    """The first `count` distinct questions of an answer, without numbers and quotes.

    If lines have question marks, the others are remarks of the model. A line that ends with a colon announces something.
    """
    lines = [NUMBER.sub("", line.strip(QUOTES)).strip(QUOTES) for line in answer.splitlines()]
    usable = [line for line in lines if len(line) <= LONGEST and not line.endswith(":") and _has_words(line)]
    marked = [line for line in usable if line.endswith(("?", "？", "؟", ";"))]
    return list(dict.fromkeys(marked or usable))[:count]


def _has_words(line: str) -> bool:
    """Whether a line has more than a word; scripts such as Chinese do not separate words."""
    words = re.findall(r"[^\W\d_]+", line)
    return len(words) > 1 or any(len(word) > 3 and not word.isascii() for word in words)

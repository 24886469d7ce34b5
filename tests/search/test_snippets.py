"""Snippets against matches that are written out."""

import re

import pytest

from trilens.lenses.parts import Match
from trilens.search.hits import Hit, Snippet
from trilens.search.snippets import LONGEST, make_snippet
from trilens.text.document import Document

TEXT = "Rain fell all day. The old engine broke down near Leeds. Nobody had tools. A second engine, and a garage, saved them."

FILLER = "Nothing happened on that long day in the quiet house by the river. " * 5


def hit(text: str, title: str = "", start: int = 0) -> Hit:
    return Hit("d", 1, 1.0, Document("d", text, title), {}, start, len(text))


def places(text: str, **weights: float) -> list[Match]:
    """Each place of each word; the words are the parts of the query."""
    return [
        Match(part, *found.span(), weight)
        for part, (word, weight) in enumerate(weights.items())
        for found in re.finditer(word, text)
    ]


def marked(snippet: Snippet) -> list[str]:
    return [snippet.text[start:end] for start, end in snippet.matches]


def test_the_sentence_with_the_most_weight_comes_first() -> None:
    snippet = make_snippet(hit(TEXT), [places(TEXT, engine=2.0, broke=1.0, garage=0.5)])
    # Sentence 2 has engine and broke (3 of 3.5); 2 to 4 have all: engine counts once.
    assert snippet.text == "The old engine broke down near Leeds. Nobody had tools. A second engine, and a garage, saved them."
    assert marked(snippet) == ["engine", "broke", "engine", "garage"]
    assert TEXT[snippet.start : snippet.end] == snippet.text


def test_a_repeated_word_does_not_make_up_for_another() -> None:
    text = f"Cat, cat, cat and cat sat. {FILLER}A cat met an owl."
    assert make_snippet(hit(text), [places(text, cat=1.0, owl=1.0)]).text == "A cat met an owl."


def test_every_lens_has_the_same_say() -> None:
    text = f"An owl sat and slept. {FILLER}A cat met a dog."
    large = places(text, owl=900.0)
    small = places(text, cat=0.1, dog=0.1)
    assert make_snippet(hit(text), [large, small]).text.startswith("An owl")  # equal, so the first
    assert make_snippet(hit(text), [large, small, places(text, dog=0.1)]).text == "A cat met a dog."


def test_words_are_marked_whole_and_titles_too() -> None:
    document = hit("A timedelta is a difference.", title="The delta of times")
    encoded = "The delta of times\nA timedelta is a difference."
    snippet = make_snippet(document, [places(encoded, delta=1.0)])
    assert marked(snippet) == ["timedelta"]
    assert [document.document.title[start:end] for start, end in snippet.title_matches] == ["delta"]


def test_words_with_little_weight_are_not_marked() -> None:
    assert marked(make_snippet(hit(TEXT), [places(TEXT, engine=1.0, old=0.19, broke=0.2)])) == ["engine", "broke", "engine"]


def test_without_matches_a_passage_begins_with_its_beginning() -> None:
    snippet = make_snippet(hit(f"Left out. {TEXT}", start=10), [[], []])
    assert (snippet.text, snippet.start, snippet.matches) == (TEXT[: snippet.end - 10], 10, ())
    assert make_snippet(hit("  \n "), [[]]) == Snippet("", 0, 0)


@pytest.mark.parametrize("text", ["word " * 500, "no end " * 30 + ". " + "x" * 2000, "a. b! c? " * 200])
def test_snippets_are_short(text: str) -> None:
    for place in (0, len(text) // 2, len(text) - 2):
        snippet = make_snippet(hit(text), [[Match(0, place, place + 1, 1.0)]])
        longest = max(map(len, text.split()))
        assert 0 < len(snippet.text) <= max(LONGEST, longest)
        assert snippet.start <= place < snippet.end or text[place].isspace()

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trilens.errors import BadInput
from trilens.text import passages
from trilens.text.passages import WORD, TokenLimit, count_words, covers, split_passages

MARKED = "word|Dr.|e.g.|3.14|U.S. |etc. A|.|...|!|? |. |\n\n|\n| |  |\t|\u3000|“|”|é|😀|a_b|\u0301|\u200d"
PIECES = st.sampled_from([*MARKED.split("|"), "漢字", "。", "」", "ー", "ภาษา ", "हिन्दी", "। ", "؟ "])
TEXTS = st.lists(PIECES | st.text(max_size=3), max_size=80).map("".join)


def sentences(text: str) -> list[str]:
    """The sentences of a text, without surrounding white space."""
    ends = [0, *passages._sentence_ends(text)]
    return [text[start:end].strip() for start, end in pairwise(ends) if text[start:end].strip()]


@given(TEXTS, st.integers(1, 12), st.integers(0, 11))
def test_passages_cover_the_text_within_their_limits(text: str, max_words: int, overlap_words: int) -> None:
    overlap_words = min(overlap_words, max_words - 1)
    spans = split_passages(text, max_words, overlap_words)
    assert spans == split_passages(text, max_words, overlap_words)
    assert all(0 <= start <= end <= len(text) for start, end in spans)
    assert all(count_words(text[start:end]) <= max_words for start, end in spans)
    covered = set().union(*(range(start, end) for start, end in spans))
    assert all(character.isspace() for position, character in enumerate(text) if position not in covered)
    for (start, end), (next_start, next_end) in pairwise(spans):
        assert start < next_start and end < next_end
        assert count_words(text[next_start:end]) <= overlap_words


def pieces_of_three(texts: list[str]) -> list[int]:
    """Tokens of up to three characters: pieces of words, single other characters."""
    return [sum(-(-len(token) // 3) for token in re.findall(r"\w+|[^\w\s]", text)) for text in texts]


@given(TEXTS, st.integers(1, 12), st.integers(0, 11), st.integers(2, 12), st.integers(0, 11))
def test_passages_are_within_two_limits(text: str, words: int, overlap_words: int, tokens: int, overlap: int) -> None:
    limit = TokenLimit(tokens, min(overlap, tokens - 1), pieces_of_three)
    spans = split_passages(text, words, min(overlap_words, words - 1), limit)
    assert covers(text, spans)
    assert all(count_words(text[start:end]) <= words for start, end in spans)
    assert max(pieces_of_three([text[start:end] for start, end in spans])) <= tokens
    for (start, end), (next_start, next_end) in pairwise(spans):
        assert start < next_start and end < next_end
        assert pieces_of_three([text[next_start:end]])[0] <= limit.overlap


def test_passages_by_tokens_by_hand() -> None:
    text = "One two. Characterisation is long. Four."  # 1 + 1 + 1, 6 + 1 + 2 + 1 and 2 + 1 tokens

    def within(tokens: int, overlap: int) -> list[str]:
        return [text[a:b] for a, b in split_passages(text, 50, 10, TokenLimit(tokens, overlap, pieces_of_three))]

    assert within(16, 5) == [text]
    assert within(15, 5) == ["One two. Characterisation is long.", "Four."]
    assert within(12, 3) == ["One two.", "Characterisation is long.", "Four."]
    assert within(9, 5) == ["One two. Characterisation", "is long. Four."]
    assert within(5, 2) == ["One two. Chara", "Characteris", "cterisation is", "is long.", "Four."]


@pytest.mark.parametrize("text", ["abc" * 5000, "😀" * 5000, "字" * 5000, "|--" * 5000])
def test_a_text_without_spaces_is_split_by_tokens(text: str) -> None:
    spans = split_passages(text, 10_000, 10, TokenLimit(100, 20, pieces_of_three))
    assert covers(text, spans)
    assert max(pieces_of_three([text[start:end] for start, end in spans])) <= 100
    assert len(spans) <= 15_000 / 70  # passages are at least about half full


@pytest.mark.parametrize(
    ("spans", "whole"),
    [
        ([(0, 3), (4, 9)], True),
        ([(0, 4), (4, 9)], True),
        ([(0, 5), (2, 9)], True),
        ([], False),
        ([(0, 3)], False),
        ([(0, 3), (5, 9)], False),
        ([(4, 9), (0, 3)], False),
        ([(0, 9), (4, 8)], False),
        ([(0, 3), (4, 10)], False),
    ],
)
def test_passages_that_cover_a_text(spans: list[tuple[int, int]], whole: bool) -> None:
    assert covers("one words", spans) is whole


@given(TEXTS)
def test_cuts_never_fall_into_a_word(text: str) -> None:
    words = [(word.start(), word.end()) for word in WORD.finditer(text)]
    for span in split_passages(text, 3, 1):
        assert not any(start < cut < end for cut in span for start, end in words)


def test_passages_by_hand() -> None:
    text = "One two three. Four five. Six seven eight nine. Ten."
    assert [text[a:b] for a, b in split_passages(text, 5, 2)] == [
        "One two three. Four five.",
        "Six seven eight nine. Ten.",
    ]
    assert [text[a:b] for a, b in split_passages(text, 6, 2)] == [
        "One two three. Four five.",
        "Four five. Six seven eight nine.",
        "Ten.",
    ]


def test_a_long_sentence_is_cut_between_words_and_still_overlaps() -> None:
    text = "a b c d e f g h"
    assert [text[start:end] for start, end in split_passages(text, 4, 2)] == ["a b c d", "c d e f", "e f g h"]
    assert [text[start:end] for start, end in split_passages(text, 4, 0)] == ["a b c d", "e f g h"]


@pytest.mark.parametrize("text", ["", " ", "one", "...", "one two three. Four.", "漢字"])
def test_a_short_text_is_one_passage(text: str) -> None:
    assert split_passages(text, 4, 1) == [(0, len(text))]


def test_zero_never_splits() -> None:
    text = "word. " * 1000
    assert split_passages(text, 0) == split_passages(text, 0, 0) == [(0, len(text))]


@pytest.mark.parametrize(("max_words", "overlap_words"), [(-1, 0), (10, -1), (10, 10), (10, 11)])
def test_limits_that_make_no_sense_are_errors(max_words: int, overlap_words: int) -> None:
    with pytest.raises(BadInput, match="expected"):
        split_passages("text", max_words, overlap_words)


@pytest.mark.parametrize(
    "text",
    [
        "Dr. Smith met J. Doe, i.e. the man of Fig. 3, at 3.14 p.m. sharp",
        "See vol. 2, pp. 3 and no. 5 of Miller et al. for e.g. this",
        "Apples, pears etc. are fruit vs. meat of Foo Inc. and others",
        "The U.S. Army",
        "Read https://x.org/a.b?c=d now",
        "one\ntwo",
        "\n12. An item of a list",
    ],
)
def test_these_are_one_sentence(text: str) -> None:
    assert len(sentences(text)) == 1


@pytest.mark.parametrize(
    "expected",
    [
        ["He said no.", "Then he left!", "Really?", "Yes…", "Good."],
        ['"Is it?"', "(It is.)", "“Fine.”", "End."],
        ["It was 1999.", "Then 2000 came etc.", "So it went."],
        ["यह वाक्य है।", "दूसरा वाक्य॥", "हाँ"],
        ["هل هذا صحيح؟", "نعم۔", "حسنا."],
        ["ภาษาไทย", "เป็นภาษา"],
    ],
)
def test_sentences_end_here(expected: list[str]) -> None:
    assert sentences(" ".join(expected)) == expected


def test_sentences_of_scripts_without_spaces() -> None:
    assert sentences("今天很好。明天呢？！「好！」他说。π是3．14。") == [
        "今天很好。",
        "明天呢？！",
        "「好！」",
        "他说。",
        "π是3．14。",
    ]


def test_a_blank_line_ends_a_sentence() -> None:
    assert sentences("a heading\n \nthe text\r\n\r\nmore") == ["a heading", "the text", "more"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("don't stop", 3),
        ("हिन्दी भाषा", 2),
        ("שָׁלוֹם", 1),
        ("漢字abc", 3),
        ("ที่ดี", 2),
        ("カー", 1),
        ("e\u0301a snake_case", 2),
        ("—!", 0),
    ],
)
def test_words(text: str, words: int) -> None:
    assert count_words(text) == words


def test_the_fast_letters_are_letters() -> None:
    """They are listed only for speed, so each must be a word character that is in no other set."""
    fast, slow = re.compile(f"[{passages._FAST}]"), re.compile(passages._LETTER)
    assert [chr(code) for code in range(0x3000) if fast.match(chr(code)) and not slow.match(chr(code))] == []


@pytest.mark.parametrize(
    ("piece", "step", "length"),
    [
        ("The cat sat on the mat. ", 480, 599),
        ("word ", 600, 749),
        ("今天很好。", 150, 185),
        ("a.", 240, 300),
        ("a\n\n", 360, 448),
        ("ภาษา ", 150, 184),
    ],
)
def test_a_long_repetitive_text_has_passages_at_regular_steps(piece: str, step: int, length: int) -> None:
    text = piece * (1_000_000 // len(piece))
    end = len(text.rstrip())
    spans = split_passages(text)
    assert spans == [(step * number, min(step * number + length, end)) for number in range(len(spans))]
    assert spans[-1][1] == end


@pytest.mark.parametrize("piece", [".", '"', "\n  "])
def test_a_long_text_without_words_is_one_passage(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    assert split_passages(text) == [(0, len(text))]

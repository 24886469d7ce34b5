import re
from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from trilens.kernels.array_types import UInt8s
from trilens.kernels.words import BIGRAM, JOINER, LETTER, count_terms, number_words

patient = settings(deadline=None)
ALPHABET = {"L": "abß𝒳", "B": "東京ไ𠀀", "J": "'", "S": " -\n"}
KIND = {character: kind for kind, characters in ALPHABET.items() for character in characters}
TEXTS = st.lists(st.text("".join(ALPHABET.values()), max_size=30), max_size=5)


def character_classes() -> UInt8s:
    classes = np.zeros(0x110000, np.uint8)
    for kind, value in (("L", LETTER), ("B", BIGRAM), ("J", JOINER)):
        classes[[ord(character) for character in ALPHABET[kind]]] = value
    return classes


CLASSES = character_classes()


def split(texts: list[str]) -> list[list[str]]:
    """The words of each text, by the kernel."""
    joined = "".join(f"{text}\n" for text in texts)
    points = np.frombuffer(joined.encode("utf-32-le"), np.uint32)
    ends = np.cumsum([len(text) + 1 for text in texts], dtype=np.int64)
    words, word_ends, starts, lengths = number_words(points, ends, CLASSES)
    spans = zip(starts.tolist(), lengths.tolist(), strict=True)
    known = [joined[start : start + length] for start, length in spans]
    assert len(set(known)) == len(known)  # each distinct word has one number
    first = [0, *word_ends.tolist()]
    return [[known[word] for word in words[first[i] : first[i + 1]]] for i in range(len(texts))]


def split_slowly(text: str) -> list[str]:
    """Slow reference: a regular expression over the classes of the characters."""
    words = []
    for run in re.finditer(r"L(?:L|J(?=L))*|B+", "".join(KIND[character] for character in text)):
        word = text[run.start() : run.end()]
        in_pairs = run.group().startswith("B") and len(word) > 1
        words += [word[i : i + 2] for i in range(len(word) - 1)] if in_pairs else [word]
    return words


@patient
@given(TEXTS)
def test_words_are_those_of_a_regular_expression(texts: list[str]) -> None:
    assert split(texts) == [split_slowly(text) for text in texts]


def test_words_by_hand() -> None:
    assert split(["ab'a 'b' a''b", "a東京ไb京", "", "'"]) == [
        ["ab'a", "b", "a", "b"],
        ["a", "東京", "京ไ", "b", "京"],
        [],
        [],
    ]


def test_many_different_words_keep_their_numbers_while_the_table_grows() -> None:
    words = [f"{number:b}".replace("0", "a").replace("1", "b") for number in range(1, 20_000)]
    assert split([" ".join(words), " ".join(reversed(words))]) == [words, words[::-1]]


@patient
@given(
    st.lists(st.lists(st.integers(0, 9), max_size=20), max_size=6),
    st.lists(st.integers(-1, 4), min_size=10, max_size=10),
)
def test_terms_are_counted_as_a_counter_counts_them(texts: list[list[int]], term_of: list[int]) -> None:
    words = np.array([word for text in texts for word in text], np.int64)
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    indptr, terms, counts, lengths = count_terms(words, ends, np.array(term_of, np.int64), 5)
    for i, text in enumerate(texts):
        expected = Counter(term_of[word] for word in text if term_of[word] >= 0)
        span = slice(indptr[i], indptr[i + 1])
        pairs = list(zip(terms[span].tolist(), counts[span].tolist(), strict=True))
        assert pairs == sorted(expected.items())
        assert lengths[i] == expected.total()

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trilens.represent.vocabulary import Vocabulary

patient = settings(deadline=None)
WORD = st.text("abé東𝒳", max_size=3) | st.text(max_size=4)  # few letters, so that vocabularies share words; and any
WORDS = st.sets(WORD, max_size=20)


def vocabulary(words: set[str]) -> Vocabulary:
    return Vocabulary.of(sorted(words))


def words_of(words: Vocabulary) -> list[str]:
    return [words.word(index) for index in range(len(words))]


@patient
@given(WORDS)
def test_words_are_returned_in_order(words: set[str]) -> None:
    assert words_of(vocabulary(words)) == sorted(words)


@patient
@given(WORDS, WORDS)
def test_exactly_the_known_words_are_found(words: set[str], wanted: set[str]) -> None:
    known = sorted(words)
    expected = [known.index(word) if word in words else -1 for word in sorted(wanted)]
    assert vocabulary(words).find(vocabulary(wanted)).tolist() == expected


@patient
@given(st.lists(WORDS, min_size=1, max_size=4))
def test_a_merge_is_the_union(parts: list[set[str]]) -> None:
    union, indices = Vocabulary.merge([vocabulary(part) for part in parts])
    assert words_of(union) == sorted(set().union(*parts))
    for part, part_indices in zip(parts, indices, strict=True):
        assert [union.word(index) for index in part_indices] == sorted(part)


@patient
@given(WORDS, st.data())
def test_exactly_the_marked_words_are_kept(words: set[str], data: st.DataObject) -> None:
    mask = data.draw(st.lists(st.booleans(), min_size=len(words), max_size=len(words)))
    kept = vocabulary(words).keep(np.array(mask, np.bool_))
    assert words_of(kept) == [word for word, keep in zip(sorted(words), mask, strict=True) if keep]


@pytest.mark.parametrize("words", [set(), {""}, {"a", "é", "東京", "𝒳"}])
def test_a_saved_vocabulary_is_opened(tmp_path: Path, words: set[str]) -> None:
    vocabulary(words).save(tmp_path)
    assert words_of(Vocabulary.open(tmp_path)) == sorted(words)

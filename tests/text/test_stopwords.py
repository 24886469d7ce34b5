import pytest
import Stemmer

from trilens.text.stopwords import STOP_WORDS


def test_every_language_has_a_stemmer() -> None:
    assert STOP_WORDS.keys() <= set(Stemmer.algorithms())


def test_english_has_the_stop_words_of_lucene() -> None:
    lucene = "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this"
    assert STOP_WORDS["english"] == {*lucene.split(), "to", "was", "will", "with"}


@pytest.mark.parametrize("language", sorted(STOP_WORDS))
def test_stop_words_are_single_lower_case_words(language: str) -> None:
    assert all(word.isalpha() and word == word.lower() for word in STOP_WORDS[language])

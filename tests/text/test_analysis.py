from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from trilens.errors import BadInput
from trilens.text.analysis import AnalysisConfig, Analyzer
from trilens.text.stopwords import STOP_WORDS

ENGLISH = Analyzer()
PLAIN = Analyzer(AnalysisConfig(language="none"))


def terms(text: str, language: str = "english") -> list[str]:
    return Analyzer(AnalysisConfig(language=language)).terms(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The quick brown foxes were JUMPING over lazy dogs.", "quick brown fox were jump over lazi dog"),
        ("running runs runner", "run run runner"),
        ("dog's dogs dogs' dog’s DOG'S", "dog dog dog dog dog"),
        ("don't 'quoted' rock'n'roll o'clock", "don't quot rock'n'rol o'clock"),
        ("x''y 'tis", "x y tis"),
        ("2024 3.14 1,000 0x1F 7th", "2024 3 14 1 000 0x1f 7th"),
        ("snake_case __init__", "snake case init"),
        ("state-of-the-art e-mail", "state art e mail"),
        ("C++ a/b x=y", "c b x y"),
        ("café naïve Ångström", "café naïv ångström"),
        ("ＡＢＣ１２３ ｄｏｇ＇ｓ", "abc123 dog"),
        ("ﬁnd the ﬂower", "find flower"),
        ("x² Ⅳ", "x2 iv"),
        ("Привет, мир! Ελλάδα שלום", "привет мир ελλάδα שלום"),
        ("हिन्दी भाषा", "हिन्दी भाषा"),
        ("😀 party 🎉🎉", "parti"),
        ("", ""),
        (" \t\r\n.,;!?—… ", ""),
        ("the and of", ""),
    ],
)
def test_english_by_hand(text: str, expected: str) -> None:
    assert ENGLISH.terms(text) == expected.split()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("東京大学", "東京 京大 大学"),
        ("東", "東"),
        ("東 京", "東 京"),
        ("東京。大学", "東京 大学"),
        ("ひらがなカタカナー", "ひら らが がな なカ カタ タカ カナ ナー"),
        ("ｶﾀｶﾅ", "カタ タカ カナ"),
        ("한국어를 배우다", "한국 국어 어를 배우 우다"),
        ("ไทย", "ไท ทย"),
        ("ລາວ ខ្មែរ မြန်မာ", "ລາ າວ ខ្ ្ម មែ ែរ မြ ြန န် ်မ မာ"),
        ("𠀀𠀁𠀂", "𠀀𠀁 𠀁𠀂"),
        ("AI研究2024年", "ai 研究 2024 年"),
        ("iPhoneを買う", "iphon を買 買う"),
        ("東's京", "東 s 京"),
        ("日本😀語", "日本 語"),
    ],
)
def test_scripts_without_spaces_become_pairs(text: str, expected: str) -> None:
    assert ENGLISH.terms(text) == expected.split()


@pytest.mark.parametrize("language", ["none", "german", "russian"])
def test_pairs_do_not_depend_on_the_language(language: str) -> None:
    assert terms("東京大学 ไทย", language) == ["東京", "京大", "大学", "ไท", "ทย"]


def test_composed_and_decomposed_accents_are_one_word() -> None:
    assert ENGLISH.terms("re\u0301sume\u0301 が") == ENGLISH.terms("résumé か\u3099")


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("german", "Die Häuser und der Hund", "haus hund"),
        ("french", "L’homme et les chevaux qu'il aimait", "homm cheval aim"),
        ("spanish", "los gatos y las canciones", "gat cancion"),
        ("italian", "l'amico e i gatti", "amic gatt"),
        ("portuguese", "as canções e os livros", "cançõ livr"),
        ("dutch", "de katten en het huis", "kat huis"),
        ("swedish", "flickorna och pojkarna", "flick pojk"),
        ("norwegian", "jentene og guttene", "jent gutt"),
        ("danish", "pigerne og drengene", "pig dreng"),
        ("finnish", "talossa ja autossa", "talo auto"),
        ("russian", "книги и столы", "книг стол"),
        ("turkish", "kitaplar ve evler", "kitap ve ev"),
        ("hungarian", "a házak", "a ház"),
        ("none", "The dogs' dog's Houses", "the dogs dog s houses"),
    ],
)
def test_each_language_has_its_stop_words_and_stems(language: str, text: str, expected: str) -> None:
    assert terms(text, language) == expected.split()


@pytest.mark.parametrize("language", sorted(STOP_WORDS))
def test_no_stop_word_is_indexed(language: str) -> None:
    assert terms(" ".join(STOP_WORDS[language]), language) == []


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (AnalysisConfig(stop_words=False), "the dog are run"),
        (AnalysisConfig(stem=False), "dogs running"),
        (AnalysisConfig(stop_words=False, stem=False), "the dogs are running"),
    ],
)
def test_stop_words_and_stems_can_be_left_out(config: AnalysisConfig, expected: str) -> None:
    assert Analyzer(config).terms("The dogs are running") == expected.split()


def test_an_unknown_language_is_refused_with_those_known() -> None:
    with pytest.raises(ValidationError, match=r"language is 'klingon'; expected one of none, arabic, .*english, "):
        AnalysisConfig(language="klingon")


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        AnalysisConfig.model_validate({"stemming": True})


def test_one_string_is_not_a_batch() -> None:
    with pytest.raises(BadInput, match="put it into a list"):
        ENGLISH.words("a text")


def test_a_lone_surrogate_is_refused_with_its_place() -> None:
    with pytest.raises(BadInput, match=r"text 'ab.*' holds the lone surrogate U\+D800 at character 2"):
        ENGLISH.words(["fine", "ab\ud800"])


@settings(deadline=None)
@given(st.lists(st.text("aB'’é東京 .-\n") | st.text(), max_size=6))
def test_a_batch_is_its_texts_one_by_one(texts: list[str]) -> None:
    words, ends, batch_terms = PLAIN.words(texts)
    starts = [0, *ends.tolist()]
    found = [[batch_terms[word] for word in words[starts[i] : starts[i + 1]]] for i in range(len(texts))]
    assert found == [PLAIN.terms(text) for text in texts]


@settings(deadline=None)
@given(st.text(), st.text())
def test_a_space_parts_texts_as_well_as_a_border_does(first: str, second: str) -> None:
    assert PLAIN.terms(f"{first} {second}") == PLAIN.terms(first) + PLAIN.terms(second)


def test_threads_may_share_an_analyzer() -> None:
    texts = [" ".join(f"running{i * j} jumps{j} happily{i}ness" for j in range(40)) for i in range(200)]
    expected = [ENGLISH.terms(text) for text in texts]
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(ENGLISH.terms, texts)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I ❤️ NY", "i ny"),  # U+FE0F after the heart becomes a word
        ("☀️rain", "rain"),  # … or part of one
        ("葛\U000e0100飾区", "葛飾 飾区"),  # a variation selector parts a pair
        ("dog´s", "dog s"),  # NFKC makes a space and U+0301 of the acute accent
    ],
)
def test_variation_selectors_and_lone_marks_are_no_words(text: str, expected: str) -> None:
    assert ENGLISH.terms(text) == expected.split()


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("co\u00adoperation", "cooperation"),  # soft hyphen, common in HTML and PDF
        ("inter\u2060national", "international"),  # word joiner
    ],
)
def test_invisible_characters_do_not_part_words(text: str, same: str) -> None:
    assert ENGLISH.terms(text) == ENGLISH.terms(same)


@pytest.mark.parametrize("text", ["می\u200cخواهم", "ක්\u200dරියා"])
def test_joiners_belong_to_their_word(text: str) -> None:
    assert len(PLAIN.terms(text)) == 1


@pytest.mark.parametrize(("text", "expected"), [("佐々木", "佐々 々木"), ("二〇年", "二〇 〇年")])
def test_the_repetition_mark_and_zero_are_han(text: str, expected: str) -> None:
    assert PLAIN.terms(text) == expected.split()


def test_a_stop_word_with_a_possessive_is_a_stop_word() -> None:
    assert ENGLISH.terms("It's what that's for, there's no other.") == ["what", "other"]


def test_porter_takes_possessives_off_too() -> None:
    assert terms("dog's", "porter") == terms("dogs", "porter") == ["dog"]

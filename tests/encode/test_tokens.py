from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models

from trilens.encode.models import bundled_models
from trilens.encode.tokens import Tokens, is_punctuation, leading_text
from trilens.errors import BadInput, BadModel

from .echo_model import ID, WORDS, write_tokenizer

BUNDLED = next(iter(bundled_models().values()))


def of_words(file: Path, words: list[str], decoder: decoders.Decoder | None) -> Tokens:
    """A tokenizer that knows these words and shows them with that decoder."""
    tokenizer = Tokenizer(models.WordLevel({word: at for at, word in enumerate(words)}, unk_token=words[0]))
    if decoder is not None:
        tokenizer.decoder = decoder
    tokenizer.save(str(file))
    return Tokens(file)


def test_the_head_of_a_long_text_has_the_tokens_of_the_whole() -> None:
    tokens = Tokens(BUNDLED / "tokenizer.json")
    prose = "Incomprehensibilities, naïve co-operation; " * 400
    cases = [prose, "x" * 5000 + " end", " " * 5000 + "end of a blank text", "no" * 4000]
    found, cut = tokens.encode(cases, 16)
    whole = [tokens.encode([case], 10**6)[0][0] for case in cases]
    expected = [ids if len(ids) <= 16 else [*ids[:15], ids[-1]] for ids in whole]
    assert found == expected
    assert cut == sum(len(ids) > 16 for ids in whole)


def test_a_head_ends_at_a_space() -> None:
    assert leading_text("short", 10) == "short"
    assert leading_text("one two three", 9) == "one two"
    assert leading_text("unbroken", 3) == "unbroken"


def test_special_tokens_around_a_text(tmp_path: Path) -> None:
    for special, opening, closing in ((True, [ID["[CLS]"]], [ID["[SEP]"]]), (False, [], [])):
        write_tokenizer(tmp_path / "tokenizer.json", special)
        tokens = Tokens(tmp_path / "tokenizer.json")
        assert (tokens.opening, tokens.closing) == (opening, closing)
        assert tokens.encode(["red fox"], 9) == ([[*opening, ID["red"], ID["fox"], *closing]], 0)


def test_punctuation_of_a_vocabulary(tmp_path: Path) -> None:
    write_tokenizer(tmp_path / "tokenizer.json", special=True)
    marked = Tokens(tmp_path / "tokenizer.json").punctuation
    assert [word for word, id_ in ID.items() if marked[id_]] == [",", ".", "—", "$"]


def test_punctuation_of_the_bundled_vocabulary() -> None:
    tokens = Tokens(BUNDLED / "tokenizer.json")
    text = "Don't stop; it's “only” 3.5 € — naïve 数据, co-operation! [x] $5 …"
    (ids,), _ = tokens.encode([text], 99)
    kept = [shown for shown, mark in zip(tokens.texts(ids), tokens.punctuation[ids], strict=True) if not mark]
    assert " ".join(kept).replace(" ##", "") == "[CLS] don t stop it s only 3 5 € naive [UNK] [UNK] co operation x 5 [SEP]"
    assert tokens.punctuation[tokens.id_of("##,", "test")]


def test_punctuation_and_words_of_other_kinds_of_vocabulary(tmp_path: Path) -> None:
    pieces = of_words(tmp_path / "pieces", ["<unk>", "▁red", "s", "▁,", "▁", "—", "</s>", "é"], decoders.Metaspace())
    assert pieces.texts(range(8)) == ["<unk>", "red", "s", ",", "▁", "—", "</s>", "é"]
    assert pieces.punctuation.tolist() == [False, False, False, True, False, True, False, False]
    raw = of_words(tmp_path / "bytes", ["<unk>", "Ġred", "Ã©", "Ġ,", "âĢĶ", "æķ°"], decoders.ByteLevel())
    assert raw.texts(range(6)) == ["<unk>", "red", "é", ",", "—", "数"]
    assert raw.punctuation.tolist() == [False, False, False, True, True, False]
    assert of_words(tmp_path / "plain", ["<unk>", "red"], None).texts([1, 0]) == ["red", "<unk>"]


def test_what_punctuation_is() -> None:
    assert all(map(is_punctuation, [",", "...", "—", "$", "^", "«", "?!"]))
    assert not any(map(is_punctuation, ["", "a", "a.", ".5", "€", " ", "数"]))


def test_tokens_as_text(tmp_path: Path) -> None:
    write_tokenizer(tmp_path / "tokenizer.json", special=True)
    tokens = Tokens(tmp_path / "tokenizer.json")
    assert tokens.texts(range(len(WORDS))) == WORDS
    assert tokens.texts([]) == []
    for wrong in (len(WORDS), -1):
        with pytest.raises(BadInput, match=f"no token {wrong} .*its 16 tokens"):
            tokens.texts([0, wrong])


def test_tokens_that_a_configuration_names_must_exist() -> None:
    tokens = Tokens(BUNDLED / "tokenizer.json")
    assert tokens.texts([tokens.id_of("[MASK]", "multi.mask_token")]) == ["[MASK]"]
    with pytest.raises(BadModel, match=r"no token '\[Q\]', which multi.query_marker names"):
        tokens.id_of("[Q]", "multi.query_marker")

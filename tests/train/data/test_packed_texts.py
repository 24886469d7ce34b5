import pytest

from trilens.errors import BadInput
from trilens.train.data.packed_texts import PackedTextsBuilder, UniqueTextsBuilder


def test_round_trip() -> None:
    builder = PackedTextsBuilder()
    assert [builder.add(text) for text in ("naïve", "", "数据", "naïve")] == [0, 1, 2, 3]
    texts = builder.texts()
    assert [texts[number] for number in range(len(texts))] == ["naïve", "", "数据", "naïve"]
    assert texts.lengths.tolist() == [6, 0, 6, 6]
    for number in (-1, 4):
        with pytest.raises(IndexError):
            texts[number]


def test_equal_texts_are_stored_once() -> None:
    builder = UniqueTextsBuilder()
    assert [builder.add(text) for text in ("a", "b", "a", "c")] == [0, 1, 0, 2]
    assert len(builder.texts()) == 3


def test_lone_surrogates() -> None:
    builder = PackedTextsBuilder()
    with pytest.raises(BadInput, match="lone surrogate"):
        builder.add("\ud800")
    assert len(builder) == 0

import pytest

from trilens.errors import BadInput
from trilens.train.data.texts import OnceMaker, TextsMaker


def test_texts_come_back() -> None:
    maker = TextsMaker()
    assert [maker.add(text) for text in ("naïve", "", "数据", "naïve")] == [0, 1, 2, 3]
    texts = maker.texts()
    assert [texts[number] for number in range(len(texts))] == ["naïve", "", "数据", "naïve"]
    assert texts.lengths.tolist() == [6, 0, 6, 6]
    for number in (-1, 4):
        with pytest.raises(IndexError):
            texts[number]


def test_equal_texts_once() -> None:
    maker = OnceMaker()
    assert [maker.add(text) for text in ("a", "b", "a", "c")] == [0, 1, 0, 2]
    assert len(maker.texts()) == 3


def test_lone_surrogates() -> None:
    maker = TextsMaker()
    with pytest.raises(BadInput, match="lone surrogate"):
        maker.add("\ud800")
    assert len(maker) == 0

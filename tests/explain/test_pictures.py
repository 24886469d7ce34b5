"""Word clouds, bar charts and pictures of explanations."""

import struct
import sys
from pathlib import Path

import pytest

from trilens.errors import BadInput
from trilens.explain import pictures
from trilens.explain.pictures import bar_chart, explanation_picture, word_cloud
from trilens.explain.word import Word

from .test_page import explanation

WORDS = [Word("paris", 3.0, True), Word("france", 2.5, True), Word("##is", 0.5, False), Word("$100", 0.2, False)]


def size_of(png: Path) -> tuple[int, int]:
    head = png.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", head[16:])
    return width, height


def test_a_cloud_is_a_picture_and_always_the_same(tmp_path: Path) -> None:
    word_cloud(WORDS, tmp_path / "a.png")
    word_cloud(WORDS, tmp_path / "b.png")
    assert size_of(tmp_path / "a.png") == pictures.CLOUD_SIZE
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_bars_are_a_picture_that_grows_with_the_words(tmp_path: Path) -> None:
    bar_chart(WORDS, tmp_path / "few.png", "costs $5 or $6")
    bar_chart(WORDS * 5, tmp_path / "many.png")
    assert size_of(tmp_path / "few.png")[1] < size_of(tmp_path / "many.png")[1]


@pytest.mark.parametrize("draw", [word_cloud, bar_chart])
def test_where_a_picture_cannot_go(draw: object, tmp_path: Path) -> None:
    assert callable(draw)
    with pytest.raises(BadInput, match=r"expected \.png"):
        draw(WORDS, tmp_path / "cloud.jpg")
    with pytest.raises(BadInput, match="no folder"):
        draw(WORDS, tmp_path / "nowhere" / "cloud.png")


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wordcloud", None)
    with pytest.raises(BadInput, match="trilens\\[pictures\\]"):
        word_cloud(WORDS, tmp_path / "a.png")


def test_a_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    explanation_picture(explanation(), tmp_path / "why.png")
    assert (tmp_path / "why.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(BadInput, match=r"expected \.png"):
        explanation_picture(explanation(), tmp_path / "why.gif")

"""The words of a text and their pictures."""

import struct
from pathlib import Path

import pytest

from trilens.encode.models import resolve_model
from trilens.encode.onnx import OnnxEncoder
from trilens.errors import BadInput, BadModel
from trilens.explain import pictures
from trilens.explain.disentangle import Word, disentangle
from trilens.explain.pictures import bar_chart, word_cloud
from trilens.store.config import DEFAULT_MODEL

TEXT = "The capital of France is Paris."
WORDS = [Word("paris", 3.0, True), Word("france", 2.5, True), Word("##is", 0.5, False), Word("$100", 0.2, False)]


@pytest.fixture(scope="module")
def encoder() -> OnnxEncoder:
    return OnnxEncoder(resolve_model(DEFAULT_MODEL), threads=1, heads=["sparse", "dense"])


def test_words_and_weights_stay_in_step(encoder: OnnxEncoder) -> None:
    words = disentangle(encoder, TEXT)
    sparse = encoder.encode_queries([TEXT]).sparse
    assert sparse is not None
    weights = dict(zip(encoder.term_texts(sparse.terms.tolist()), sparse.weights.tolist(), strict=True))
    assert len(words) == len(sparse.terms) >= 768
    assert all(word.weight == weights[word.word] for word in words)
    assert [word.weight for word in words] == sorted((word.weight for word in words), reverse=True)
    assert {word.word for word in words if word.own} == {"the", "capital", "of", "france", "is", "paris", "."}


def test_the_best_words_of_a_passage(encoder: OnnxEncoder) -> None:
    words = disentangle(encoder, TEXT, "doc", 10)
    assert len(words) == 10
    assert words == disentangle(encoder, TEXT, "doc")[:10]
    assert {"paris", "france"} <= {word.word for word in words if word.own}


def test_what_cannot_be_disentangled(encoder: OnnxEncoder) -> None:
    with pytest.raises(BadInput, match="the text is empty"):
        disentangle(encoder, " \n")
    with pytest.raises(BadModel, match="no sparse head"):
        disentangle(OnnxEncoder(resolve_model(DEFAULT_MODEL), heads=["dense"]), TEXT)


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
    monkeypatch.setitem(__import__("sys").modules, "wordcloud", None)
    with pytest.raises(BadInput, match="trilens\\[pictures\\]"):
        word_cloud(WORDS, tmp_path / "a.png")

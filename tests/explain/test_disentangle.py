"""The vocabulary terms that a text activates."""

import pytest

from trilens.encode.models import resolve_model
from trilens.encode.onnx import OnnxEncoder
from trilens.errors import BadInput, BadModel
from trilens.explain.disentangle import disentangle, whole_words
from trilens.explain.word import Word
from trilens.store.config import DEFAULT_MODEL

TEXT = "The capital of France is Paris."


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


def test_whole_words_have_no_pieces() -> None:
    words = [
        Word("del", 5, True),
        Word("##ete", 4, True),
        Word("a", 3, True),
        Word(".", 2.5, True),
        Word("delete", 2, False),
        Word("remove", 1, False),
        Word("##d", 0.5, False),
    ]
    assert whole_words(words, "Delete a FILE.") == [Word("delete", 5, True), Word("a", 3, True), Word("remove", 1, False)]
    assert whole_words([], "") == []

"""Passages of a collection with a model: nothing of them is truncated, whatever the text is made of."""

from pathlib import Path
from typing import Any

import pytest

from trilens import Collection, Document
from trilens.encode.models import bundled_models
from trilens.errors import BadInput
from trilens.store.config import DEFAULT_MODEL, WORD_PASSAGES, PassageConfig
from trilens.text.passages import split_passages

from .tiny import TinyEncoder

with_model = pytest.mark.skipif(DEFAULT_MODEL not in bundled_models(), reason="the bundled model is not there")
PAGE = Path(__file__).parents[2] / "ARCHITECTURE.md"
DOCUMENTS = [
    Document("page", PAGE.read_text(), title="Architecture"),
    Document("prose", "It is a plain sentence of everyday words. " * 60),
    Document("base64", "QUJDRA" * 3000 + " " + "iVBORw0KGgo/" * 300),
    Document("chinese", "今天很好" * 400),
    Document("korean", "한국어문장" * 400),
    Document("table", "|---" * 1000, title="a table"),
    Document("pictures", "😀" * 2000),
    Document("titled", "word " * 900, title="a long title, " * 30),
    Document("short", "Two words."),
]


def made(path: Path, **options: Any) -> Collection:
    """A collection of the documents. The lens `tokens` tokenises, but never runs the model."""
    collection = Collection.create(path, **{"lenses": ["bm25", "tokens"]} | options)
    collection.add(DOCUMENTS)
    return collection


def spans_of(collection: Collection, doc_id: str) -> list[tuple[int, int]]:
    """The passages of a document."""
    rows = collection.snapshot.segments[0].rows
    key = next(key for key, document in collection.snapshot.page(0, 100) if document.doc_id == doc_id)
    return [(int(a), int(b)) for k, a, b in zip(rows.keys, rows.starts, rows.ends, strict=True) if k == key]


@with_model
def test_nothing_is_truncated(tmp_path: Path) -> None:
    with made(tmp_path / "c") as collection:
        assert collection.config.passages == PassageConfig(words=150, overlap=30, tokens=256)
        assert collection.commit().truncated == 0
        assert collection.check().problems == []
        # A text of ordinary words is split as it is by words alone.
        assert spans_of(collection, "prose") == split_passages(DOCUMENTS[1].text)
        collection.upsert(DOCUMENTS)
        assert collection.commit().unchanged == len(DOCUMENTS)


@with_model
def test_passages_by_words_alone_are_truncated_and_counted(tmp_path: Path) -> None:
    with made(tmp_path / "c", passages=WORD_PASSAGES) as collection:
        assert collection.commit().truncated > 0
        assert [spans_of(collection, each.doc_id) for each in DOCUMENTS] == [split_passages(each.text) for each in DOCUMENTS]


@pytest.mark.parametrize("options", [{"lenses": ["bm25"]}, {"lenses": ["dense"], "encoder": TinyEncoder()}])
def test_without_a_tokenizer_passages_are_by_words(tmp_path: Path, options: dict[str, Any]) -> None:
    with made(tmp_path / "c", **options) as collection:
        assert collection.config.passages == WORD_PASSAGES
        collection.commit()
        assert all(spans_of(collection, each.doc_id) == split_passages(each.text) for each in DOCUMENTS)


class WordEncoder(TinyEncoder):
    """One token per word, of which it reads nine, and two special ones."""

    max_doc_tokens = 11

    def doc_lengths(self, texts: list[str]) -> list[int]:
        return [2 + len(text.split()) for text in texts]


def test_an_encoder_object_can_have_a_tokenizer(tmp_path: Path) -> None:
    document = Document("a", "one two three four five. " * 4, title="a title")  # two of nine words are the title
    with Collection.create(tmp_path / "c", lenses=["dense"], encoder=WordEncoder()) as collection:
        assert collection.config.passages.tokens == 11
        collection.add([document])
        collection.commit()
        assert [document.text[a:b] for a, b in spans_of(collection, "a")] == ["one two three four five."] * 4
    other = TinyEncoder()  # of the same vectors, but without a tokenizer
    expected = "encoder tiny does not implement LengthReader; expected the methods of"
    with Collection.open(tmp_path / "c", encoder=other) as collection, pytest.raises(BadInput, match=expected):
        collection.add([Document("b", "word " * 20)])

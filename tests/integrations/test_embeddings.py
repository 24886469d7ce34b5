"""Embedding functions as an encoder of dense vectors."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from trilens import Collection, Document
from trilens.errors import BadModel
from trilens.integrations.embeddings import AT_ONCE, FunctionEncoder


class Lengths:
    """Embeds a text as its numbers of a and b."""

    model = "counts-1"

    def __init__(self) -> None:
        self.batches: list[int] = []

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.batches.append(len(texts))
        return [[text.count("a"), text.count("b")] for text in texts]


def encoder_of(embeddings: Lengths) -> FunctionEncoder:
    return FunctionEncoder(embeddings, embeddings.embed, embeddings.embed)


def test_vectors_have_unit_length_and_batches_are_bounded() -> None:
    embeddings, done = Lengths(), list[int]()
    encoded = encoder_of(embeddings).encode_docs(["aaabbbb", "", *["b"] * AT_ONCE], done.append)
    assert encoded.dense is not None
    assert encoded.dense.vectors[:3].ravel().tolist() == pytest.approx([0.6, 0.8, 0, 0, 0, 1])
    assert embeddings.batches == done == [AT_ONCE, 2]
    assert encoder_of(embeddings).encode_queries(["a", "ab"]).dense is not None
    assert embeddings.batches[-1] == 2


def test_a_collection_searches_with_them(tmp_path: Path) -> None:
    encoder = encoder_of(Lengths())
    assert encoder.fingerprint == f"{Lengths.__module__}.Lengths:counts-1"
    with Collection.create(tmp_path / "c", lenses=["dense"], encoder=encoder) as collection:
        collection.add([Document("a", "aaab"), Document("b", "abbb")])
    with Collection.open(tmp_path / "c", encoder=encoder) as collection:
        (hits,) = collection.search(["a"])
        assert [hit.doc_id for hit in hits] == ["a", "b"]
        assert [hit.score for hit in hits] == pytest.approx([3 / np.sqrt(10), 1 / np.sqrt(10)])
    other = encoder_of(Lengths())
    other.fingerprint = "another model"
    with Collection.open(tmp_path / "c", encoder=other) as collection, pytest.raises(BadModel, match="another model"):
        collection.search(["a"])

"""How many weights passages and queries keep, and bags of tokens beside the learned score, against plain products."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trilens import Collection, Document
from trilens.encode.model import ModelEncoder, joint_passes
from trilens.encode.onnx import OnnxEncoder
from trilens.encode.terms import Pruning, SparseMode
from trilens.errors import BadInput
from trilens.kernels.array_types import Float32s
from trilens.retriever import to_rows

from ..encode.echo_model import echo_model

PASSAGES = ["red fox runs", "fox runs home", "red, red. home", "runs"]
QUERY = "red fox, home"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return echo_model(tmp_path / "echo", heads=["dense", "sparse"])


def vectors(model: Path, texts: list[str], mode: SparseMode, queries: bool = False) -> Float32s:
    encoder = OnnxEncoder(model, mode=mode)
    sparse = (encoder.encode_queries(texts) if queries else encoder.encode_docs(texts)).sparse
    assert sparse is not None
    return to_rows(sparse)


def bags(model: Path, texts: list[str]) -> Float32s:
    bag = OnnxEncoder(model).encode_docs(texts).bag
    assert bag is not None
    return (to_rows(bag) > 0).astype(np.float32)


def made(tmp_path: Path, model: Path, **config: Any) -> Collection:
    settings: dict[str, Any] = {"lenses": ["dense", "sparse", "tokens"], "passages": {"words": 0}}
    collection = Collection.create(tmp_path / "c", model=str(model), sparse={"weights": "float32", **config}, **settings)
    collection.add(Document(str(row), text) for row, text in enumerate(PASSAGES))
    collection.commit()
    return collection


def scores(collection: Collection, lens: str, **params: Any) -> Float32s:
    hits = collection.search([QUERY], 4, lenses=[lens], params={lens: params}, exact=True)[0]
    found = np.zeros(4, np.float32)
    for hit in hits:
        found[int(hit.doc_id)] = hit.score
    return found


@pytest.mark.parametrize(
    ("config", "mode"),
    [
        ({}, SparseMode(3, True)),  # of the model
        ({"top": 2}, SparseMode(2, True)),
        ({"top": 2, "own": False}, SparseMode(2, False)),
        ({"top": 0}, SparseMode(0, True)),
        ({"top": "all"}, SparseMode(None, True)),
    ],
)
def test_weights_of_passages(tmp_path: Path, model: Path, config: dict[str, Any], mode: SparseMode) -> None:
    with made(tmp_path, model, **config) as collection:
        expected = vectors(model, PASSAGES, mode) @ vectors(model, [QUERY], SparseMode(3, True), queries=True)[0]
        np.testing.assert_allclose(scores(collection, "sparse"), expected, rtol=1e-5)
    with Collection.open(tmp_path / "c") as again:  # it is stored
        np.testing.assert_allclose(scores(again, "sparse"), expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("params", "mode"),
    [({"top": 1}, SparseMode(1, True)), ({"top": 1, "own": False}, SparseMode(1, False)), ({"top": "all"}, SparseMode(None))],
)
def test_weights_of_queries(tmp_path: Path, model: Path, params: dict[str, Any], mode: SparseMode) -> None:
    query = vectors(model, [QUERY], mode, queries=True)[0]
    with made(tmp_path, model) as collection:
        np.testing.assert_allclose(
            scores(collection, "sparse", **params), vectors(model, PASSAGES, SparseMode(3)) @ query, rtol=1e-5
        )
        np.testing.assert_allclose(scores(collection, "tokens", **params), bags(model, PASSAGES) @ query, rtol=1e-5)


def test_each_lens_has_its_own(tmp_path: Path, model: Path) -> None:
    with made(tmp_path, model) as collection:
        separate: dict[str, dict[str, Any]] = {"sparse": {"top": 1, "own": False}, "tokens": {"top": "all"}}
        for hit in collection.search([QUERY], 4, lenses=["dense", "sparse", "tokens"], params=separate)[0]:
            for lens, params in separate.items():
                alone = scores(collection, lens, **params)[int(hit.doc_id)]
                assert hit.by_lens[lens].score == pytest.approx(alone, rel=1e-5, abs=1e-6)


def test_bags_beside_the_learned_score(tmp_path: Path, model: Path) -> None:
    with made(tmp_path, model) as collection:
        both = bags(model, PASSAGES) @ bags(model, [QUERY])[0]
        np.testing.assert_allclose(scores(collection, "tokens", query="bag"), both)
        expected = scores(collection, "tokens") + 0.5 * both
        np.testing.assert_allclose(scores(collection, "tokens", bags=0.5), expected, rtol=1e-5)
        explained = collection.explain(QUERY, "0", lenses=["tokens"], params={"tokens": {"bags": 0.5}})
        assert explained.score == pytest.approx(expected[0], rel=1e-5)
        assert sum(part.score for part in explained.parts) == pytest.approx(explained.score, rel=1e-5)
        # Beside the weights of passages, it is a fusion.
        fused = collection.search(
            [QUERY], 4, lenses=["sparse", "tokens"], params={"tokens": {"query": "bag"}}, fusion="weighted:sparse=1,tokens=0.5"
        )[0]
        learned = scores(collection, "sparse")
        for hit in fused:
            row = int(hit.doc_id)
            assert hit.score == pytest.approx(learned[row] + 0.5 * both[row], rel=1e-5)


def test_what_is_refused(tmp_path: Path, model: Path) -> None:
    with pytest.raises(BadInput, match="top is 0 and own is false, which keeps no weights"):
        made(tmp_path, model, top=0, own=False)
    with made(tmp_path, model) as collection:
        for lens, params, says in (
            ("sparse", {"top": -1}, "top"),
            ("sparse", {"bags": 0.5}, "bags"),
            ("tokens", {"query": "bag", "own": False}, "query is bag, and own is given"),
            ("tokens", {"query": "bag", "bags": 0.5}, "query is bag, and bags is given"),
        ):
            with pytest.raises(BadInput, match=says):
                scores(collection, lens, **params)


def test_passes_over_the_texts(model: Path) -> None:
    """Lenses with the same weights share a pass; other weights take another one."""
    encoders = ModelEncoder(str(model), ("dense", "sparse"))
    dense, sparse = encoders.heads_encoder("dense"), encoders.heads_encoder("sparse")
    short = encoders.heads_encoder("sparse", pruning=Pruning(top=2))
    passes = joint_passes({"dense": dense, "sparse": sparse, "tokens": short})
    assert [names for names, _ in passes] == [["dense", "sparse"], ["tokens"]]
    ((names, joined),) = joint_passes({"dense": dense, "tokens": short})
    assert names == ["dense", "tokens"] and joined == encoders.heads_encoder("dense", "sparse", pruning=Pruning(top=2))
    assert encoders.heads_encoder("sparse", pruning=Pruning()) == sparse
    given = ModelEncoder("", ("sparse",), encoder=Given(model))
    with pytest.raises(BadInput, match="keeps a fixed number of terms"):
        given.heads_encoder("sparse", pruning=Pruning(top=2)).encode_queries(["red"])


class Given(OnnxEncoder):
    """An encoder object that keeps a fixed number of terms."""

    prunes = False

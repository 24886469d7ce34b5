"""Stored collections of format 4 are upgraded, search and explain with the scores that were recorded when they were written.

`data/format-4` holds two of them, zipped: `texts`, five documents through every lens of the bundled model, and `vectors`, with
the lens `external`, which catalogs call `vectors`. `queries.npz` holds the queries as the model encoded them and `scores.json`
the hits and explanations, so scores are compared exactly (but those of imputation), whatever model is bundled. Commit 7125732
wrote them.
"""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest

from trilens import Collection, Explanation, MultiParams
from trilens.encode.encoder import Encoded, Progress
from trilens.encode.folder import Head, ModelFolder
from trilens.encode.models import bundled_models
from trilens.encode.onnx import UNCHANGED, OnnxEncoder
from trilens.encode.terms import Pruning
from trilens.represent import Dense, Multi, Sparse
from trilens.search.hits import Hit
from trilens.store.config import DEFAULT_MODEL
from trilens.store.schema import FORMAT_VERSION
from trilens.text.document import Document

from .tiny import HEADS, LENSES

DATA = Path(__file__).parent / "data" / "format-4"
RECORD: dict[str, Any] = json.loads((DATA / "scores.json").read_text())
QUERIES: list[str] = RECORD["texts"]["queries"]
FINGERPRINT: str = RECORD["texts"]["fingerprint"]
MODEL = bundled_models().get(DEFAULT_MODEL)
XTR = MultiParams(method="xtr", candidates=0, probes=2, reach=2)
MOST_PARTS = 8


@cache
def recorded_queries() -> Encoded:
    with np.load(DATA / "queries.npz") as arrays:

        def sparse(name: str) -> Sparse:
            indptr, terms, weights, dim = (arrays[f"{name}.{column}"] for column in ("indptr", "terms", "weights", "dim"))
            return Sparse(indptr, terms, weights, int(dim))

        return Encoded(
            dense=Dense(arrays["dense.vectors"]),
            sparse=sparse("sparse"),
            lexical=sparse("lexical"),
            bag=sparse("bag"),
            multi=Multi(arrays["multi.offsets"], arrays["multi.vectors"], arrays["multi.tokens"]),
        )


def encode_recorded(texts: Sequence[str]) -> Encoded:
    return recorded_queries().take(np.array([QUERIES.index(text) for text in texts]))


class RecordedQueries:
    """An encoder of the recorded queries alone."""

    heads = HEADS
    fingerprint = FINGERPRINT

    def encode_docs(
        self, texts: Sequence[str], progress: Progress | None = None, heads: Sequence[Head] | None = None
    ) -> Encoded:
        raise NotImplementedError

    def encode_queries(self, texts: Sequence[str], heads: Sequence[Head] | None = None) -> Encoded:
        return encode_recorded(texts)


class RecordedModel(OnnxEncoder):
    """The bundled model with the recorded vectors of the queries."""

    def encode_queries(
        self, texts: Sequence[str], heads: Sequence[Head] | None = None, pruning: Pruning = UNCHANGED
    ) -> Encoded:
        return encode_recorded(texts)


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    return unpacked("texts", tmp_path)


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    return unpacked("vectors", tmp_path)


def unpacked(name: str, folder: Path) -> Path:
    with ZipFile(DATA / f"{name}.zip") as archive:
        archive.extractall(folder)
    report = Collection.upgrade(folder / name)
    assert (report.version, report.encoded) == (4, False)
    return folder / name


def pairs(answers: list[list[Hit]]) -> list[list[list[Any]]]:
    return [[[hit.doc_id, hit.score] for hit in hits] for hits in answers]


def require_same(found: Explanation, recorded: dict[str, Any], tolerance: float = 1e-6) -> None:
    """The same score for the same passage, made of the same parts."""
    assert [found.passage.start, found.passage.end] == recorded["passage"]
    assert found.score == recorded["score"]
    parts = sorted(found.parts, key=lambda part: -abs(part.score))[:MOST_PARTS]
    assert [[part.label, part.kind] for part in parts] == [[label, kind] for label, kind, _ in recorded["parts"]]
    assert [part.score for part in parts] == pytest.approx([score for _, _, score in recorded["parts"]], abs=tolerance)


def test_this_format_is_searched_as_it_is(tmp_path: Path) -> None:
    """`data/format-5` holds the same collections in format 5. A change of the format needs another folder, and an upgrade."""
    assert FORMAT_VERSION == 5
    for name in ("texts", "vectors"):
        with ZipFile(DATA.with_name("format-5") / f"{name}.zip") as archive:
            archive.extractall(tmp_path)
    with Collection.open(tmp_path / "texts", encoder=RecordedQueries(), verify=True) as collection:
        for lens in LENSES:
            assert pairs(collection.search(QUERIES, lenses=[lens])) == RECORD["texts"]["by_lens"][lens]["hits"]
    with Collection.open(tmp_path / "vectors", verify=True) as collection:
        recorded = RECORD["vectors"]
        assert pairs(collection.search(recorded["queries"])) == recorded["by_lens"]["vectors"]["hits"]


@pytest.mark.parametrize("lens", LENSES)
def test_scores_of_a_lens(texts: Path, lens: str) -> None:
    with Collection.open(texts, encoder=RecordedQueries()) as collection:
        assert pairs(collection.search(QUERIES, lenses=[lens])) == RECORD["texts"]["by_lens"][lens]["hits"]


def test_scores_of_a_fusion_and_of_imputation(texts: Path) -> None:
    with Collection.open(texts, encoder=RecordedQueries()) as collection:
        assert pairs(collection.search(QUERIES)) == RECORD["texts"]["fused"]
        for found, recorded in zip(
            pairs(collection.search(QUERIES, lenses=["multi"], params={"multi": XTR})), RECORD["texts"]["xtr"], strict=True
        ):
            assert [doc_id for doc_id, _ in found] == [doc_id for doc_id, _ in recorded]
            # Its kernel adds in the order that the width of the processor's vectors suggests.
            assert [score for _, score in found] == pytest.approx([score for _, score in recorded], rel=1e-6)


def test_configuration_figures_and_files(texts: Path) -> None:
    with Collection.open(texts, encoder=RecordedQueries()) as collection:
        assert collection.lenses == LENSES
        assert (collection.config.model, collection.config.model_fingerprint) == (DEFAULT_MODEL, FINGERPRINT)
        assert (len(collection), collection.config.passages.words) == (5, 30)
        assert collection.info()["figures"] == RECORD["texts"]["figures"]
        assert collection.check().problems == []


@pytest.mark.skipif(not MODEL or ModelFolder.open(MODEL).fingerprint != FINGERPRINT, reason="another model is bundled")
@pytest.mark.parametrize("lens", LENSES)
def test_explanations_of_a_lens(texts: Path, lens: str) -> None:
    assert MODEL is not None
    with Collection.open(texts, encoder=RecordedModel(MODEL, threads=1)) as collection:
        for doc_id, recorded in RECORD["texts"]["by_lens"][lens]["explanations"].items():
            # The rounding of float32 sums, here of residuals, depends on how many numbers the processor adds at once.
            tolerance = {"dense": 1e-4, "multi": 1e-5}.get(lens, 1e-6)
            require_same(collection.explain(QUERIES[0], doc_id, lenses=[lens]), recorded, tolerance)


@pytest.mark.skipif(not MODEL or ModelFolder.open(MODEL).fingerprint != FINGERPRINT, reason="another model is bundled")
def test_documents_are_added_with_the_bundled_model(texts: Path) -> None:
    with Collection.open(texts, threads=1) as collection:
        collection.add([Document("new", "The old mechanic repairs cars and motors.")])
        collection.commit()
        for lens in LENSES:
            assert collection.search([QUERIES[0]], 2, lenses=[lens])[0][0].doc_id in ("new", "car")
        collection.optimize(retrain=True)
        assert collection.check().problems == []
        assert {hit.doc_id for hit in collection.search([QUERIES[0]], 2)[0]} == {"new", "car"}


def test_vectors_of_documents(vectors: Path) -> None:
    recorded = RECORD["vectors"]["by_lens"]["vectors"]
    with Collection.open(vectors) as collection:
        assert collection.lenses == ["external"]
        assert pairs(collection.search(RECORD["vectors"]["queries"])) == recorded["hits"]
        for doc_id, explanation in recorded["explanations"].items():
            require_same(collection.explain(RECORD["vectors"]["queries"][0], doc_id), explanation)
        assert collection.check().problems == []
        collection.add([Document("d", '{"cat":9,"new":1}')])
        collection.commit()
        assert collection.search(['{"cat": 1}'])[0][0].doc_id == "d"
        assert {path.name for path in (vectors / "segments").glob("*/*")} == {"documents", "manifest.json", "rows", "vectors"}

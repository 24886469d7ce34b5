"""Token retrieval analysis of the XTR paper against counts by hand."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from trilens import Collection, Document
from trilens.errors import BadInput
from trilens.evaluate.token_retrieval import analyse

from ..bundled import with_multi

TEXTS = {"a": "cat mat", "b": "cat dog", "c": "harbour ship"}


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    folder: Path = tmp_path_factory.mktemp("tokens")
    model = str(with_multi(folder / "model", skip_special=True))
    with Collection.create(folder / "c", lenses=["multi"], model=model, threads=1) as made:
        made.add(Document(doc_id, text) for doc_id, text in TEXTS.items())
        made.commit()
        yield made


def test_all_tokens_retrieved(collection: Collection) -> None:
    """At depth 6 the one query token retrieves all six tokens: two of the relevant document, two of them 'cat'."""
    (result,) = analyse(collection, {"q": "cat"}, {"q": {"a": 1, "c": 0}}, depths=(6,))
    assert (result.gold, result.lexical, result.gold_found) == pytest.approx((2 / 6, 2 / 6, 1))
    assert (result.documents, result.tokens_per_document) == (3, 2)
    assert result.colbert_flops == 1 * 6 * (2 * 2 * 128 + 2 + 1)
    assert result.xtr_flops == 1 * 6 * (2 + 1)


def test_best_tokens_come_first(collection: Collection) -> None:
    """'cat' retrieves the two cats before anything else."""
    (two, many) = analyse(collection, {"q": "cat"}, {"q": {"b": 1}}, depths=(2, 50))
    assert two.lexical == 1
    assert two.gold == 0.5
    assert many.lexical == pytest.approx(2 / 6)  # there are only six tokens


def test_no_queries_are_refused(collection: Collection) -> None:
    with pytest.raises(BadInput, match="no judged queries"):
        analyse(collection, {}, {})


def test_unsuitable_collections_are_refused(tmp_path: Path) -> None:
    with Collection.create(tmp_path / "bm25", lenses=["bm25"]) as made, pytest.raises(BadInput, match="no multi lens"):
        analyse(made, {"q": "cat"}, {})
    with (
        Collection.create(tmp_path / "pooled", lenses=["multi"], multi={"pool": 2}) as made,
        pytest.raises(BadInput, match="pooled"),
    ):
        analyse(made, {"q": "cat"}, {})

"""Searches with passages that a language model writes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trilens import Collection, Document
from trilens.errors import BadInput, ServiceFailed
from trilens.search.hyde import Hyde, imagine

from ..language.servers import Service, closes, says, serving

PASSAGE = "The capital of France is Paris, on the river Seine."
QUERY = "French government seat"


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Service]:
    for name in ("TRILENS_LLM_KEY", "TRILENS_HYDE_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with serving(says(f"  {PASSAGE}\n")) as made:
        yield made


@pytest.fixture
def collection(tmp_path: Path) -> Iterator[Collection]:
    with Collection.create(tmp_path / "c", lenses=["bm25", "dense", "sparse", "lexical", "tokens", "multi"], threads=1) as made:
        made.add([Document("paris", "Paris lies on the Seine."), Document("berlin", "Berlin lies on the Spree.")])
        made.commit()
        yield made


def test_what_is_asked(service: Service) -> None:
    hyde = Hyde(url=service.url, model="tiny", prompt="Answer this: ")
    assert [imagine(hyde, "capital of France") for _ in range(2)] == [PASSAGE, PASSAGE]
    assert service.prompts == ["Answer this: capital of France"]
    imagine.cache_clear()
    assert imagine(hyde, "capital of France") == PASSAGE  # from the disk
    assert len(service.requests) == 1 and service.requests[0]["body"]["model"] == "tiny"


def test_the_dense_lens_is_asked_with_the_mean(service: Service, collection: Collection) -> None:
    hyde = Hyde(url=service.url)
    (hits,) = collection.search([QUERY], lenses=["dense"], hyde=hyde)
    encoder = collection.model.encoder
    query = encoder.encode_queries([QUERY], ["dense"]).dense
    passage, docs = (encoder.encode_docs([text], heads=["dense"]).dense for text in (PASSAGE, "Paris lies on the Seine."))
    assert query and passage and docs
    mean = (query.vectors[0] + passage.vectors[0]) / 2
    expected = float(mean / np.linalg.norm(mean) @ docs.vectors[0])
    assert hits[0].doc_id == "paris"
    assert hits[0].score == pytest.approx(expected, abs=1e-5)
    found = collection.explain(QUERY, "paris", lenses=["dense"], hyde=hyde)
    assert sum(part.score for part in found.parts) == pytest.approx(expected, abs=1e-4)
    assert found.expansion == {"method": "hyde", "model": "default", "passage": PASSAGE}


@pytest.mark.parametrize("lens", ["bm25", "sparse", "lexical", "tokens", "multi"])
def test_other_lenses_search_the_passage_after_the_query(service: Service, collection: Collection, lens: str) -> None:
    copies = 5 if lens == "bm25" else 1
    hyde = Hyde(url=service.url)
    (hits,) = collection.search([QUERY], lenses=[lens], hyde=hyde, details=True)
    (expected,) = collection.search([f"{QUERY} " * copies + PASSAGE], lenses=[lens], details=True)
    assert [(hit.doc_id, hit.score, hit.snippet) for hit in hits] == [(hit.doc_id, hit.score, hit.snippet) for hit in expected]
    explained = collection.explain(QUERY, "paris", lenses=[lens], hyde=hyde)
    assert explained.score == hits[0].score
    assert sum(part.score for part in explained.parts) == pytest.approx(hits[0].score, abs=1e-3)
    assert explained.expansion == {"method": "query2doc", "model": "default", "passage": PASSAGE}


def test_lenses_can_be_chosen(service: Service, collection: Collection) -> None:
    both = {"lenses": ["bm25", "dense"], "fusion": "weighted:bm25=1,dense=1"}
    plain, mixed = ([collection.search([QUERY], hyde=hyde, **both)[0][0]] for hyde in (None, Hyde(url=service.url)))  # type: ignore[arg-type]
    one = [collection.search([QUERY], hyde=Hyde(url=service.url, lenses=("bm25",)), **both)[0][0]]  # type: ignore[arg-type]

    def scores(hits: list[Any]) -> tuple[float, float]:
        return hits[0].by_lens["bm25"].score, hits[0].by_lens["dense"].score

    assert scores(one) == (scores(mixed)[0], scores(plain)[1])
    assert scores(mixed)[1] != scores(plain)[1]
    with pytest.raises(BadInput, match="hyde is given, but the lenses searched are bm25; it applies to dense"):
        collection.search(["x"], lenses=["bm25"], hyde=Hyde(url=service.url, lenses=("dense",)))
    with pytest.raises(BadInput, match="lenses has 'smell', which is no lens"):
        Hyde(url=service.url, lenses=("smell",))


def test_a_re_ranking_lens_sees_the_passage(service: Service, collection: Collection) -> None:
    (hits,) = collection.search([QUERY], lenses=["bm25"], rerank="lexical", hyde=Hyde(url=service.url))
    (expected,) = collection.search([f"{QUERY} {PASSAGE}"], lenses=["bm25"], rerank="lexical")
    assert [(hit.doc_id, hit.score) for hit in hits] == [(hit.doc_id, hit.score) for hit in expected]


def test_no_passage_is_an_error(service: Service, collection: Collection) -> None:
    for reply, message in ((says(" "), "wrote no passage"), (closes, "cannot be reached")):
        service.replies = [reply]
        with pytest.raises(ServiceFailed, match=message):
            collection.search([QUERY], lenses=["bm25"], hyde=Hyde(url=service.url))

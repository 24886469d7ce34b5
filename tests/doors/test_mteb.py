"""Encoders of trilens as models of MTEB: a retrieval task and a similarity task made here, run by its evaluator."""

from typing import Any

import numpy as np
import pytest

mteb = pytest.importorskip("mteb", reason="run by scripts/test-doors")

from datasets import Dataset
from mteb.abstasks import AbsTaskRetrieval, AbsTaskSTS
from mteb.abstasks.task_metadata import TaskMetadata
from mteb.models.models_protocols import EncoderProtocol

from tests.doors.conftest import TEXTS
from trilens import Collection
from trilens.encode.onnx import OnnxEncoder
from trilens.errors import BadModel
from trilens.integrations.mteb import MtebEncoder

QUERIES = {"q1": "moving water", "q2": "undo a commit", "q3": "how often to grease"}
RELEVANT = {"q1": "pumps", "q2": "git", "q3": "fins"}  # the last one is wrong, so that not everything is perfect
PAIRS = [("Pumps move water.", "Water is moved by pumps.", 5.0), ("Pumps move water.", "Owls hunt.", 0.0), ("A.", "A.", 4.0)]


def described(name: str, kind: str, category: str, score: str) -> TaskMetadata:
    """The metadata that MTEB requires."""
    return TaskMetadata(
        name=name,
        dataset={"path": "trilens/local", "revision": "1"},
        description="A task of the tests",
        type=kind,
        category=category,
        modalities=["text"],
        eval_splits=["test"],
        eval_langs=["eng-Latn"],
        main_score=score,
    )


class Finding(AbsTaskRetrieval):
    """Four documents and three queries."""

    metadata = described("TrilensFinding", "Retrieval", "t2t", "ndcg_at_10")

    def load_data(self, **kwargs: Any) -> None:
        corpus = [{"id": name, "title": name.title(), "text": text} for name, text in TEXTS.items()]
        queries = [{"id": name, "text": text} for name, text in QUERIES.items()]
        judged = {query: {name: 1} for query, name in RELEVANT.items()}
        split = {"corpus": Dataset.from_list(corpus), "queries": Dataset.from_list(queries), "relevant_docs": judged}
        self.dataset = {"default": {"test": {**split, "top_ranked": None}}}
        self.data_loaded = True


class Similarity(AbsTaskSTS):
    """Pairs of sentences."""

    metadata = described("TrilensSimilarity", "STS", "t2t", "cosine_spearman")
    min_score, max_score = 0, 5

    def load_data(self, **kwargs: Any) -> None:
        rows = [{"sentence1": first, "sentence2": second, "score": score} for first, second, score in PAIRS]
        self.dataset = {"test": Dataset.from_list(rows)}
        self.data_loaded = True


@pytest.fixture(scope="module")
def model() -> MtebEncoder:
    return MtebEncoder("trilens-mini", threads=1)


def evaluated(model: MtebEncoder, task: Any) -> dict[str, Any]:
    """The scores of a task."""
    (result,) = mteb.evaluate(model, task, cache=None, show_progress_bar=False, co2_tracker=False).task_results
    scores: dict[str, Any] = result.scores["test"][0]
    return scores


def test_retrieval_scores_are_those_of_the_lens_dense(model: MtebEncoder, collection: Collection) -> None:
    answers = collection.search(list(QUERIES.values()), k=4, lenses=["dense"])
    ranks = [[hit.doc_id for hit in hits].index(name) + 1 for hits, name in zip(answers, RELEVANT.values(), strict=True)]
    expected = float(np.mean([1 / np.log2(1 + rank) for rank in ranks]))
    assert 0.5 < expected < 1
    assert evaluated(model, Finding())["ndcg_at_10"] == pytest.approx(expected, abs=1e-5)


def test_pairs_are_encoded_as_documents(model: MtebEncoder) -> None:
    # Equal texts rank above the paraphrase: ranks 2, 1, 3 against 3, 1, 2.
    assert evaluated(model, Similarity())["cosine_spearman"] == pytest.approx(0.5)
    batch = {"text": ["Pumps move water."]}
    (vector,) = model.encode([batch])
    dense = model.model.encode_docs(batch["text"]).dense
    assert dense and np.array_equal(vector, dense.vectors[0])


def test_the_model_follows_the_protocol_and_names_itself(model: MtebEncoder, encoder: OnnxEncoder) -> None:
    assert isinstance(model, EncoderProtocol)
    assert model.mteb_model_meta.name == "trilens/trilens-mini"
    assert model.mteb_model_meta.revision == encoder.fingerprint
    assert MtebEncoder(encoder).mteb_model_meta.name == "trilens/OnnxEncoder"
    with pytest.raises(BadModel, match="there is no model 'missing'"):
        MtebEncoder("missing")

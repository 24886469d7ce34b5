"""Cross-encoders in training: their inputs, objectives and dev metrics, and what becomes of the trained model."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs torch: pip install trilens[train]")
pytest.importorskip("onnx", reason="part of trilens[export]")

from sentence_transformers import CrossEncoder as Original

from tests.train import tiny
from tests.train.runs import recipe_file
from trilens.encode.cross_encoder import CrossEncoder
from trilens.errors import BadInput, BadModel
from trilens.export.describe import ExportOptions
from trilens.export.folder import export
from trilens.train.cross_model import PairReader, cross_model
from trilens.train.cross_objectives import Labels, TeacherScores
from trilens.train.cross_task import cross_metrics, score_pairs
from trilens.train.data.sources import parse_source, read_examples
from trilens.train.gather import alone
from trilens.train.negatives.cross_encoder import open_cross_encoder
from trilens.train.recipe import CrossSection, ModelSection, TeacherSection, read_recipe
from trilens.train.run import train
from trilens.train.teacher import make_teacher

CROSS = CrossSection(objectives=[Labels(kind="group")], max_tokens=24)
PAIRS = [("red fox", "the red fox runs"), ("owl", "a stone"), ("river", "home over the lazy river, under the tree. night")]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, backbone: Path, data: Path) -> Path:
    """The folder of a run that learned which passage has both words of the question."""
    folder = tmp_path_factory.mktemp("trained")
    changes = ["run.steps=60", "run.save_every=20", "dev.every=20", "batch.size=16", "run.learning_rate=3.0e-3"]
    changes += ["cross.objectives=[{kind: group}]", "model.freeze_embeddings=false"]
    train(read_recipe(recipe_file(folder, backbone, data, "cross"), changes), folder / "run")
    return folder / "run"


def test_a_run_learns_to_rank(trained: Path) -> None:
    result = json.loads((trained / "result.json").read_text())
    assert set(result["after"]) == {"cross:nDCG@10", "cross:RR@10", "cross:Hit@1"}
    assert result["after"]["cross:nDCG@10"] > result["before"]["cross:nDCG@10"] + 0.1
    card = (trained / "model" / "README.md").read_text()
    assert "- Heads: none: a cross-encoder" in card and "- Objectives: group" in card


def test_the_trained_model_is_exported_and_scores_like_the_original(trained: Path, tmp_path: Path) -> None:
    texts = tmp_path / "texts.jsonl"
    texts.write_text("".join(json.dumps({"text": passage}) + "\n" for _, passage in PAIRS * 5))
    done = export(trained / "model", tmp_path / "made", ExportOptions(precision="float32"), texts)
    assert done.config.max_tokens == 24
    scores = CrossEncoder(tmp_path / "made").score_pairs(PAIRS)
    original = Original(str(trained / "model"), activation_fn=torch.nn.Identity())
    np.testing.assert_allclose(scores, original.predict(PAIRS), atol=1e-4)
    as_scorer = open_cross_encoder(str(tmp_path / "made"))
    queries, passages = ["red fox", "owl"], [["the red fox runs", "home"], ["a stone"]]
    expected = open_cross_encoder(str(trained / "model")).score(queries, passages)
    for actual, wanted in zip(as_scorer.score(queries, passages), expected, strict=True):
        np.testing.assert_allclose(actual, wanted, atol=1e-5)
    assert as_scorer.name.startswith("made-")
    teacher = make_teacher(TeacherSection(model=str(tmp_path / "made")))
    assert teacher is not None
    np.testing.assert_allclose(teacher(["owl"], [["a stone", "home"]]).numpy()[0, 0], scores[1], atol=1e-5)


def test_a_student_learns_the_scores_of_a_teacher(trained: Path, tmp_path: Path, backbone: Path, data: Path) -> None:
    objectives = "[{kind: kl, temperature: 0.5}, {kind: margin_mse, weight: 0.1, scale: 2}]"
    file = recipe_file(tmp_path, backbone, data, "cross")
    with pytest.raises(BadInput, match="'kl' needs teacher scores; give `teacher`"):
        train(read_recipe(file, [f"cross.objectives={objectives}"]), tmp_path / "without")
    changes = [f"cross.objectives={objectives}", f"teacher.model={trained / 'model'}", "model.layers=1"]
    assert train(read_recipe(file, changes), tmp_path / "run").steps == 4
    config = json.loads((tmp_path / "run" / "model" / "config.json").read_text())
    assert config["num_hidden_layers"] == 1 and config["architectures"] == ["BertForSequenceClassification"]
    again = [f"model.checkpoint={tmp_path / 'run' / 'model'}", "model.backbone=null"]
    assert train(read_recipe(file, again), tmp_path / "again").steps == 4


def test_inputs_and_scores_equal_those_of_sentence_transformers(backbone: Path) -> None:
    model = cross_model(ModelSection(backbone=str(backbone)), CROSS)
    reader = PairReader(model, CROSS)
    original = model.predict(PAIRS, activation_fn=torch.nn.Identity())
    np.testing.assert_allclose(score_pairs(model, reader, PAIRS), original, atol=1e-5)
    long = [("red fox " * 20, "owl " * 40)]
    assert len(reader.read(long).ids[0]) == 24
    assert reader.read(long).types[0].count(1) == 24 - 2 - 12


def test_dev_metrics_by_hand(backbone: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    examples = read_examples([parse_source({"format": "dpr", "path": data})], 0).examples
    positive, other = int(examples.positives(0)[0]), int(examples.negatives(0)[0])
    candidates = [np.array([other, positive])]
    model = cross_model(ModelSection(backbone=str(backbone)), CROSS)
    reader = PairReader(model, CROSS)
    for scores, expected in (([1.0, 2.0], 1.0), ([2.0, 1.0], 0.5), ([1.0, 1.0], 0.5)):
        monkeypatch.setattr("trilens.train.cross_task.score_pairs", lambda *_, scores=scores: np.array(scores))
        values = cross_metrics(model, reader, examples, candidates)
        assert values["cross:RR@10"] == expected and values["cross:Hit@1"] == float(expected == 1)


def test_objectives_weigh_and_scale() -> None:
    scores, teacher = torch.tensor([[1.0, 0.0]]), torch.tensor([[2.0, 1.0]])
    mse = TeacherScores(kind="margin_mse", temperature=0.5, scale=3.0)
    assert mse.loss(scores, teacher, alone).item() == pytest.approx((1 / 0.5 - 3.0) ** 2)
    kl = TeacherScores(kind="kl", scale=1.0)
    assert kl.loss(teacher, teacher, alone).item() == pytest.approx(0, abs=1e-6)


def test_an_ensemble_of_heads_is_a_teacher() -> None:
    """Sums of standard scores per group, from the bundled model."""
    queries, docs = ["delete a folder", "square root"], [["Remove a directory.", "The root of a tree."]] * 2
    teacher = make_teacher(TeacherSection(model="trilens-mini", kind="ensemble", weights={"dense": 2.0, "multi": 1.0}))
    assert teacher is not None
    scores = teacher(queries, docs)
    assert scores.shape == (2, 2) and scores[0, 0] > scores[0, 1]
    np.testing.assert_allclose(scores.sum(1), 0, atol=1e-5)
    assert scores.abs().max() <= 3 + 1e-5
    missing = teacher(["delete a folder"], [["Remove a directory.", "!!!", "The root of a tree."]])
    assert missing.isfinite().all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("model.heads=[dense]", "model.heads is ['dense'], which does not apply to a cross-encoder"),
        ("model.freeze=true", "model.freeze is True, which does not apply"),
        ("objectives=[{kind: info_nce}]", "expected objectives, retromae or cross; give one of them"),
        ("negatives.source=refresh", "a cross-encoder cannot search"),
        ("batch.sub_batch=2", "batch.sub_batch splits in-batch negatives"),
        ("dev.head=dense", "dev.head is 'dense', but a cross-encoder has no heads"),
        ("run.head_learning_rate={dense: 1.0e-3}", "run.head_learning_rate is by head"),
        ("cross.objectives=[{kind: group}, {kind: binary}, {kind: group}]", "expected each kind once"),
        ("cross.objectives=[]", "cross.objectives"),
        ("teacher={model: x, kind: ensemble}", "expected weights by head of an ensemble only"),
    ],
)
def test_recipes_that_do_not_fit(change: str, message: str, tmp_path: Path, backbone: Path, data: Path) -> None:
    with pytest.raises(BadInput) as error:
        read_recipe(recipe_file(tmp_path, backbone, data, "cross"), [change])
    assert message in str(error.value) and "\n" not in str(error.value)


def test_settings_that_the_data_or_model_does_not_allow(tmp_path: Path, backbone: Path, data: Path) -> None:
    def begin(*changes: str) -> Any:
        return train(read_recipe(recipe_file(tmp_path, backbone, data, "cross"), changes), tmp_path / "run")

    for change, kind, message in (
        ("cross.max_tokens=4000", BadInput, f"expected at most {tiny.PLACES}"),
        ("model.backbone=/nowhere", BadModel, "/nowhere is not a folder"),
        ("dev.measure=R@100", BadInput, "expected one of"),
        ("model.layers=9", BadInput, "layers is 9"),
    ):
        with pytest.raises(kind, match=message):
            begin(change)
        for file in (tmp_path / "run").rglob("*"):
            file.unlink()

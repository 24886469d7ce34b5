"""Teachers give the scores of their models."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="training needs torch: pip install trilens[train]")

from sentence_transformers import CrossEncoder

from tests.train import tiny
from tests.train.negatives.test_cross_encoder import model as cross_encoder
from trilens.train.build import build_model
from trilens.train.recipe import TeacherSection
from trilens.train.teacher import make_teacher

QUERIES = ["the red fox", "owl"]
DOCS = [["a stone", "red fox runs"], ["the night owl sleeps", "home"]]


def test_cross_encoder_gives_raw_scores(tmp_path: Path) -> None:
    path = cross_encoder(tmp_path / "model")
    teacher = make_teacher(TeacherSection(model=str(path)))
    assert teacher is not None
    queries, docs = ["cat", "dog"], [["mat", "hat dog"], ["cat", "dog hat"]]
    actual = teacher(queries, docs)
    pairs = [(query, doc) for query, group in zip(queries, docs, strict=True) for doc in group]
    expected = CrossEncoder(str(path)).predict(pairs, convert_to_tensor=True)
    torch.testing.assert_close(torch.sigmoid(actual).flatten(), expected.float().cpu())
    assert actual.min() < 0 or actual.max() > 1


@pytest.mark.parametrize("head", ["dense", "multi"])
def test_bi_encoder_scores_with_one_head(head: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trilens.train.teacher.AT_ONCE", 3)  # so that there are several batches
    multi = {"dim": 8, "normalised": True, "skip_punctuation": True, "skip_special": False}
    model = build_model(str(tiny.bert(tmp_path / "bert")), ["dense", "multi"], "shared", {"multi": multi}, 1)
    model.save_pretrained(str(tmp_path / "model"), create_model_card=False)
    teacher = make_teacher(TeacherSection(model=str(tmp_path / "model"), kind="bi-encoder", head=head))  # type: ignore[arg-type]
    assert teacher is not None
    actual = teacher(QUERIES, DOCS)
    assert actual.shape == (2, 2) and not actual.requires_grad
    for row, (query, group) in enumerate(zip(QUERIES, DOCS, strict=True)):
        for column, doc in enumerate(group):
            alone = teacher([query], [[doc]])
            torch.testing.assert_close(actual[row, column], alone[0, 0], atol=1e-5, rtol=1e-4)
    if head == "dense":
        asked = model.eval().encode_query(QUERIES, convert_to_tensor=True, normalize_embeddings=False)
        said = model.encode_document([doc for group in DOCS for doc in group], convert_to_tensor=True)
        expected = torch.stack([said[2 * index : 2 * index + 2] @ asked[index] for index in range(2)])
        torch.testing.assert_close(actual, expected.cpu(), atol=1e-5, rtol=1e-4)


def test_no_teacher() -> None:
    assert make_teacher(None) is None

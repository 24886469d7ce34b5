"""Objectives of recipes against their losses."""

from functools import partial
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="training needs torch: pip install trilens[train]")

from pydantic import TypeAdapter, ValidationError
from torch import Tensor

from tests.train.toy import ToyModel, texts
from trilens.errors import BadInput
from trilens.train.gather import alone
from trilens.train.grad_cache import encode
from trilens.train.losses import contrastive, distillation, ensemble, late, m3, vdr, xtr
from trilens.train.objectives import AnyObjective, Objective, Objectives, grouped, in_batch_accuracy, own_scores

QUERIES, GROUP = 3, 2


def objective(**settings: Any) -> Objective:
    actual: Objective = TypeAdapter(AnyObjective).validate_python(settings)
    return actual


@pytest.fixture
def sides() -> list[dict[str, Tensor]]:
    return [texts(QUERIES, 4, 1), texts(QUERIES * GROUP, 6, 2)]


def test_objectives_equal_their_losses(sides: list[dict[str, Tensor]]) -> None:
    model = ToyModel()
    asked, docs = encode(model, sides[0]), grouped(encode(model, sides[1]), QUERIES)
    three = [
        m3.M3Outputs(side["sentence_embedding"], side["lexical"], side["multi"], side["multi_mask"]) for side in (asked, docs)
    ]
    tokens = (asked["multi"], docs["multi"], asked["multi_mask"], docs["multi_mask"])
    wanted = {
        "info_nce": contrastive.info_nce(asked["sentence_embedding"], docs["sentence_embedding"], temperature=0.1),
        "vdr": vdr.vdr(asked["sparse"], docs["sparse"], asked["bags"], docs["bags"], top=3, semi_parametric=True),
        "late": late.late_interaction(*tokens),
        "m3": m3.m3(*three, distil=False),
    }
    settings: list[dict[str, Any]] = [
        {"kind": "info_nce", "temperature": 0.1},
        {"kind": "vdr", "top": 3, "semi_parametric": True, "weight": 0.5},
        {"kind": "late"},
        {"kind": "m3", "distil_after": 5},
    ]
    actual = Objectives(model, [objective(**setting) for setting in settings])(sides)
    assert list(actual) == list(wanted)
    for name, weight in zip(wanted, (1, 0.5, 1, 1), strict=True):
        torch.testing.assert_close(actual[name], weight * wanted[name])


def test_late_interaction_scores(sides: list[dict[str, Tensor]]) -> None:
    model = ToyModel()
    asked, docs = encode(model, sides[0]), grouped(encode(model, sides[1]), QUERIES)
    tokens = (asked["multi"], docs["multi"], asked["multi_mask"], docs["multi_mask"])
    for score, settings in (
        (late.mean_maxsim, {"mean": True}),
        (partial(xtr.xtr, top=2), {"top": 2}),
        (partial(xtr.imputed, top=2), {"top": 2, "imputed": True}),
    ):
        actual = Objectives(model, [objective(kind="late", **settings)])(sides)["late"]
        torch.testing.assert_close(actual, late.late_interaction(*tokens, score=score))
    with pytest.raises(ValidationError, match="imputed is given without top"):
        objective(kind="late", imputed=True)


def test_sub_batches_change_neither_terms_nor_gradients(sides: list[dict[str, Tensor]]) -> None:
    chosen = [objective(kind="info_nce"), objective(kind="late", top=4), objective(kind="vdr", top=3)]
    chosen.append(objective(kind="ensemble", teachers={"dense": 1.0}, students=["lexical", "multi"]))
    results = []
    for size in (None, 2):
        model = ToyModel()
        parts = Objectives(model, chosen, sub_batch=size)(sides)
        torch.stack(list(parts.values())).sum().backward()
        results.append(({name: part.item() for name, part in parts.items()}, [p.grad for p in model.parameters()]))
    (whole, gradients), (cached, again) = results
    assert whole == pytest.approx(cached)
    for one, other in zip(gradients, again, strict=True):
        torch.testing.assert_close(one, other)


def test_distillation_starts_after_its_step(sides: list[dict[str, Tensor]]) -> None:
    objectives = Objectives(ToyModel(), [objective(kind="m3", distil_after=5)])
    objectives.step = 5
    before = objectives(sides)["m3"].item()
    objectives.step = 6
    assert objectives(sides)["m3"].item() != before


def test_ensemble_starts_after_its_step(sides: list[dict[str, Tensor]]) -> None:
    model = ToyModel()
    asked, docs = encode(model, sides[0]), grouped(encode(model, sides[1]), QUERIES)
    every = [
        ensemble.HeadOutputs(side["sentence_embedding"], side["lexical"], side["sparse"], side["multi"], side["multi_mask"])
        for side in (asked, docs)
    ]
    chosen: dict[str, Any] = {"teachers": {"dense": 1.0, "multi": 0.5}, "students": ["sparse", "multi"], "temperature": 0.5}
    objectives = Objectives(model, [objective(kind="ensemble", after=5, **chosen)])
    assert objectives.heads == {"dense", "multi", "sparse"} and objectives.trained == {"multi", "sparse"}
    objectives.step = 5
    before = objectives(sides)["ensemble"]
    assert before.item() == 0 and before.requires_grad
    objectives.step = 6
    torch.testing.assert_close(objectives(sides)["ensemble"], ensemble.ensemble(*every, **chosen))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"teachers": {}}, "teachers"),
        ({"teachers": {"dense": 0}}, "teachers"),
        ({"teachers": {"colbert": 1}}, "teachers"),
        ({"students": []}, "students"),
        ({"students": ["multi", "multi"]}, "expected each head once"),
    ],
)
def test_invalid_ensembles(changes: dict[str, Any], message: str) -> None:
    usual: dict[str, Any] = {"kind": "ensemble", "teachers": {"dense": 1.0}, "students": ["multi"]}
    with pytest.raises(ValidationError, match=message):
        objective(**usual | changes)


@pytest.mark.parametrize("head", ["dense", "sparse", "lexical", "multi"])
def test_distillation_compares_each_query_with_its_own_docs(sides: list[dict[str, Tensor]], head: str) -> None:
    model = ToyModel()
    teacher = torch.tensor([[3.0, 1.0], [2.0, 0.5], [1.0, 0.0]])
    asked, docs = encode(model, sides[0]), grouped(encode(model, sides[1]), QUERIES)
    scores = own_scores(head, asked, docs)  # type: ignore[arg-type]
    name = {"dense": "sentence_embedding"}.get(head, head)
    if head == "multi":
        by_hand = (asked["multi"][1] @ docs["multi"][1, 1][docs["multi_mask"][1, 1]].T).amax(1).sum()
    else:
        by_hand = asked[name][1] @ docs[name][1, 1]
    torch.testing.assert_close(scores[1, 1], by_hand)
    actual = Objectives(model, [objective(kind="kl", head=head, scale=2.0), objective(kind="margin_mse", head=head)])(
        sides, teacher
    )
    torch.testing.assert_close(actual["kl"], distillation.kl_distillation(scores, 2 * teacher))
    torch.testing.assert_close(actual["margin_mse"], distillation.margin_mse(scores, teacher))


def test_distillation_needs_a_teacher(sides: list[dict[str, Tensor]]) -> None:
    with pytest.raises(BadInput, match="needs teacher scores"):
        Objectives(ToyModel(), [objective(kind="kl")])(sides)


def test_repeated_kinds_are_numbered() -> None:
    both = Objectives(ToyModel(), [objective(kind="info_nce"), objective(kind="info_nce", head="lexical")])
    assert both.names == ["info_nce_1", "info_nce_2"]
    assert both.heads == {"dense", "lexical"}


def test_in_batch_accuracy() -> None:
    """The second query prefers the negative of the first; as token vectors, also its own positive over the other."""
    queries = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    docs = torch.tensor([[[0.9, 0.0], [0.0, 0.9]], [[0.0, 0.8], [0.5, 0.5]]])
    vectors = {"sentence_embedding": queries}, {"sentence_embedding": docs}
    assert in_batch_accuracy("dense", *vectors, alone) == 0.5
    tokens = torch.stack([docs, torch.tensor([[[0.0, 0.1]] * 2, [[0.2, 0.1]] * 2])], 2)  # two tokens of each doc
    kept = torch.tensor([[[True, True], [False, True]], [[True, True], [True, True]]])
    sides = {"multi": queries[:, None], "multi_mask": torch.ones(2, 1)}, {"multi": tokens, "multi_mask": kept}
    assert in_batch_accuracy("multi", *sides, alone) == 1.0  # without the token that the second query preferred


def test_accuracies_are_those_of_the_trained_heads(sides: list[dict[str, Tensor]]) -> None:
    model = ToyModel()
    loss = Objectives(model, [objective(kind="info_nce"), objective(kind="late")])
    loss(sides)
    asked, docs = encode(model, sides[0]), grouped(encode(model, sides[1]), QUERIES)
    assert loss.accuracies == {f"{head}_accuracy": in_batch_accuracy(head, asked, docs, alone) for head in ("dense", "multi")}

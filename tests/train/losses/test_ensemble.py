"""Distillation from an ensemble of heads against numpy loops."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs torch: pip install trilens[train]")

from torch import Tensor

from tests.train import plain
from tests.train.losses.drawn import both_sides
from trilens.errors import BadInput, TrainingFailed
from trilens.train.losses.ensemble import HeadOutputs, ensemble

CASES: list[dict[str, Any]] = [
    {"teachers": {"dense": 1.0, "multi": 1.0}, "students": ["sparse", "lexical", "multi"], "temperature": 0.5},
    {"teachers": {"sparse": 2.0}, "students": ["dense"], "temperature": 0.05},
    {"teachers": {"dense": 0.3, "lexical": 4.0}, "students": ["dense", "lexical"]},
]


def drawn(seed: int, queries: int = 3, group: int = 2) -> tuple[HeadOutputs, HeadOutputs]:
    return both_sides(HeadOutputs, (4, 9, 8), seed, queries, group)


def scores_by_hand(queries: HeadOutputs, docs: HeadOutputs) -> dict[str, plain.Floats]:
    asked = HeadOutputs(*(tensor.detach().numpy() for tensor in queries if tensor is not None))
    given: Any = HeadOutputs(*(np.array(plain.columns(tensor.detach().numpy())) for tensor in docs if tensor is not None))

    def table(score: Callable[[Any, Any], float]) -> plain.Floats:
        return np.array([[score(q, d) for d in range(len(given.dense))] for q in range(len(asked.dense))])  # type: ignore[arg-type]

    def product(head: str) -> Callable[[Any, Any], float]:
        return lambda q, d: getattr(asked, head)[q] @ getattr(given, head)[d]

    def late(q: Any, d: Any) -> float:
        return plain.maxsim(asked.multi[q], given.multi[d], asked.mask[q], given.mask[d])  # type: ignore[index]

    return {head: table(product(head)) for head in ("dense", "lexical", "sparse")} | {"multi": table(late)}


def target_by_hand(scores: dict[str, plain.Floats], teachers: dict[str, float]) -> plain.Floats:
    rows = []
    for query in range(len(scores["dense"])):
        total = np.zeros(scores["dense"].shape[1])
        for head, weight in teachers.items():
            row = scores[head][query]
            total += weight * (row - row.mean()) / np.sqrt(((row - row.mean()) ** 2).mean())
        rows.append(plain.softmax(total))
    return np.array(rows)


def by_hand(scores: dict[str, plain.Floats], target: plain.Floats, students: list[str], temperature: float = 1.0) -> float:
    total = 0.0
    for head in students:
        rows = [plain.softmax(row / temperature) for row in scores[head]]
        total += float(np.mean([(t * (np.log(t) - np.log(s))).sum() for t, s in zip(target, rows, strict=True)]))
    return total


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("group", [1, 3])
def test_equals_numpy(case: dict[str, Any], group: int) -> None:
    queries, docs = drawn(1, group=group)
    scores = scores_by_hand(queries, docs)
    target = target_by_hand(scores, case["teachers"])
    expected = by_hand(scores, target, case["students"], case.get("temperature", 1.0))
    assert ensemble(queries, docs, **case).item() == pytest.approx(expected, rel=1e-9)


def test_gradcheck_of_a_student() -> None:
    queries, docs = drawn(2)

    def distance(*values: Tensor) -> Tensor:
        asked, given = queries._replace(multi=values[0], sparse=values[1]), docs._replace(multi=values[2], sparse=values[3])
        return ensemble(asked, given, teachers={"dense": 1.0}, students=["multi", "sparse"], temperature=0.5)

    assert torch.autograd.gradcheck(distance, (queries.multi, queries.sparse, docs.multi, docs.sparse))


@pytest.mark.parametrize("head", ["multi", "lexical"])
def test_gradient_with_a_fixed_target(head: str) -> None:
    """Also for a student that is one of the teachers."""
    queries, docs = drawn(3)
    case: Any = {"teachers": {"dense": 1.0, "multi": 1.0}, "students": ["multi", "lexical"], "temperature": 0.5}
    target = target_by_hand(scores_by_hand(queries, docs), case["teachers"])
    values = getattr(docs, head)
    actual = torch.autograd.grad(ensemble(queries, docs, **case), values)[0]
    numeric = torch.zeros_like(values)
    for index in np.ndindex(*values.shape):
        with torch.no_grad():
            before = values[index].item()
            sides = []
            for step in (1e-6, -1e-6):
                values[index] = before + step
                sides.append(by_hand(scores_by_hand(queries, docs), target, case["students"], 0.5))
            values[index] = before
        numeric[index] = (sides[0] - sides[1]) / 2e-6
    np.testing.assert_allclose(actual, numeric.detach(), atol=1e-7)


def test_teachers_get_no_gradient() -> None:
    queries, docs = drawn(4)
    value = ensemble(queries, docs, teachers={"dense": 1.0}, students=["lexical"])
    assert torch.autograd.grad(value, (queries.dense, docs.dense), allow_unused=True) == (None, None)


def test_docs_without_tokens_are_left_out_of_multi() -> None:
    queries, docs = drawn(5, group=2)
    assert docs.mask is not None
    docs.mask[1, 1] = False
    case: Any = {"teachers": {"dense": 1.0, "multi": 1.0}, "students": ["sparse", "multi"]}
    value = ensemble(queries, docs, **case)
    values = (queries.sparse, queries.multi, docs.sparse, docs.multi)
    assert all(gradient.isfinite().all() for gradient in torch.autograd.grad(value, values))
    docs.mask[1, 1, 0] = True
    scores = {head: np.delete(actual, 4, axis=1) for head, actual in scores_by_hand(queries, docs).items()}  # its column
    expected = by_hand(scores, target_by_hand(scores, case["teachers"]), case["students"])
    assert value.item() == pytest.approx(expected, rel=1e-9)


def test_teacher_with_equal_scores_adds_nothing() -> None:
    queries, docs = drawn(6)
    assert queries.lexical is not None
    blank = queries._replace(lexical=torch.zeros_like(queries.lexical))
    both = ensemble(blank, docs, teachers={"dense": 1.0, "lexical": 5.0}, students=["sparse"])
    assert both.item() == pytest.approx(ensemble(blank, docs, teachers={"dense": 1.0}, students=["sparse"]).item(), rel=1e-9)


def test_missing_outputs() -> None:
    queries, docs = drawn(7)
    case: Any = {"teachers": {"dense": 1.0}, "students": ["multi"]}
    with pytest.raises(BadInput, match="the head 'multi' is a teacher or student; expected its outputs for queries and docs"):
        ensemble(queries._replace(multi=None), docs, **case)
    with pytest.raises(BadInput, match="expected its token masks"):
        ensemble(queries._replace(mask=None), docs, **case)
    with pytest.raises(BadInput, match="temperature is 0"):
        ensemble(queries, docs, **case, temperature=0)
    assert queries.dense is not None
    with pytest.raises(TrainingFailed, match="ensemble is nan"):
        ensemble(queries._replace(dense=queries.dense * torch.nan), docs, **case)


def test_half_precision_is_summed_in_float32() -> None:
    rounded = [HeadOutputs(*(t.bfloat16() if t.is_floating_point() else t for t in side)) for side in drawn(8)]  # type: ignore[union-attr]
    exact = [HeadOutputs(*(t.double() if t.is_floating_point() else t for t in side)) for side in rounded]  # type: ignore[union-attr]
    assert ensemble(*rounded, **CASES[0]).item() == pytest.approx(ensemble(*exact, **CASES[0]).item(), rel=1e-4)

"""M3's joint loss and its self-distillation against numpy loops."""

from collections.abc import Callable

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs torch: pip install trilens[train]")

from torch import Tensor

from tests.train import plain
from tests.train.losses.drawn import both_sides
from trilens.errors import BadInput, TrainingFailed
from trilens.train.losses.m3 import M3Outputs, M3Weights, distillation_active, m3

PUBLISHED_ENSEMBLE, PUBLISHED_LOSSES = M3Weights(1, 0.3, 1), M3Weights(1, 0.1, 1)


def drawn(seed: int, queries: int = 3, group: int = 2) -> tuple[M3Outputs, M3Outputs]:
    return both_sides(M3Outputs, (4, 9), seed, queries, group)


def scores_by_hand(queries: M3Outputs, docs: M3Outputs, temperature: float) -> list[plain.Floats]:
    asked = M3Outputs(*(tensor.detach().numpy() for tensor in queries))
    given = M3Outputs(*(np.array(plain.columns(tensor.detach().numpy())) for tensor in docs))

    def table(score: Callable[[int, int], float]) -> plain.Floats:
        return np.array([[score(q, d) for d in range(len(given.dense))] for q in range(len(asked.dense))]) / temperature

    return [
        table(lambda q, d: asked.dense[q] @ given.dense[d]),
        table(lambda q, d: asked.lexical[q] @ given.lexical[d]),
        table(lambda q, d: plain.maxsim(asked.multi[q], given.multi[d], asked.mask[q], given.mask[d]) / asked.mask[q].sum()),
    ]


def by_hand(
    scores: list[plain.Floats],
    ensemble: M3Weights = PUBLISHED_ENSEMBLE,
    weights: M3Weights = PUBLISHED_LOSSES,
    teacher: plain.Floats | None = None,
) -> float:
    """With `distil`, the mean of the direct loss and the distance to the ensemble."""
    together = joint(scores, ensemble)
    direct = plain.contrast(together) + sum(
        weight * plain.contrast(score) for weight, score in zip(weights, scores, strict=True)
    )
    if teacher is None:
        return direct / 4
    distance = 0.0
    for weight, score in zip(weights, scores, strict=True):
        rows = [-(plain.softmax(t) * np.log(plain.softmax(s))).sum() for t, s in zip(teacher, score, strict=True)]
        distance += weight * float(np.mean(rows))
    return (direct / 4 + distance / 3) / 2


def joint(scores: list[plain.Floats], ensemble: M3Weights = PUBLISHED_ENSEMBLE) -> plain.Floats:
    together: plain.Floats = ensemble[0] * scores[0] + ensemble[1] * scores[1] + ensemble[2] * scores[2]
    return together


@pytest.mark.parametrize("group", [1, 3])
@pytest.mark.parametrize("distil", [False, True])
def test_equals_numpy(group: int, distil: bool) -> None:
    queries, docs = drawn(1, group=group)
    scores = scores_by_hand(queries, docs, temperature=0.02)
    expected = by_hand(scores, teacher=joint(scores) if distil else None)
    assert m3(queries, docs, distil=distil).item() == pytest.approx(expected, rel=1e-9)


def test_other_weights_equal_numpy() -> None:
    queries, docs = drawn(2)
    ensemble, weights = M3Weights(0.5, 2.0, 0.0), M3Weights(0.2, 0.7, 1.5)
    scores = scores_by_hand(queries, docs, temperature=0.5)
    actual = m3(queries, docs, distil=True, temperature=0.5, ensemble=ensemble, weights=weights)
    assert actual.item() == pytest.approx(by_hand(scores, ensemble, weights, joint(scores, ensemble)), rel=1e-9)


def test_gradcheck() -> None:
    queries, docs = drawn(3)

    def joint_loss(*values: Tensor) -> Tensor:
        return m3(
            M3Outputs(values[0], values[1], values[2], queries.mask),
            M3Outputs(values[3], values[4], values[5], docs.mask),
            temperature=0.5,
        )

    assert torch.autograd.gradcheck(joint_loss, (*queries[:3], *docs[:3]))


@pytest.mark.parametrize("head", range(3))
def test_distillation_gradient_with_a_fixed_teacher(head: int) -> None:
    queries, docs = drawn(4)
    teacher = joint(scores_by_hand(queries, docs, temperature=0.5))
    values = docs[head]
    actual = torch.autograd.grad(m3(queries, docs, distil=True, temperature=0.5), values)[0]
    numeric = torch.zeros_like(values)
    for index in np.ndindex(*values.shape):
        with torch.no_grad():
            before = values[index].item()
            sides = []
            for step in (1e-6, -1e-6):
                values[index] = before + step
                sides.append(by_hand(scores_by_hand(queries, docs, temperature=0.5), teacher=teacher))
            values[index] = before
        numeric[index] = (sides[0] - sides[1]) / 2e-6
    np.testing.assert_allclose(actual, numeric.detach(), atol=1e-7)


def test_distillation_begins_after_the_warm_up() -> None:
    assert [distillation_active(step, 2) for step in range(5)] == [False, False, False, True, True]
    assert not any(distillation_active(step, None) for step in range(5))
    assert distillation_active(0, -1)


def test_negatives_without_tokens_have_a_finite_loss() -> None:
    queries, docs = drawn(5)
    docs.mask[1, 1] = False
    values = [*queries[:3], *docs[:3]]
    for distil in (False, True):
        assert all(grad.isfinite().all() for grad in torch.autograd.grad(m3(queries, docs, distil=distil), values))


def test_invalid_batches() -> None:
    queries, docs = drawn(6)
    with pytest.raises(BadInput, match="expected a positive for each"):
        m3(queries, M3Outputs(*(tensor[:, :0] for tensor in docs)))
    with pytest.raises(BadInput, match="9 dimensions, docs 8"):
        m3(queries, docs._replace(lexical=docs.lexical[..., :8]))
    with pytest.raises(BadInput, match="the positive of query 0 has no unmasked token"):
        m3(queries, docs._replace(mask=torch.zeros_like(docs.mask)))
    with pytest.raises(TrainingFailed, match="m3 is nan"):
        m3(queries._replace(dense=queries.dense * torch.nan), docs)


def test_half_precision_is_summed_in_float32() -> None:
    rounded = [M3Outputs(*(t.bfloat16() if t.is_floating_point() else t for t in side)) for side in drawn(7)]
    exact = [M3Outputs(*(t.double() if t.is_floating_point() else t for t in side)) for side in rounded]
    assert m3(*rounded).item() == pytest.approx(m3(*exact).item(), rel=1e-5)

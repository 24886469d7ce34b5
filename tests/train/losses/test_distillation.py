"""KL and MarginMSE against numpy, and edge cases."""

from collections.abc import Callable

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs torch: pip install trilens[train]")

from torch import Tensor

from tests.train import plain
from trilens.errors import BadInput, TrainingFailed
from trilens.train.losses.distillation import kl_distillation, margin_mse

Distil = Callable[..., Tensor]


def drawn(seed: int, group: int = 4) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    student, teacher = (3 * torch.randn(3, group, generator=generator, dtype=torch.float64) for _ in range(2))
    return student.requires_grad_(), teacher


@pytest.mark.parametrize("group", [2, 5])
def test_kl_equals_numpy(group: int) -> None:
    student, teacher = drawn(1, group)
    far = []
    for ours, theirs in zip(student.detach().numpy() / 0.5, teacher.numpy(), strict=True):
        wanted, given = plain.softmax(theirs), plain.softmax(ours)
        far.append(sum(w * (np.log(w) - np.log(g)) for w, g in zip(wanted, given, strict=True)))
    assert kl_distillation(student, teacher, temperature=0.5).item() == pytest.approx(np.mean(far), abs=1e-12)


@pytest.mark.parametrize("group", [2, 5])
def test_margin_mse_equals_numpy(group: int) -> None:
    student, teacher = drawn(2, group)
    errors = [
        ((ours[0] - ours[index]) - (theirs[0] - theirs[index])) ** 2
        for ours, theirs in zip(student.tolist(), teacher.tolist(), strict=True)
        for index in range(1, group)
    ]
    assert margin_mse(student, teacher).item() == pytest.approx(np.mean(errors), abs=1e-12)


@pytest.mark.parametrize("distil", [kl_distillation, margin_mse])
def test_gradcheck(distil: Distil) -> None:
    student, teacher = drawn(3)
    assert torch.autograd.gradcheck(lambda scores: distil(scores, teacher), (student,))


@pytest.mark.parametrize("distil", [kl_distillation, margin_mse])
def test_equal_scores_have_zero_loss(distil: Distil) -> None:
    _, teacher = drawn(4)
    assert distil(teacher + 5, teacher).item() == pytest.approx(0, abs=1e-12)  # a constant offset does not matter


@pytest.mark.parametrize("distil", [kl_distillation, margin_mse])
def test_teacher_gets_no_gradient(distil: Distil) -> None:
    student, teacher = drawn(5)
    teacher.requires_grad_()
    distil(student, teacher).backward()
    assert teacher.grad is None


@pytest.mark.parametrize("distil", [kl_distillation, margin_mse])
def test_invalid_scores(distil: Distil) -> None:
    student, teacher = drawn(6)
    with pytest.raises(BadInput, match="expected the same shape"):
        distil(student, teacher[:, :2])
    with pytest.raises(BadInput, match="two docs per query"):
        distil(student[:, :1], teacher[:, :1])
    with pytest.raises(BadInput, match="at least one query"):
        distil(student[:0], teacher[:0])
    with pytest.raises(BadInput, match="teacher scores are not finite"):
        distil(student, teacher * torch.nan)
    with pytest.raises(TrainingFailed, match="is nan"):
        distil(student * torch.nan, teacher)

"""Distillation from a teacher's scores of the same groups of docs."""

from torch import Tensor
from torch.nn.functional import kl_div, log_softmax

from trilens.train.gather import Gather, alone
from trilens.train.losses.validation import loss, require_scores, require_temperature


@loss
def kl_distillation(student: Tensor, teacher: Tensor, *, temperature: float = 1.0, gather: Gather = alone) -> Tensor:
    """KL(teacher ‖ student) of the softmaxes over each group, averaged over queries.

    Scores are (queries, group). `temperature` divides the student's scores only: scale the teacher's scores beforehand.
    """
    require_scores(student, teacher)
    require_temperature(temperature)
    divergence = kl_div(
        log_softmax(student / temperature, 1), log_softmax(teacher.detach(), 1), reduction="none", log_target=True
    )
    return gather(divergence.sum(1)).mean()


@loss
def margin_mse(student: Tensor, teacher: Tensor, *, gather: Gather = alone) -> Tensor:
    """Mean squared error of the score margins between positive and negatives (MarginMSE).

    Scores are (queries, group), positive first. Unlike scores, margins are comparable between models of different ranges.
    """
    require_scores(student, teacher)
    return gather((_margins(student) - _margins(teacher.detach())).square()).mean()


def _margins(scores: Tensor) -> Tensor:
    return scores[:, :1] - scores[:, 1:]

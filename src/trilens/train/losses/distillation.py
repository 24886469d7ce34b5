"""Learning from a teacher's scores of the same groups of docs: a cross-encoder's, or a larger model's."""

from torch import Tensor
from torch.nn.functional import kl_div, log_softmax

from trilens.train.gather import Gather, alone
from trilens.train.losses.rules import loss, require_scores, require_temperature


@loss
def kl_distillation(student: Tensor, teacher: Tensor, *, temperature: float = 1.0, gather: Gather = alone) -> Tensor:
    """How far the student's softmax over each group is from the teacher's: KL(teacher ‖ student), the mean over queries.

    Scores are (queries, group). `temperature` divides the student's only: bring the teacher's to the scale to be taught.
    """
    require_scores(student, teacher)
    require_temperature(temperature)
    far = kl_div(log_softmax(student / temperature, 1), log_softmax(teacher.detach(), 1), reduction="none", log_target=True)
    return gather(far.sum(1)).mean()


@loss
def margin_mse(student: Tensor, teacher: Tensor, *, gather: Gather = alone) -> Tensor:
    """How well the student's margins fit: squared error of positive less negative, the mean over all negatives.

    Scores are (queries, group), positive first. Margins, unlike scores, mean the same in models of different ranges.
    """
    require_scores(student, teacher)
    return gather((_margins(student) - _margins(teacher.detach())).square()).mean()


def _margins(scores: Tensor) -> Tensor:
    return scores[:, :1] - scores[:, 1:]

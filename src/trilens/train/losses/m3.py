"""M3: dense, lexical and multi-vector heads trained jointly, with self-distillation from their ensemble."""

from typing import NamedTuple

from torch import Tensor
from torch.nn.functional import log_softmax, softmax

from trilens.train.gather import Gather, alone
from trilens.train.losses.contrastive import contrast, in_columns, products
from trilens.train.losses.late import mean_maxsim
from trilens.train.losses.validation import loss, require_batch, require_temperature, require_tokens


class M3Outputs(NamedTuple):
    """Outputs of the three heads for a batch of texts; docs have a group axis after the first.

    `dense` (texts, dims), `lexical` (texts, terms), `multi` (texts, tokens, dims) and its token `mask` (texts, tokens).
    """

    dense: Tensor
    lexical: Tensor
    multi: Tensor
    mask: Tensor


class M3Weights(NamedTuple):
    """One weight per head."""

    dense: float
    lexical: float
    multi: float


ENSEMBLE = M3Weights(1.0, 0.3, 1.0)  # weights of scores in BGE-M3's code; the paper has 1 for all
LOSSES = M3Weights(1.0, 0.1, 1.0)  # weights of losses, likewise


@loss
def m3(
    queries: M3Outputs,
    docs: M3Outputs,
    *,
    distil: bool = False,
    temperature: float = 0.02,
    ensemble: M3Weights = ENSEMBLE,
    weights: M3Weights = LOSSES,
    gather: Gather = alone,
) -> Tensor:
    """A quarter of the InfoNCE losses of the heads and their ensemble; with `distil`, the mean of that and the distillation.

    The distillation term is a third of the weighted sum of the heads' cross-entropies to the ensemble's softmax over all docs
    of the batch; the ensemble gets no gradient from it. The default temperature is BGE-M3's; all three scores share it,
    although lexical scores are unbounded.
    """
    _require(queries, docs)
    require_temperature(temperature)
    scores = [score / temperature for score in head_scores(_gathered(queries, gather, 0), _gathered(docs, gather, 1))]
    ensemble_scores = sum(weight * score for weight, score in zip(ensemble, scores, strict=True))
    direct = contrast(ensemble_scores) + sum(weight * contrast(score) for weight, score in zip(weights, scores, strict=True))
    if not distil:
        return direct / 4
    distance = sum(weight * soft_cross_entropy(score, ensemble_scores) for weight, score in zip(weights, scores, strict=True))
    return (direct / 4 + distance / 3) / 2


def distillation_active(step: int, after: int | None) -> bool:
    """Whether self-distillation is active: before warm-up ends, the heads would only learn noise from each other.

    `after`: the last step of the warm-up; None disables self-distillation.
    """
    return after is not None and step > after


def head_scores(queries: M3Outputs, docs: M3Outputs) -> tuple[Tensor, Tensor, Tensor]:
    """Scores of all queries against all docs by each head (queries, queries · group), positives first."""
    return (
        products(queries.dense, docs.dense),
        products(queries.lexical, docs.lexical),
        mean_maxsim(queries.multi, in_columns(docs.multi), queries.mask, in_columns(docs.mask)),
    )


def soft_cross_entropy(student: Tensor, teacher: Tensor) -> Tensor:
    """Cross-entropy between the softmaxes of teacher and student, averaged over rows; the teacher gets no gradient."""
    return -(softmax(teacher.detach(), 1) * log_softmax(student, 1)).sum(1).mean()


def _gathered(outputs: M3Outputs, gather: Gather, group_axes: int) -> M3Outputs:
    token_axis = 1 + group_axes
    dense, lexical = gather(outputs.dense), gather(outputs.lexical)
    return M3Outputs(dense, lexical, gather(outputs.multi, token_axis), gather(outputs.mask, token_axis))


def _require(queries: M3Outputs, docs: M3Outputs) -> None:
    require_batch(queries.dense, docs.dense)
    require_batch(queries.lexical, docs.lexical)
    require_tokens(queries.multi, queries.mask, docs.multi, docs.mask)

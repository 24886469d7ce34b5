"""M3: dense, lexical and multi-vector scores trained together, and from their own ensemble."""

from typing import NamedTuple

from torch import Tensor
from torch.nn.functional import log_softmax, softmax

from trilens.train.gather import Gather, alone
from trilens.train.losses.contrastive import contrast, in_columns, products
from trilens.train.losses.late import mean_maxsim
from trilens.train.losses.rules import loss, require_batch, require_temperature, require_tokens


class Heads(NamedTuple):
    """What three heads make of texts; docs have an axis for the group after the first.

    `dense` (texts, dims), `lexical` (texts, terms), `multi` (texts, tokens, dims) and `mask` (texts, tokens) of its tokens.
    """

    dense: Tensor
    lexical: Tensor
    multi: Tensor
    mask: Tensor


class Weights(NamedTuple):
    """One number per head."""

    dense: float
    lexical: float
    multi: float


ENSEMBLE = Weights(1.0, 0.3, 1.0)  # of scores; BGE-M3's code, where its paper says 1 for all
LOSSES = Weights(1.0, 0.1, 1.0)  # likewise


@loss
def m3(
    queries: Heads,
    docs: Heads,
    *,
    distil: bool = False,
    temperature: float = 0.02,
    ensemble: Weights = ENSEMBLE,
    weights: Weights = LOSSES,
    gather: Gather = alone,
) -> Tensor:
    """InfoNCE of each head and of their ensemble, by 4; with `distil` half of that and of the heads' distance to the ensemble.

    The distance is the cross-entropy of a head's softmax over all docs of the batch to that of the ensemble, which gets no
    gradient from it, by 3. The default temperature is BGE-M3's; all three scores share it, though lexical ones are not bounded.
    """
    _require(queries, docs)
    require_temperature(temperature)
    scores = [score / temperature for score in head_scores(_gathered(queries, gather, 0), _gathered(docs, gather, 1))]
    together = sum(weight * score for weight, score in zip(ensemble, scores, strict=True))
    direct = contrast(together) + sum(weight * contrast(score) for weight, score in zip(weights, scores, strict=True))
    if not distil:
        return direct / 4
    distance = sum(weight * soften(score, together) for weight, score in zip(weights, scores, strict=True))
    return (direct / 4 + distance / 3) / 2


def distils(step: int, after: int | None) -> bool:
    """Whether self-distillation has started: heads that know nothing yet would only teach each other noise.

    `after`: the last step of the warm-up; None for no self-distillation.
    """
    return after is not None and step > after


def head_scores(queries: Heads, docs: Heads) -> tuple[Tensor, Tensor, Tensor]:
    """Scores of all queries against all docs by each head (queries, queries · group), positives first."""
    return (
        products(queries.dense, docs.dense),
        products(queries.lexical, docs.lexical),
        mean_maxsim(queries.multi, in_columns(docs.multi), queries.mask, in_columns(docs.mask)),
    )


def soften(student: Tensor, teacher: Tensor) -> Tensor:
    """Cross-entropy of the student's softmax to the teacher's, the mean over rows; the teacher gets no gradient."""
    return -(softmax(teacher.detach(), 1) * log_softmax(student, 1)).sum(1).mean()


def _gathered(heads: Heads, gather: Gather, groups: int) -> Heads:
    tokens = 1 + groups
    return Heads(gather(heads.dense), gather(heads.lexical), gather(heads.multi, tokens), gather(heads.mask, tokens))


def _require(queries: Heads, docs: Heads) -> None:
    require_batch(queries.dense, docs.dense)
    require_batch(queries.lexical, docs.lexical)
    require_tokens(queries.multi, queries.mask, docs.multi, docs.mask)

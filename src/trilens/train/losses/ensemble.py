"""Self-distillation from an ensemble of any heads: what several of them agree on teaches each of them, or others."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import kl_div, log_softmax

from trilens.encode.folder import Head
from trilens.errors import BadInput
from trilens.train.gather import Gather, alone
from trilens.train.losses.contrastive import in_columns, products
from trilens.train.losses.late import maxsim
from trilens.train.losses.rules import loss, require_batch, require_temperature, require_tokens


class Heads(NamedTuple):
    """What heads make of texts, None where they are not asked; docs have an axis for the group after the first.

    `dense` (texts, dims), `lexical` and `sparse` (texts, terms), `multi` (texts, tokens, dims) and `mask` (texts, tokens).
    """

    dense: Tensor | None = None
    lexical: Tensor | None = None
    sparse: Tensor | None = None
    multi: Tensor | None = None
    mask: Tensor | None = None


@loss
def ensemble(
    queries: Heads,
    docs: Heads,
    *,
    teachers: Mapping[Head, float],
    students: Sequence[Head],
    temperature: float = 1.0,
    gather: Gather = alone,
) -> Tensor:
    """KL(teachers ‖ student) of softmaxes over all docs of the batch, the mean over queries, added up over students.

    Each teacher's scores of a query are brought to mean 0 and deviation 1, since ranges of heads differ, and added up by the
    weights of `teachers`: weights of 1 make a soft target, larger ones a sharper. Teachers get no gradient. `temperature`
    divides the scores of students as they are; students of different ranges want objectives of their own.

    A doc without tokens has no score by `multi`; where that takes part, such docs are left out of all scores.
    """
    require_temperature(temperature)
    heads = sorted({*teachers, *students})
    scores = {head: _scores(head, queries, docs, gather) for head in heads}
    if "multi" in scores and docs.mask is not None:
        there = in_columns(gather(docs.mask, ragged=2)).bool().any(1)
        scores = {head: found[:, there] for head, found in scores.items()}
    target = log_softmax(sum_of_teachers(scores, teachers), 1)
    far = [kl_div(log_softmax(scores[head] / temperature, 1), target, reduction="none", log_target=True) for head in students]
    return torch.stack([each.sum(1).mean() for each in far]).sum()


def sum_of_teachers(scores: Mapping[Head, Tensor], teachers: Mapping[Head, float]) -> Tensor:
    """Weighted standard scores (queries, docs), without gradient; a head that scores all docs alike says nothing."""
    found = {head: scores[head].detach() for head in teachers}
    standard = [
        weight * (found[head] - found[head].mean(1, keepdim=True)) / found[head].std(1, keepdim=True, correction=0).clamp(1e-6)
        for head, weight in teachers.items()
    ]
    return torch.stack(standard).sum(0)


def _scores(head: Head, queries: Heads, docs: Heads, gather: Gather) -> Tensor:
    """Scores of all queries against all docs (queries, queries · group), positives first."""
    asked, given = getattr(queries, head), getattr(docs, head)
    if asked is None or given is None:
        raise BadInput(f"the head {head!r} is a teacher or student; expected what it makes of queries and docs")
    if head != "multi":
        require_batch(asked, given)
        return products(gather(asked), gather(given))
    if queries.mask is None or docs.mask is None:
        raise BadInput("the head 'multi' is a teacher or student; expected the masks of its tokens")
    require_tokens(asked, queries.mask, given, docs.mask)
    return maxsim(
        gather(asked, ragged=1),
        in_columns(gather(given, ragged=2)),
        gather(queries.mask, ragged=1),
        in_columns(gather(docs.mask, ragged=2)),
    )

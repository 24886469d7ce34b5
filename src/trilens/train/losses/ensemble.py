"""Self-distillation of heads from a weighted ensemble of heads."""

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
from trilens.train.losses.validation import loss, require_batch, require_temperature, require_tokens


class HeadOutputs(NamedTuple):
    """Outputs of the heads for a batch of texts, None for heads that are not computed; docs have a group axis after the first.

    `dense` (texts, dims), `lexical` and `sparse` (texts, terms), `multi` (texts, tokens, dims) and `mask` (texts, tokens).
    """

    dense: Tensor | None = None
    lexical: Tensor | None = None
    sparse: Tensor | None = None
    multi: Tensor | None = None
    mask: Tensor | None = None


@loss
def ensemble(
    queries: HeadOutputs,
    docs: HeadOutputs,
    *,
    teachers: Mapping[Head, float],
    students: Sequence[Head],
    temperature: float = 1.0,
    gather: Gather = alone,
) -> Tensor:
    """Sum over students of KL(ensemble ‖ student) of the softmaxes over all docs of the batch, averaged over queries.

    The scores of each teacher are standardised per query, because heads differ in range, and summed with the weights of
    `teachers`: weights of 1 make a soft target, larger weights a sharper one. Teachers get no gradient. `temperature` divides
    the unstandardised scores of the students; use one objective per student if their ranges differ.

    A doc without tokens has no `multi` score; if `multi` takes part, such docs are left out of all scores.
    """
    require_temperature(temperature)
    heads = sorted({*teachers, *students})
    scores = {head: _scores(head, queries, docs, gather) for head in heads}
    if "multi" in scores and docs.mask is not None:
        not_empty = in_columns(gather(docs.mask, ragged=2)).bool().any(1)
        scores = {head: head_scores[:, not_empty] for head, head_scores in scores.items()}
    target = log_softmax(ensemble_scores(scores, teachers), 1)
    divergences = [
        kl_div(log_softmax(scores[head] / temperature, 1), target, reduction="none", log_target=True) for head in students
    ]
    return torch.stack([divergence.sum(1).mean() for divergence in divergences]).sum()


def ensemble_scores(scores: Mapping[Head, Tensor], teachers: Mapping[Head, float]) -> Tensor:
    """Weighted sum of standardised scores (queries, docs), without gradient; a head with equal scores adds nothing."""
    detached = {head: scores[head].detach() for head in teachers}
    standard = [
        weight
        * (detached[head] - detached[head].mean(1, keepdim=True))
        / detached[head].std(1, keepdim=True, correction=0).clamp(1e-6)
        for head, weight in teachers.items()
    ]
    return torch.stack(standard).sum(0)


def _scores(head: Head, queries: HeadOutputs, docs: HeadOutputs, gather: Gather) -> Tensor:
    """Scores of all queries against all docs (queries, queries · group), positives first."""
    query_output, doc_output = getattr(queries, head), getattr(docs, head)
    if query_output is None or doc_output is None:
        raise BadInput(f"the head {head!r} is a teacher or student; expected its outputs for queries and docs")
    if head != "multi":
        require_batch(query_output, doc_output)
        return products(gather(query_output), gather(doc_output))
    if queries.mask is None or docs.mask is None:
        raise BadInput("the head 'multi' is a teacher or student; expected its token masks")
    require_tokens(query_output, queries.mask, doc_output, docs.mask)
    return maxsim(
        gather(query_output, ragged=1),
        in_columns(gather(doc_output, ragged=2)),
        gather(queries.mask, ragged=1),
        in_columns(gather(docs.mask, ragged=2)),
    )

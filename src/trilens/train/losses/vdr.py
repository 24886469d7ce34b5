"""VDR: contrastive losses over vocabulary weights and bags of tokens."""

import torch
from torch import Tensor
from torch.nn.functional import normalize

from trilens.errors import BadInput
from trilens.train.gather import Gather, alone
from trilens.train.heads import top_or_own
from trilens.train.losses.contrastive import contrast, in_columns
from trilens.train.losses.validation import loss, require_batch, require_temperature


@loss
def vdr(
    queries: Tensor,
    docs: Tensor,
    query_bags: Tensor,
    doc_bags: Tensor,
    *,
    top: int = 768,
    semi_parametric: bool = False,
    mask_weight: float = 0.0,
    normalised_mask: bool = False,
    symmetric: bool = True,
    balanced: bool = False,
    temperature: float = 1.0,
    gather: Gather = alone,
) -> Tensor:
    """The mean of two contrastive terms, or of four if `semi_parametric` (SVDR, SiDR), over inner products.

    `queries` (queries, terms) and `docs` (queries, group, terms), positive first, are weights of the whole vocabulary; bags
    mark the terms that each text contains. Two terms: queries restricted to their `top` and own terms against docs, and query
    bags against docs. Four terms: also with the sides swapped, so that either side can be encoded by tokenising alone. Weights
    are unbounded; published models use a `temperature` of 1, heads with a wide range of initial scores need a higher one.

    A `mask_weight` above 0 adds the contrastive mask to the terms with bags: see `apply_contrastive_mask`.
    """
    require_temperature(temperature)
    require_batch(queries, docs)
    if query_bags.shape != queries.shape or doc_bags.shape != docs.shape:
        raise BadInput(
            f"bags are {tuple(query_bags.shape)} and {tuple(doc_bags.shape)}; expected the shapes of queries "
            f"{tuple(queries.shape)} and docs {tuple(docs.shape)}"
        )
    queries, docs = gather(queries), in_columns(gather(docs))
    query_bags, doc_bags = gather(query_bags).to(queries.dtype), in_columns(gather(doc_bags)).to(docs.dtype)

    def term(left: Tensor, right: Tensor) -> Tensor:
        return contrast(left @ right.T / temperature, symmetric=symmetric, balanced=balanced)

    terms = [term(queries * top_or_own(queries, query_bags, top), docs)]
    terms.append(term(*apply_contrastive_mask(query_bags, docs, mask_weight, normalised_mask)))
    if semi_parametric:
        terms.append(term(queries, docs * top_or_own(docs, doc_bags, top)))
        bags, weights = apply_contrastive_mask(doc_bags, queries, mask_weight, normalised_mask)
        terms.append(term(weights, bags))
    return torch.stack(terms).mean()


def apply_contrastive_mask(bags: Tensor, weights: Tensor, mask_weight: float, normalised: bool) -> tuple[Tensor, Tensor]:
    """Apply the contrastive mask to bags and the weights of the other side: it penalises weights of unused terms.

    Every term that no bag contains is assigned to one bag. A bag gets `mask_weight` on its assigned terms (on their unit
    vector, if `normalised`), and the weights of its positive, in the same row, are zeroed on these terms. The terms then only
    raise the scores of negatives, so training lowers their weights.
    """
    if mask_weight == 0:
        return bags, weights
    assigned = assigned_terms(bags).to(bags.dtype)
    pairs = min(len(bags), len(weights))
    keep = torch.cat([1 - assigned[:pairs], assigned.new_ones(len(weights) - pairs, assigned.shape[1])])
    return bags + mask_weight * (normalize(assigned) if normalised else assigned), weights * keep


def assigned_terms(bags: Tensor) -> Tensor:
    """Terms assigned to each bag, bool (bags, terms): term j goes to bag j mod bags, unless any bag contains it."""
    rows, terms = bags.shape
    owners = torch.arange(terms, device=bags.device) % rows
    return (owners == torch.arange(rows, device=bags.device)[:, None]) & ~bags.bool().any(0)

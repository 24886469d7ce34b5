"""VDR: weights over the vocabulary, contrasted with each other and with plain bags of tokens."""

import torch
from torch import Tensor
from torch.nn.functional import normalize

from trilens.errors import BadInput
from trilens.train.gather import Gather, alone
from trilens.train.heads import top_or_own
from trilens.train.losses.contrastive import contrast, in_columns
from trilens.train.losses.rules import loss, require_batch, require_temperature


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
    """The mean of two terms, or of four if `semi_parametric` (SVDR, SiDR), each a contrast of inner products.

    `queries` (queries, terms) and `docs` (queries, group, terms), positive first, are whole weights; the bags say which terms
    the texts contain. Two terms: queries cut to their `top` and own terms against docs, and query bags against docs. Four: the
    same with the sides swapped as well, so that either side can do without a model. Weights are not bounded, so the published
    models have a `temperature` of 1; heads whose first scores lie far apart want a higher one.

    A `mask_weight` above 0 adds the contrastive mask to the terms with bags: see `push_down`.
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
    terms.append(term(*push_down(query_bags, docs, mask_weight, normalised_mask)))
    if semi_parametric:
        terms.append(term(queries, docs * top_or_own(docs, doc_bags, top)))
        bags, weights = push_down(doc_bags, queries, mask_weight, normalised_mask)
        terms.append(term(weights, bags))
    return torch.stack(terms).mean()


def push_down(bags: Tensor, weights: Tensor, mask_weight: float, normalised: bool) -> tuple[Tensor, Tensor]:
    """Bags and the weights of the other side, under the contrastive mask: weights outside the lexicon cost something.

    Every term that no bag contains is owned by one bag. A bag gets `mask_weight` on the terms that it owns (on their vector
    of length 1, if `normalised`), and the weights that belong to the bag, in the same row, lose these terms. So the terms
    count for the texts that do not belong, and training lowers them.
    """
    if mask_weight == 0:
        return bags, weights
    owned = owned_terms(bags).to(bags.dtype)
    pairs = min(len(bags), len(weights))
    left = torch.cat([1 - owned[:pairs], owned.new_ones(len(weights) - pairs, owned.shape[1])])
    return bags + mask_weight * (normalize(owned) if normalised else owned), weights * left


def owned_terms(bags: Tensor) -> Tensor:
    """Which terms each bag owns: term j falls to row j mod rows, unless some bag contains it; bool (bags, terms)."""
    rows, terms = bags.shape
    owners = torch.arange(terms, device=bags.device) % rows
    return (owners == torch.arange(rows, device=bags.device)[:, None]) & ~bags.bool().any(0)

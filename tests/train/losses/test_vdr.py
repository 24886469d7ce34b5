"""VDR's two and four terms against numpy loops, with and without the contrastive mask."""

import numpy as np
import pytest
from numpy.typing import NDArray

torch = pytest.importorskip("torch", reason="training needs torch: pip install trilens[train]")

from torch import Tensor

from tests.train import plain
from trilens.errors import BadInput, TrainingFailed
from trilens.train.losses.vdr import apply_contrastive_mask, assigned_terms, vdr

Batch = tuple[Tensor, Tensor, Tensor, Tensor]


def drawn(seed: int, queries: int = 3, group: int = 2, terms: int = 13) -> Batch:
    """Positive weights, and bags of about a fifth of the terms."""
    generator = torch.Generator().manual_seed(seed)
    shapes = (queries, terms), (queries, group, terms)
    weights = [torch.rand(*shape, generator=generator, dtype=torch.float64).requires_grad_() for shape in shapes]
    bags = [(torch.rand(*shape, generator=generator) < 0.2).float() for shape in shapes]
    return weights[0], weights[1], bags[0], bags[1]


def cut(weights: plain.Floats, bag: plain.Floats, top: int) -> plain.Floats:
    """The `top` highest weights and those of the text's own terms."""
    left = set(np.argsort(-weights)[:top].tolist()) | set(np.flatnonzero(bag).tolist())
    return np.array([weight if term in left else 0.0 for term, weight in enumerate(weights)])


def masked(bags: plain.Floats, others: plain.Floats, weight: float, normalised: bool) -> tuple[plain.Floats, plain.Floats]:
    """The contrastive mask, term by term."""
    bags, others = bags.copy(), others.copy()
    contained = {term for bag in bags for term in np.flatnonzero(bag)}
    rows, terms = bags.shape
    for row in range(rows):
        owned = [term for term in range(terms) if term % rows == row and term not in contained]
        for term in owned:
            bags[row, term] += weight / np.sqrt(len(owned)) if normalised else weight
            if row < len(others):
                others[row, term] = 0
    return bags, others


def by_hand(batch: Batch, top: int, semi: bool, weight: float, normalised: bool, symmetric: bool) -> float:
    queries, docs, query_bags, doc_bags = (tensor.detach().double().numpy() for tensor in batch)
    docs, doc_bags = np.array(plain.columns(docs)), np.array(plain.columns(doc_bags))

    def scores(left: plain.Floats, right: plain.Floats) -> NDArray[np.float64]:
        return np.array([[sum(a * b for a, b in zip(one, other, strict=True)) for other in right] for one in left])

    short = np.array([cut(query, bag, top) for query, bag in zip(queries, query_bags, strict=True)])
    bags, weights = masked(query_bags, docs, weight, normalised) if weight else (query_bags, docs)
    actual = [plain.contrast(scores(short, docs), symmetric), plain.contrast(scores(bags, weights), symmetric)]
    if semi:
        short = np.array([cut(doc, bag, top) for doc, bag in zip(docs, doc_bags, strict=True)])
        bags, weights = masked(doc_bags, queries, weight, normalised) if weight else (doc_bags, queries)
        actual += [plain.contrast(scores(queries, short), symmetric), plain.contrast(scores(weights, bags), symmetric)]
    return float(np.mean(actual))


@pytest.mark.parametrize("group", [1, 3])
@pytest.mark.parametrize("semi", [False, True])
@pytest.mark.parametrize("weight, normalised", [(0.0, False), (1.0, False), (0.5, True)])
@pytest.mark.parametrize("symmetric", [False, True])
def test_equals_numpy(group: int, semi: bool, weight: float, normalised: bool, symmetric: bool) -> None:
    batch = drawn(1, group=group)
    actual = vdr(*batch, top=4, semi_parametric=semi, mask_weight=weight, normalised_mask=normalised, symmetric=symmetric)
    assert actual.item() == pytest.approx(by_hand(batch, 4, semi, weight, normalised, symmetric), abs=1e-12)


def test_contrastive_mask_by_hand() -> None:
    bags = torch.tensor([[0.0, 1.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0, 0.0]])
    # of two rows the first owns the terms 0, 2, 4 and the second 1, 3; the terms 0 and 1 stand in bags
    assert assigned_terms(bags).long().tolist() == [[0, 0, 1, 0, 1], [0, 0, 0, 1, 0]]
    weights = torch.full((3, 5), 7.0)
    more, less = apply_contrastive_mask(bags, weights, 0.5, False)
    assert more.tolist() == [[0, 1, 0.5, 0, 0.5], [1, 0, 0, 0.5, 0]]
    assert less.tolist() == [[7, 7, 0, 7, 0], [7, 7, 7, 0, 7], [7, 7, 7, 7, 7]]  # the third, a hard negative, loses nothing


def test_contrastive_mask_lowers_unused_terms() -> None:
    queries, docs, query_bags, doc_bags = drawn(2)
    gradient = torch.autograd.grad(vdr(queries, docs, query_bags, doc_bags, top=0, symmetric=False, mask_weight=1.0), docs)[0]
    outside = ~query_bags.bool().any(0)
    assert gradient[:, 1][:, outside].min() >= 0  # of hard negatives: descending lowers the weights
    assert gradient[:, 1][:, outside].max() > 0


@pytest.mark.parametrize("semi", [False, True])
@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_gradcheck(semi: bool, weight: float) -> None:
    queries, docs, query_bags, doc_bags = drawn(3, terms=7)
    assert torch.autograd.gradcheck(
        lambda q, d: vdr(q, d, query_bags, doc_bags, top=3, semi_parametric=semi, mask_weight=weight), (queries, docs)
    )


def test_invalid_temperature_and_shapes() -> None:
    queries, docs, query_bags, doc_bags = drawn(4)
    assert vdr(2 * queries, docs, query_bags, doc_bags).item() != pytest.approx(vdr(queries, docs, query_bags, doc_bags).item())


def test_a_temperature_divides_the_scores() -> None:
    queries, docs, query_bags, doc_bags = drawn(6)
    warm = vdr(queries, docs, query_bags, doc_bags, top=0, temperature=2.0)
    assert warm.item() == pytest.approx(vdr(queries / 2, docs, query_bags / 2, doc_bags, top=0).item())


def test_invalid_batches() -> None:
    queries, docs, query_bags, doc_bags = drawn(5)
    with pytest.raises(BadInput, match="bags are"):
        vdr(queries, docs, query_bags[:, :3], doc_bags)
    with pytest.raises(BadInput, match="expected a positive for each"):
        vdr(queries, docs[:, :0], query_bags, doc_bags[:, :0])
    with pytest.raises(BadInput, match="top is -1"):
        vdr(queries, docs, query_bags, doc_bags, top=-1)
    with pytest.raises(TrainingFailed, match="vdr is nan"):
        vdr(queries, docs * torch.inf, query_bags, doc_bags)

"""All losses with a small model, in one process with the whole batch or in one of several with a part of it.

    python -m tests.train.processes RANK PROCESSES MEETING_FILE OUTPUT

writes the values of the losses and the gradients that DistributedDataParallel leaves in the model. The parts of the batch
differ in their number of rows and in the lengths of their longest texts.
"""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel

from trilens.train.gather import Gather, alone, joined
from trilens.train.heads import (
    DenseHeadModule,
    LexicalHeadModule,
    MultiHeadModule,
    SparseHeadModule,
    bags_of_tokens,
    lexical_vectors,
)
from trilens.train.losses.contrastive import info_nce
from trilens.train.losses.distillation import kl_distillation, margin_mse
from trilens.train.losses.ensemble import HeadOutputs, ensemble
from trilens.train.losses.late import Score, late_interaction, own_maxsim
from trilens.train.losses.m3 import M3Outputs, m3
from trilens.train.losses.masked_words import retromae
from trilens.train.losses.vdr import vdr
from trilens.train.losses.xtr import imputed, xtr

HIDDEN, WORDS = 6, 15
PARTS = (slice(0, 3), slice(3, 5))


class Side(NamedTuple):
    """Texts: ids and mask (…, tokens)."""

    ids: Tensor
    mask: Tensor


class Batch(NamedTuple):
    """Queries, docs (queries, group, tokens), and teacher scores."""

    queries: Side
    docs: Side
    teacher: Tensor


def whole_batch() -> Batch:
    """Five queries with three docs each; the texts of the first three are shorter."""
    generator = torch.Generator().manual_seed(1)

    def side(*texts: int, tokens: int) -> Side:
        lengths = torch.randint(1, tokens + 1, texts, generator=generator)
        lengths[:3] = lengths[:3].clamp(max=tokens - 2)
        lengths[-1] = tokens
        ids = torch.randint(1, WORDS, (*texts, tokens), generator=generator)
        mask = torch.arange(tokens) < lengths[..., None]
        return Side(ids * mask, mask)

    return Batch(side(5, tokens=5), side(5, 3, tokens=7), torch.randn(5, 3, generator=generator, dtype=torch.float64))


def part_of(batch: Batch, rows: slice) -> Batch:
    """Some rows, truncated to their longest text, as a collator would pad them."""

    def cut(side: Side) -> Side:
        longest = int(side.mask[rows].sum(-1).max())
        return Side(side.ids[rows][..., :longest], side.mask[rows][..., :longest])

    return Batch(cut(batch.queries), cut(batch.docs), batch.teacher[rows])


class Model(nn.Module):
    """Embeddings, a layer and four heads; a forward pass computes a loss, as DistributedDataParallel requires."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.embeddings = nn.Embedding(WORDS, HIDDEN)
        self.layer = nn.Linear(HIDDEN, HIDDEN)
        self.dense, self.lexical = DenseHeadModule("mean"), LexicalHeadModule(HIDDEN)
        self.sparse, self.multi = SparseHeadModule(HIDDEN, shift=2), MultiHeadModule(HIDDEN, 4)
        self.double()

    def forward(self, loss: "Loss", batch: Batch, gather: Gather) -> Tensor:
        return loss(self, batch, gather)

    def heads(self, side: Side) -> M3Outputs:
        """Dense, lexical and multi-vector representations, in the shape of the texts."""
        ids, mask = side.ids.flatten(0, -2), side.mask.flatten(0, -2)
        states = self.states(ids)
        actual = M3Outputs(
            self.dense(states, mask),
            lexical_vectors(self.lexical(states), ids, mask, WORDS),
            self.multi(states, mask),
            mask,
        )
        return M3Outputs(*(tensor.unflatten(0, side.ids.shape[:-1]) for tensor in actual))

    def words(self, side: Side) -> tuple[Tensor, Tensor]:
        """VDR's weights and bags, in the shape of the texts."""
        ids, mask = side.ids.flatten(0, -2), side.mask.flatten(0, -2)
        weights = self.sparse(self.states(ids), mask, self.embeddings.weight)
        bags = bags_of_tokens(ids, mask, WORDS - 2, shift=2)
        return weights.unflatten(0, side.ids.shape[:-1]), bags.unflatten(0, side.ids.shape[:-1])

    def states(self, ids: Tensor) -> Tensor:
        return torch.tanh(self.layer(self.embeddings(ids)))


Loss = Callable[[Model, Batch, Gather], Tensor]


def by_info_nce(model: Model, batch: Batch, gather: Gather) -> Tensor:
    return info_nce(model.heads(batch.queries).dense, model.heads(batch.docs).dense, symmetric=True, gather=gather)


def by_vdr(model: Model, batch: Batch, gather: Gather, *, semi: bool, mask_weight: float) -> Tensor:
    (queries, query_bags), (docs, doc_bags) = model.words(batch.queries), model.words(batch.docs)
    return vdr(queries, docs, query_bags, doc_bags, top=4, semi_parametric=semi, mask_weight=mask_weight, gather=gather)


def by_maxsim(model: Model, batch: Batch, gather: Gather) -> Tensor:
    queries, docs = model.heads(batch.queries), model.heads(batch.docs)
    return late_interaction(queries.multi, docs.multi, queries.mask, docs.mask, gather=gather)


def by_retrieved(model: Model, batch: Batch, gather: Gather, *, score: Score) -> Tensor:
    queries, docs = model.heads(batch.queries), model.heads(batch.docs)
    return late_interaction(queries.multi, docs.multi, queries.mask, docs.mask, score=score, temperature=0.05, gather=gather)


def by_m3(model: Model, batch: Batch, gather: Gather, *, distil: bool) -> Tensor:
    return m3(model.heads(batch.queries), model.heads(batch.docs), distil=distil, temperature=0.1, gather=gather)


def by_ensemble(model: Model, batch: Batch, gather: Gather) -> Tensor:
    def every(side: Side) -> HeadOutputs:
        three = model.heads(side)
        return HeadOutputs(three.dense, three.lexical, model.words(side)[0], three.multi, three.mask)

    return ensemble(
        every(batch.queries),
        every(batch.docs),
        teachers={"dense": 1.0, "multi": 2.0},
        students=["sparse", "lexical", "multi"],
        gather=gather,
    )


def by_teacher(model: Model, batch: Batch, gather: Gather, *, distil: Callable[..., Tensor]) -> Tensor:
    queries, docs = model.heads(batch.queries), model.heads(batch.docs)
    return distil(own_maxsim(queries.multi, docs.multi, queries.mask, docs.mask), batch.teacher, gather=gather)


def by_retromae(model: Model, batch: Batch, gather: Gather) -> Tensor:
    def labels(side: Side) -> Tensor:
        return torch.where(side.mask & (side.ids % 3 > 0), side.ids, -100)

    docs = Side(batch.docs.ids.flatten(0, 1), batch.docs.mask.flatten(0, 1))
    return retromae(
        model.states(batch.queries.ids),
        labels(batch.queries),
        model.states(docs.ids),
        labels(docs),
        lambda states: states @ model.embeddings.weight.T,
        gather=gather,
    )


LOSSES: dict[str, Loss] = {
    "info_nce": by_info_nce,
    "vdr": partial(by_vdr, semi=False, mask_weight=0.0),
    "svdr with the mask": partial(by_vdr, semi=True, mask_weight=0.7),
    "maxsim": by_maxsim,
    "xtr": partial(by_retrieved, score=partial(xtr, top=9)),
    "xtr as it searches": partial(by_retrieved, score=partial(imputed, top=9)),
    "m3": partial(by_m3, distil=False),
    "m3 distilled": partial(by_m3, distil=True),
    "ensemble": by_ensemble,
    "kl": partial(by_teacher, distil=kl_distillation),
    "margin_mse": partial(by_teacher, distil=margin_mse),
    "retromae": by_retromae,
}


def run(name: str, batch: Batch, gather: Gather) -> dict[str, "np.ndarray[tuple[int, ...], np.dtype[np.float64]]"]:
    """The value of a loss and the gradient of each parameter, averaged over processes."""
    model = Model()
    whole = model if gather is alone else DistributedDataParallel(model, find_unused_parameters=True)
    loss = whole(LOSSES[name], batch, gather)
    loss.backward()
    actual = {key: np.zeros(tuple(p.shape)) if p.grad is None else p.grad.numpy() for key, p in model.named_parameters()}
    return {"value": np.array(loss.item()), **actual}


def main() -> None:
    """One of several processes."""
    rank, processes, meeting, output = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], Path(sys.argv[4])
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=processes)
    part = part_of(whole_batch(), PARTS[rank])
    actual = {f"{name}/{key}": value for name in LOSSES for key, value in run(name, part, joined).items()}
    np.savez(output, allow_pickle=False, **actual)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()

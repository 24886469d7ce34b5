"""Training objectives: the losses of `losses/` with their parameters, applied to the head outputs of a batch.

A batch has queries and, for each, a group of docs of equal size: the positive first, then its negatives.
"""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from torch import Tensor, nn

from trilens.encode.folder import Head
from trilens.errors import BadInput
from trilens.train.collapse import CollapseMonitor
from trilens.train.gather import Gather, joined
from trilens.train.grad_cache import Features, cached_loss, encode
from trilens.train.losses import contrastive, distillation, ensemble, late, m3, vdr, xtr

VECTORS: dict[Head, str] = {"dense": "sentence_embedding", "lexical": "lexical", "sparse": "sparse", "multi": "multi"}
"""Key of each head's output in the features."""


class Objective(BaseModel):
    """A loss with its parameters; `weight` multiplies it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    weight: float = Field(default=1.0, gt=0)

    @property
    def heads(self) -> frozenset[Head]:
        """The heads whose outputs it uses."""
        raise NotImplementedError

    @property
    def trained(self) -> frozenset[Head]:
        """The heads that it trains."""
        return self.heads

    @property
    def needs_teacher(self) -> bool:
        """Whether it uses teacher scores."""
        return False

    def loss(self, queries: Features, docs: Features, teacher: Tensor | None, step: int, gather: Gather) -> Tensor:
        """The loss of a batch; docs are (queries, group, …)."""
        raise NotImplementedError


class InfoNce(Objective):
    """InfoNCE over inner products, as in DPR, E5 and BGE."""

    kind: Literal["info_nce"]
    head: Literal["dense", "lexical", "sparse"] = "dense"
    temperature: float = Field(default=0.05, gt=0)
    symmetric: bool = False

    @property
    def heads(self) -> frozenset[Head]:
        """See `Objective`."""
        return frozenset({self.head})

    def loss(self, queries: Features, docs: Features, teacher: Tensor | None, step: int, gather: Gather) -> Tensor:
        """See `Objective`."""
        name = VECTORS[self.head]
        return contrastive.info_nce(
            queries[name], docs[name], temperature=self.temperature, symmetric=self.symmetric, gather=gather
        )


class Vdr(Objective):
    """VDR's two terms, or the four of SVDR and SiDR if `semi_parametric`; see `losses/vdr.py`."""

    kind: Literal["vdr"]
    top: int = Field(default=768, ge=0)
    semi_parametric: bool = False
    mask_weight: float = Field(default=0.0, ge=0)
    normalised_mask: bool = False
    symmetric: bool = True
    balanced: bool = False
    temperature: float = Field(default=1.0, gt=0)

    @property
    def heads(self) -> frozenset[Head]:
        """See `Objective`."""
        return frozenset({"sparse"})

    def loss(self, queries: Features, docs: Features, teacher: Tensor | None, step: int, gather: Gather) -> Tensor:
        """See `Objective`."""
        return vdr.vdr(
            queries["sparse"],
            docs["sparse"],
            queries["bags"],
            docs["bags"],
            **self.model_dump(exclude={"kind", "weight"}),
            gather=gather,
        )


class Late(Objective):
    """InfoNCE over ColBERT's MaxSim or, if `top` is given, over XTR's score of the `top` tokens retrieved from the batch.

    With `imputed`, tokens that are not retrieved are imputed as in XTR's search; otherwise they are ignored, as in the paper.
    """

    kind: Literal["late"]
    top: int | None = Field(default=None, ge=1)
    imputed: bool = False
    mean: bool = False  # divide MaxSim by the number of query tokens; XTR's score always is a mean
    temperature: float = Field(default=1.0, gt=0)
    symmetric: bool = False

    @model_validator(mode="after")
    def _something_is_retrieved(self) -> "Late":
        if self.imputed and self.top is None:
            raise ValueError("imputed is given without top; expected top, the number of tokens each query token retrieves")
        return self

    @property
    def heads(self) -> frozenset[Head]:
        """See `Objective`."""
        return frozenset({"multi"})

    def loss(self, queries: Features, docs: Features, teacher: Tensor | None, step: int, gather: Gather) -> Tensor:
        """See `Objective`."""
        return late.late_interaction(
            queries["multi"],
            docs["multi"],
            queries["multi_mask"],
            docs["multi_mask"],
            score=self._score,
            temperature=self.temperature,
            symmetric=self.symmetric,
            gather=gather,
        )

    @property
    def _score(self) -> late.Score:
        if self.top is None:
            return late.mean_maxsim if self.mean else late.maxsim
        return partial(xtr.imputed if self.imputed else xtr.xtr, top=self.top)


class M3(Objective):
    """M3's loss over three heads and their ensemble; self-distillation starts after step `distil_after` (None: never)."""

    kind: Literal["m3"]
    temperature: float = Field(default=0.02, gt=0)
    distil_after: int | None = Field(default=None, ge=0)
    ensemble: tuple[float, float, float] = m3.ENSEMBLE
    weights: tuple[float, float, float] = m3.LOSSES

    @property
    def heads(self) -> frozenset[Head]:
        """See `Objective`."""
        return frozenset({"dense", "lexical", "multi"})

    def loss(self, queries: Features, docs: Features, teacher: Tensor | None, step: int, gather: Gather) -> Tensor:
        """See `Objective`."""
        return m3.m3(
            _three_heads(queries),
            _three_heads(docs),
            distil=m3.distillation_active(step, self.distil_after),
            temperature=self.temperature,
            ensemble=m3.M3Weights(*self.ensemble),
            weights=m3.M3Weights(*self.weights),
            gather=gather,
        )


class Ensemble(Objective):
    """Distillation from a weighted sum of the heads' standardised scores, after step `after`: see `losses/ensemble.py`."""

    kind: Literal["ensemble"]
    teachers: dict[Head, Annotated[float, Field(gt=0)]] = Field(min_length=1)
    students: list[Head] = Field(min_length=1)
    temperature: float = Field(default=1.0, gt=0)
    after: int = Field(default=0, ge=0)

    @field_validator("students")
    @classmethod
    def _each_once(cls, students: list[Head]) -> list[Head]:
        if len(set(students)) < len(students):
            raise ValueError(f"is {students}; expected each head once")
        return students

    @property
    def heads(self) -> frozenset[Head]:
        """See `Objective`."""
        return frozenset({*self.teachers, *self.students})

    @property
    def trained(self) -> frozenset[Head]:
        """See `Objective`."""
        return frozenset(self.students)

    def loss(self, queries: Features, docs: Features, teacher: Tensor | None, step: int, gather: Gather) -> Tensor:
        """See `Objective`."""
        value = ensemble.ensemble(
            _any_heads(queries),
            _any_heads(docs),
            teachers=self.teachers,
            students=self.students,
            temperature=self.temperature,
            gather=gather,
        )
        # A zero gradient, not none: DDP waits for a gradient of every parameter.
        return value if m3.distillation_active(step, self.after) else 0 * value


class Distillation(Objective):
    """Distillation of a teacher's scores of each group, by KL divergence of softmaxes or MarginMSE.

    `scale` multiplies the teacher's scores, to match the range of the student's.
    """

    kind: Literal["kl", "margin_mse"]
    head: Head = "dense"
    temperature: float = Field(default=1.0, gt=0)
    scale: float = Field(default=1.0, gt=0)

    @property
    def heads(self) -> frozenset[Head]:
        """See `Objective`."""
        return frozenset({self.head})

    @property
    def needs_teacher(self) -> bool:
        """See `Objective`."""
        return True

    def loss(self, queries: Features, docs: Features, teacher: Tensor | None, step: int, gather: Gather) -> Tensor:
        """See `Objective`."""
        if teacher is None:
            raise BadInput(
                f"the objective {self.kind!r} needs teacher scores; give `teacher` in the recipe, or data with scores"
            )
        student = own_scores(self.head, queries, docs)
        if self.kind == "margin_mse":
            return distillation.margin_mse(student / self.temperature, self.scale * teacher, gather=gather)
        return distillation.kl_distillation(student, self.scale * teacher, temperature=self.temperature, gather=gather)


AnyObjective = Annotated[InfoNce | Vdr | Late | M3 | Ensemble | Distillation, Field(discriminator="kind")]


class Objectives(nn.Module):
    """The loss module of the trainer: encodes queries and docs, and returns the weighted loss of each objective by name.

    The trainer sets `step`, and logs the `accuracies` of the trained heads in the last batch. With `sub_batch`, at most this
    many texts are encoded at a time (`grad_cache.py`).
    """

    def __init__(self, model: nn.Module, objectives: Sequence[Objective], sub_batch: int | None = None) -> None:
        super().__init__()
        self.model = model
        self.objectives = list(objectives)
        self.sub_batch = sub_batch
        self.step = 0
        self.accuracies: dict[str, Tensor] = {}
        sparse = sorted(head for head in self.heads if head in ("sparse", "lexical"))
        self.monitors = {head: CollapseMonitor(head) for head in sparse}

    @property
    def heads(self) -> frozenset[Head]:
        """All heads whose outputs are used."""
        return frozenset().union(*(objective.heads for objective in self.objectives))

    @property
    def trained(self) -> frozenset[Head]:
        """All heads that are trained."""
        return frozenset().union(*(objective.trained for objective in self.objectives))

    @property
    def names(self) -> list[str]:
        """A unique name for each objective: its kind, numbered if it occurs more than once."""
        kinds = [str(getattr(objective, "kind", "")) for objective in self.objectives]
        return [
            kind if kinds.count(kind) == 1 else f"{kind}_{kinds[:index].count(kind) + 1}" for index, kind in enumerate(kinds)
        ]

    def forward(self, sides: Sequence[Features], teacher: Tensor | None = None) -> dict[str, Tensor]:
        """The loss terms; `sides` are queries and docs, with the docs of all queries concatenated."""
        parts: dict[str, Tensor] = {}

        def total_loss(outputs: list[Features]) -> Tensor:
            queries, docs = outputs[0], grouped(outputs[1], len(sides[0]["input_ids"]))
            self._watch(outputs)
            # In the same order in every process: each head is gathered from all of them.
            heads = sorted(self.trained)
            self.accuracies = {f"{head}_accuracy": in_batch_accuracy(head, queries, docs, joined) for head in heads}
            for name, objective in zip(self.names, self.objectives, strict=True):
                parts[name] = objective.weight * objective.loss(queries, docs, teacher, self.step, joined)
            return torch.stack(list(parts.values())).sum()

        texts = max(len(side["input_ids"]) for side in sides)
        if self.sub_batch is None or texts <= self.sub_batch:
            total_loss([encode(self.model, side) for side in sides])
            return dict(parts)
        total = cached_loss(self.model, sides, self.sub_batch, total_loss)
        values = {name: part.detach() for name, part in parts.items()}
        # The trainer sums the terms; the first one also carries the gradient of all, without changing its value.
        first = next(iter(values))
        return values | {first: values[first] + (total - total.detach())}

    def _watch(self, outputs: Sequence[Features]) -> None:
        for head, monitor in self.monitors.items():
            monitor.watch(torch.cat([side[VECTORS[head]].detach() for side in outputs]))


def grouped(docs: Features, queries: int) -> Features:
    """Reshape concatenated docs to (queries, group, …)."""
    return {name: value.unflatten(0, (queries, -1)) for name, value in docs.items()}


def own_scores(head: Head, queries: Features, docs: Features) -> Tensor:
    """Scores of each query for the docs of its own group (queries, group)."""
    if head == "multi":
        return late.own_maxsim(queries["multi"], docs["multi"], queries["multi_mask"], docs["multi_mask"])
    return torch.einsum("qd,qgd->qg", queries[VECTORS[head]], docs[VECTORS[head]])


@torch.no_grad()
def in_batch_accuracy(head: Head, queries: Features, docs: Features, gather: Gather) -> Tensor:
    """The share of queries whose positive has the highest score of all docs of the batch."""
    vectors = VECTORS[head]
    if head == "multi":
        query_side = gather(queries[vectors], ragged=1), gather(queries["multi_mask"], ragged=1)
        doc_side = (contrastive.in_columns(gather(docs[name], ragged=2)) for name in (vectors, "multi_mask"))
        (query_vectors, query_mask), (doc_vectors, doc_mask) = query_side, doc_side
        scores = late.maxsim(query_vectors, doc_vectors, query_mask, doc_mask)
    else:
        scores = contrastive.products(gather(queries[vectors]), gather(docs[vectors]))
    return (scores.argmax(1) == torch.arange(len(scores), device=scores.device)).float().mean()


def _any_heads(side: Features) -> ensemble.HeadOutputs:
    return ensemble.HeadOutputs(**{head: side.get(name) for head, name in VECTORS.items()}, mask=side.get("multi_mask"))


def _three_heads(side: Features) -> m3.M3Outputs:
    return m3.M3Outputs(side["sentence_embedding"], side["lexical"], side["multi"], side["multi_mask"])

"""Objectives of a cross-encoder: losses over its scores of each query's own positive and negatives."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn

from trilens.errors import BadInput
from trilens.train.gather import Gather, joined
from trilens.train.grad_cache import Features
from trilens.train.losses import distillation, pairs


class CrossObjective(BaseModel):
    """A loss with its parameters; `weight` multiplies it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: str
    weight: float = Field(default=1.0, gt=0)

    def loss(self, scores: Tensor, teacher: Tensor | None, gather: Gather) -> Tensor:
        """The loss of the scores (queries, group) of a batch."""
        raise NotImplementedError


class Labels(CrossObjective):
    """Learning from the labels: by the softmax over each group, or by each pair alone, whose scores are then probabilities."""

    kind: Literal["group", "binary"]

    def loss(self, scores: Tensor, teacher: Tensor | None, gather: Gather) -> Tensor:
        """See `CrossObjective`."""
        function = pairs.group_cross_entropy if self.kind == "group" else pairs.binary_cross_entropy
        return function(scores, gather=gather)


class TeacherScores(CrossObjective):
    """Learning a teacher's scores of each group, by KL divergence of softmaxes or MarginMSE. `scale` multiplies them."""

    kind: Literal["kl", "margin_mse"]
    temperature: float = Field(default=1.0, gt=0)
    scale: float = Field(default=1.0, gt=0)

    def loss(self, scores: Tensor, teacher: Tensor | None, gather: Gather) -> Tensor:
        """See `CrossObjective`."""
        if teacher is None:
            raise BadInput(
                f"the objective {self.kind!r} needs teacher scores; give `teacher` in the recipe, or data with scores"
            )
        scaled = self.scale * teacher.to(scores.device)
        if self.kind == "margin_mse":
            return distillation.margin_mse(scores / self.temperature, scaled, gather=gather)
        return distillation.kl_distillation(scores, scaled, temperature=self.temperature, gather=gather)


AnyCrossObjective = Annotated[Labels | TeacherScores, Field(discriminator="kind")]


class CrossLoss(nn.Module):
    """The loss module of the trainer: scores all pairs of a batch, and returns the weighted loss of each objective by kind.

    `accuracies` has the share of queries of the last batch whose positive has the highest score of its group.
    """

    def __init__(self, model: nn.Module, objectives: Sequence[CrossObjective]) -> None:
        super().__init__()
        self.model = model
        self.objectives = list(objectives)
        self.step = 0
        self.accuracies: dict[str, Tensor] = {}

    def forward(self, sides: Sequence[Features], teacher: Tensor | None = None) -> dict[str, Tensor]:
        """The loss terms; `sides` has one batch of pairs, and the number of pairs of each query in `group`."""
        features = dict(sides[0])
        group = int(features.pop("group"))
        scores = self.model(features)["scores"].reshape(-1, group)
        self.accuracies = {"cross_accuracy": (joined(scores.detach()).argmax(1) == 0).float().mean()}
        return {objective.kind: objective.weight * objective.loss(scores, teacher, joined) for objective in self.objectives}

"""`ScoreRules`: bounds on the scores of negatives, absolute and relative to the positives, to drop false negatives."""

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from trilens.kernels.array_types import Float32s, Mask


class ScoreRules(BaseModel):
    """Rules on scores; None disables a rule.

    max_score        highest score of a negative
    min_score        lowest score of a negative
    absolute_margin  least difference between the positive's score and a negative's
    relative_margin  the same as a share of the positive's score: 0.05 keeps negatives below 95 % of it
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_score: float | None = None
    min_score: float | None = None
    absolute_margin: float | None = None
    relative_margin: float | None = Field(default=None, ge=0, le=1)

    def __bool__(self) -> bool:
        """Whether any rule is set."""
        return any(value is not None for value in self.model_dump().values())

    def highest(self, positives: Float32s) -> float:
        """The highest score allowed for a negative, relative to the lowest-scoring positive."""
        positive = float(positives.min())
        bounds = [np.inf if self.max_score is None else self.max_score]
        if self.absolute_margin is not None:
            bounds.append(positive - self.absolute_margin)
        if self.relative_margin is not None:
            bounds.append(positive - self.relative_margin * abs(positive))  # cross-encoder scores may be negative
        return min(bounds)

    def allows(self, scores: Float32s, positives: Float32s) -> Mask:
        """Which candidates may be negatives of a query whose positives have these scores."""
        lowest = -np.inf if self.min_score is None else self.min_score
        return (scores <= self.highest(positives)) & (scores >= lowest)

"""Which scores a negative may have: below those of the positives by a margin, and between two bounds."""

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

Floats = NDArray[np.float32]


class ScoreRules(BaseModel):
    """Rules on scores; what is None is no rule.

    max_score        no negative scores more
    min_score        nor less
    absolute_margin  a negative scores less than the positive by at least this
    relative_margin  … by at least this share of the positive's score: 0.05 leaves what scores below 95 % of it
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_score: float | None = None
    min_score: float | None = None
    absolute_margin: float | None = None
    relative_margin: float | None = Field(default=None, ge=0, le=1)

    def __bool__(self) -> bool:
        """Whether there is any rule."""
        return any(value is not None for value in self.model_dump().values())

    def highest(self, positives: Floats) -> float:
        """The score that a negative must not exceed. Of several positives the lowest counts: it is one all the same."""
        positive = float(positives.min())
        bounds = [np.inf if self.max_score is None else self.max_score]
        if self.absolute_margin is not None:
            bounds.append(positive - self.absolute_margin)
        if self.relative_margin is not None:
            bounds.append(positive - self.relative_margin * abs(positive))  # scores of cross-encoders may be negative
        return min(bounds)

    def allows(self, scores: Floats, positives: Floats) -> NDArray[np.bool_]:
        """Which candidates may be negatives of a query whose positives have these scores."""
        lowest = -np.inf if self.min_score is None else self.min_score
        return (scores <= self.highest(positives)) & (scores >= lowest)

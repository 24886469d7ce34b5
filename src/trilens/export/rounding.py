"""8 bits: matrices as whole numbers with a scale per column, and ranges for what they are multiplied with."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

# Without VNNI, x86 adds two 8 × 8 bit products in 16 bits. Weights of 7 bits cannot overflow there.
WEIGHT_MAX = 63
STORED_MAX = 127
# SmoothQuant (arXiv:2211.10438), equation 4: how much of an input channel's range moves into the weights.
STRENGTHS = (0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True)
class Range:
    """How the input of one matrix product becomes 8 bits: channels divided by `smooth`, then [low, high] → 0…255."""

    smooth: Floats
    low: float
    high: float

    @property
    def scale(self) -> float:
        """The step between two levels."""
        return (self.high - self.low) / 255

    @property
    def zero(self) -> int:
        """The level of zero."""
        return int(np.clip(np.rint(-self.low / self.scale), 0, 255))

    def round(self, rows: Floats) -> Floats:
        """What is left of `rows` after the conversion, still divided by `smooth`."""
        levels = np.clip(np.rint(rows / self.smooth / self.scale) + self.zero, 0, 255)
        return np.asarray((levels - self.zero) * self.scale, np.float32)


def round_columns(weight: Floats, levels: int) -> tuple[NDArray[np.int8], Floats]:
    """A matrix (in, out) as whole numbers and one scale per column."""
    scales = np.maximum(np.abs(weight).max(axis=0) / levels, 1e-12).astype(np.float32)
    return np.rint(weight / scales).astype(np.int8), scales


def choose_range(rows: Floats, weight: Floats) -> Range:
    """Of the smoothing strengths the one whose 8-bit product comes nearest to the exact one."""
    exact = rows @ weight
    reach, pull = np.maximum(np.abs(rows).max(axis=0), 1e-3), np.maximum(np.abs(weight).max(axis=1), 1e-3)
    raw = [np.ones_like(reach), *(reach**strength / pull ** (1 - strength) for strength in STRENGTHS)]
    tried = []
    for factors in raw:
        smooth = (factors / np.exp(np.log(factors).mean())).astype(np.float32)
        smoothed = rows / smooth
        chosen = Range(smooth, min(float(smoothed.min()), 0.0), max(float(smoothed.max()), 0.0))
        levels, scales = round_columns(weight * smooth[:, None], WEIGHT_MAX)
        tried.append((float(np.square(chosen.round(rows) @ (levels * scales) - exact).sum()), chosen))
    return min(tried, key=lambda pair: pair[0])[1]

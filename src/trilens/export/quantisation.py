"""8-bit quantisation: integer matrices with a scale per column, and input ranges with SmoothQuant."""

from dataclasses import dataclass

import numpy as np

from trilens.kernels.array_types import Float32s, Int8s

# Without VNNI, x86 sums pairs of 8-bit products in 16 bits; 7-bit weights cannot overflow.
WEIGHT_MAX = 63
STORED_MAX = 127
# SmoothQuant (arXiv:2211.10438), equation 4: the share of an input channel's range that moves into the weights.
STRENGTHS = (0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True)
class Range:
    """Quantisation of a product's input: channels are divided by `smooth`, then [low, high] is mapped to 0…255."""

    smooth: Float32s
    low: float
    high: float

    @property
    def scale(self) -> float:
        """The step between two levels."""
        return (self.high - self.low) / 255

    @property
    def zero(self) -> int:
        """The zero point."""
        return int(np.clip(np.rint(-self.low / self.scale), 0, 255))

    def round(self, rows: Float32s) -> Float32s:
        """`rows` quantised and dequantised, still divided by `smooth`."""
        levels = np.clip(np.rint(rows / self.smooth / self.scale) + self.zero, 0, 255)
        return np.asarray((levels - self.zero) * self.scale, np.float32)


def round_columns(weight: Float32s, levels: int) -> tuple[Int8s, Float32s]:
    """A matrix (in, out) as integers with one scale per column."""
    scales = np.maximum(np.abs(weight).max(axis=0) / levels, 1e-12).astype(np.float32)
    return np.rint(weight / scales).astype(np.int8), scales


def choose_range(rows: Float32s, weight: Float32s) -> Range:
    """The range with the smoothing strength that minimises the error of the 8-bit product."""
    exact = rows @ weight
    input_max, weight_max = np.maximum(np.abs(rows).max(axis=0), 1e-3), np.maximum(np.abs(weight).max(axis=1), 1e-3)
    raw = [np.ones_like(input_max), *(input_max**strength / weight_max ** (1 - strength) for strength in STRENGTHS)]
    candidates = []
    for factors in raw:
        smooth = (factors / np.exp(np.log(factors).mean())).astype(np.float32)
        smoothed = rows / smooth
        candidate = Range(smooth, min(float(smoothed.min()), 0.0), max(float(smoothed.max()), 0.0))
        levels, scales = round_columns(weight * smooth[:, None], WEIGHT_MAX)
        candidates.append((float(np.square(candidate.round(rows) @ (levels * scales) - exact).sum()), candidate))
    return min(candidates, key=lambda pair: pair[0])[1]

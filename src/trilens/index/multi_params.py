"""Search parameters of the multi lens and their defaults."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from trilens.frozen import Frozen

Method = Literal["plaid", "xtr", "exact"]
Count = Annotated[int, Field(strict=True, ge=0)]
PositiveCount = Annotated[int, Field(strict=True, ge=1)]


class MultiParams(Frozen):
    """Search parameters of the multi lens. None takes a default that grows with the collection.

    reach       centroid groups that are scored for each query token
    probes      centroids of each query token whose rows become candidates (plaid) or whose tokens are scored (xtr)
    candidates  rows that are re-scored: by their near tokens (plaid) or by all tokens (xtr; 0 for none)
    margin      plaid: how far below a row's best centroid another may be for its tokens to count, in vector lengths
    nth         xtr: a query token without a retrieved token is imputed its nth best similarity (k'); 0: WARP's estimate
    tokens      xtr: the number of tokens after which WARP's estimate stops
    """

    method: Method = "plaid"
    reach: PositiveCount | None = None
    probes: PositiveCount | None = None
    candidates: Count | None = None
    margin: Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)] | None = None
    nth: Count | None = None
    tokens: Count | None = None


@dataclass(frozen=True, slots=True)
class MultiSettings:
    """`MultiParams` without None."""

    method: Method
    reach: int
    probes: int
    candidates: int
    margin: float
    nth: int
    tokens: int

    @property
    def imputes(self) -> bool:
        """Whether scores contain imputed similarities; the scores of all other searches are MaxSim."""
        return self.method == "xtr" and not self.candidates


def default_settings(params: MultiParams, k: int, rows: int, crowding: float = 1.0) -> MultiSettings:
    """The settings of a search for the best k of `rows` rows.

    A pure function, so that no search affects the next. `crowding` is the number of centroids relative to a fresh codebook.
    """
    growth = max(1.0, rows / 5000) ** 0.25
    xtr = params.method == "xtr"
    probes = int((64 if xtr else 32) * growth * crowding)  # xtr never recovers what the probes missed
    return MultiSettings(
        method=params.method,
        reach=_or(params.reach, probes if xtr else probes // 2),
        probes=_or(params.probes, probes),
        candidates=_or(params.candidates, 0 if xtr else int(max(200, 8 * k) * growth)),
        margin=0.1 if params.margin is None else params.margin,
        nth=_or(params.nth, 0),
        tokens=_or(params.tokens, int(10_000 * growth**2)),
    )


def _or(value: int | None, default: int) -> int:
    return default if value is None else value

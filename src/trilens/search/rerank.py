"""`Rerank`: the last stage of a search, which orders the candidates of the lenses by a more accurate score."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field, model_validator

from trilens.errors import BadInput
from trilens.frozen import Frozen

CROSS = "cross"
CROSS_DEPTH, CROSS_FIRST = 20, 1.0  # benchmarks/LOG.md
MOST_RERANKED = 10_000


class Rerank(Frozen):
    """What orders the candidates. Its text form is `BY:NAME=VALUE,…`, such as `multi` or `cross:depth=50,first=0.5`.

    by     a lens, or `cross`: a cross-encoder, which reads the query and a passage together
    model  of `cross`: the name or the folder of the cross-encoder
    depth  number of documents to re-rank, the best ones of the lenses; at least as many as the search returns are (None: all
           candidates; 20 for `cross`)
    first  weight of the first stage, relative to 1: standard scores are added up. 0: the re-ranking score alone (None: 0 for a
           lens, 1 for `cross`)
    """

    by: Annotated[str, Field(strict=True, min_length=1)]
    model: Annotated[str, Field(strict=True, min_length=1)] | None = None
    depth: Annotated[int, Field(strict=True, ge=1, le=MOST_RERANKED)] | None = None
    first: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None

    @model_validator(mode="after")
    def _only_cross_has_a_model(self) -> "Rerank":
        if self.model is not None and not self.is_cross:
            raise ValueError(f"model is {self.model!r}, but {self.by} is a lens; expected a model with {CROSS} only")
        return self

    def __str__(self) -> str:
        settings = self.model_dump(exclude_defaults=True, exclude={"by"})
        return self.by + (":" if settings else "") + ",".join(f"{name}={value}" for name, value in settings.items())

    @property
    def is_cross(self) -> bool:
        """Whether a cross-encoder re-ranks, not a lens."""
        return self.by == CROSS

    def require_model(self) -> str:
        """The cross-encoder, which must be named."""
        if self.model is None:
            raise BadInput(
                f"rerank is {CROSS} without a model; expected a cross-encoder that `trilens export` wrote: name it with "
                "--cross-encoder FOLDER, or as `model` of rerank"
            )
        return self.model

    @property
    def lenses(self) -> Sequence[str]:
        """The lens that re-ranks; none if a cross-encoder does."""
        return () if self.is_cross else (self.by,)

    @property
    def most(self) -> int | None:
        """The number of documents to re-rank; None: all candidates."""
        return CROSS_DEPTH if self.depth is None and self.is_cross else self.depth

    @property
    def needs_order(self) -> bool:
        """Whether the order of the first stage matters, and so its fusion."""
        return self.most is not None or self.first_weight > 0

    @property
    def first_weight(self) -> float:
        """The weight of the first stage."""
        return (CROSS_FIRST if self.is_cross else 0.0) if self.first is None else self.first

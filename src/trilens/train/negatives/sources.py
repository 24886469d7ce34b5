"""Sources of hard negatives as a recipe lists them: each with the number of negatives that a query gets from it."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from trilens.datasets.answers import AnswerKind
from trilens.encode.folder import Head


class _Negatives(BaseModel):
    """Options of all sources. `count`: negatives per query, drawn anew in each epoch."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    count: int = Field(default=1, ge=0)


class _Searched(_Negatives):
    """Options of sources that search. `answers`: exclude passages that contain an answer."""

    depth: int = Field(default=50, ge=1)  # size of the pool: number of top hits to draw from
    answers: bool = True

    @property
    def answer_kind(self) -> AnswerKind | None:
        """How answers are matched, None if they are not."""
        return "string" if self.answers else None


class _Skipping(_Searched):
    skip: int = Field(default=0, ge=0)  # number of top hits to skip, which are often unlabelled positives


class Given(_Negatives):
    """The negatives in the data."""

    source: Literal["given"]


class Mined(_Skipping):
    """Passages found once, before the first step, by a lens of a collection of all training passages.

    `model` is the model folder of lenses that need one; None: the bundled model.
    """

    source: Literal["mined"]
    lens: str = "bm25"
    model: str | None = None


class Bag(_Searched):
    """Passages found at each step in an index of token bags, with the query weights of the model in training.

    The index has no parameters, so it never becomes stale.
    """

    source: Literal["bag"]


class Refreshed(_Skipping):
    """Passages found by the model in training every `every` steps; until the first search, the negatives in the data."""

    source: Literal["refresh"]
    every: int = Field(default=200, ge=1)  # steps between searches
    lens: Head = "dense"


class Random(_Negatives):
    """Any passages."""

    source: Literal["random"]


AnyNegatives = Given | Mined | Bag | Refreshed | Random


def _as_list(value: Any) -> Any:
    """A single source is a list of one."""
    return [{"source": "given"} | dict(value)] if isinstance(value, Mapping) else value


NegativeSources = Annotated[
    list[Annotated[AnyNegatives, Field(discriminator="source")]], Field(min_length=1), BeforeValidator(_as_list)
]

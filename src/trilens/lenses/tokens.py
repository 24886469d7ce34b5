"""The lens `tokens`: bags of tokens, which need no model for documents; queries are vocabulary weights (VDR's β search)."""

from typing import Annotated

from pydantic import Field

from trilens.encode.encoder import Encoder
from trilens.lenses.lens import Colour, LensType
from trilens.lenses.sparse import SparseParams, VocabularyLens
from trilens.lenses.term_settings import SparseConfig


class TokensParams(SparseParams):
    """Search parameters of the lens `tokens`.

    bags        factor of the product of the bags of query and passage, which is added to the score
    """

    bags: Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)] = 0.0


class TokensLens(VocabularyLens):
    """Indexes the tokens of each passage and, if the term weighting asks for it, how often they occur."""

    name = "tokens"
    field = "bag"

    @property
    def encoder(self) -> Encoder:  # type: ignore[override]
        """The tokenizer of the model."""
        return self.model.bags


TOKENS = LensType(
    name="tokens",
    description="tokens of the passage, matched by the query's weights over the vocabulary",
    colour=Colour("#b8406f", "#f089b1"),
    make=lambda setup: TokensLens(setup.model, setup.config, setup.weighting),
    heads=("sparse",),
    config=SparseConfig,
    config_key="sparse",
    params=TokensParams,
    expansion="vocabulary feedback",
)

"""The lens `lexical`: learned weights of a text's own tokens (BGE-M3)."""

from collections.abc import Sequence

from trilens.encode.encoder import Encoder
from trilens.encode.reading import Side
from trilens.lenses.lens import Colour, LensType
from trilens.lenses.sparse import own_tokens
from trilens.lenses.term_lens import OwnTerms, TermLens
from trilens.lenses.term_settings import IdfParams, SparseConfig


class LexicalLens(TermLens):
    """Indexes the weights of each passage's tokens."""

    name = "lexical"
    field = "lexical"

    @property
    def encoder(self) -> Encoder:  # type: ignore[override]
        """The lexical head of the model."""
        return self.model.heads_encoder("lexical")

    def term_texts(self, terms: Sequence[int]) -> list[str]:
        """Terms as tokens."""
        return self.model.tokens.token_texts(terms)

    def matched_texts(self, terms: Sequence[int], query: str) -> list[str]:
        """Terms as the query's tokens: a term stands for all tokens of one stem, and is numbered after the first of them."""
        ids = self.model.tokens.read_tokens(query, "query").ids
        forms = dict(zip(self.model.tokens.lexical_terms(ids).tolist(), ids.tolist(), strict=True))
        return self.term_texts([forms.get(term, term) for term in terms])

    def own_terms(self, text: str, side: Side) -> OwnTerms:
        """The tokens of a text as terms."""
        return own_tokens(self.model, text, side, self.model.tokens.lexical_terms)


LEXICAL = LensType(
    name="lexical",
    description="learned weights of the passage's own tokens",
    colour=Colour("#7b4fc9", "#b799f7"),
    make=lambda setup: LexicalLens(setup.model, setup.config, setup.weighting),
    heads=("lexical",),
    config=SparseConfig,
    config_key="sparse",
    params=IdfParams,
    expansion="vocabulary feedback",
)

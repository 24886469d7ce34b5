"""The lens `sparse`: weights over a model's whole vocabulary, with terms that the model adds to a text (VDR, SPLADE)."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from trilens.encode.encoder import Encoded, Encoder
from trilens.encode.model import ModelEncoder
from trilens.encode.reading import Side
from trilens.encode.terms import Pruning
from trilens.index.exact import exact_sparse
from trilens.index.term_weighting import weight_docs, weight_queries
from trilens.kernels.array_types import Float32s
from trilens.lenses.lens import Colour, ExplainTarget, LensType
from trilens.lenses.parts import ScoreParts, Span
from trilens.lenses.term_lens import EncodedField, OwnTerms, TermLens
from trilens.lenses.term_settings import IdfParams, SparseConfig, Top, require_terms
from trilens.represent import Sparse


class SparseParams(IdfParams):
    """Search parameters of the lenses `sparse` and `tokens`.

    query       weights: the query's vocabulary weights; bag: its bag of tokens, which needs no model at query time
    top         number of highest weights of the query that are kept, or "all"; None: the default of the model
    own         whether the weights of the query's own tokens are kept as well; None: the default of the model
    """

    query: Literal["weights", "bag"] = "weights"
    top: Top | None = None
    own: Annotated[bool, Field(strict=True)] | None = None

    def model_post_init(self, _context: Any) -> None:
        """Refuse to keep nothing, and settings of weights for bags."""
        require_terms(self.top, self.own)
        fields = {"top": self.top, "own": self.own, "bags": getattr(self, "bags", 0.0) or None}
        if self.query == "bag" and (given := [name for name, value in fields.items() if value is not None]):
            raise ValueError(f"query is bag, and {given[0]} is given; expected it for query=weights only")


class VocabularyLens(TermLens):
    """A lens over the vocabulary of a model's sparse head."""

    def query_encoder(self, params: SparseParams | None = None) -> Encoder:
        """The sparse head, or the tokenizer alone for a bag of tokens."""
        if self.query_field(params) == "bag":
            return self.model.bags
        return self.model.heads_encoder("sparse", pruning=Pruning(params.top, params.own) if params else None)

    def query_field(self, params: SparseParams | None = None) -> EncodedField:
        """Vocabulary weights unless the params ask for a bag of tokens."""
        return "bag" if params is not None and params.query == "bag" else "sparse"

    def term_texts(self, terms: Sequence[int]) -> list[str]:
        """Terms as words."""
        return self.model.tokens.term_texts(terms)

    def own_terms(self, text: str, side: Side) -> OwnTerms:
        """The tokens of a text as terms."""
        return own_tokens(self.model, text, side, self.model.tokens.token_terms)


class SparseLens(VocabularyLens):
    """Indexes vocabulary weights."""

    name = "sparse"
    field = "sparse"

    @property
    def encoder(self) -> Encoder:  # type: ignore[override]
        """The sparse head of the model, with as many terms as the configuration keeps."""
        return self.model.heads_encoder("sparse", pruning=Pruning(self.config.top, self.config.own))

    def score_texts(self, queries: Sequence[str], texts: Sequence[str]) -> Float32s:
        """Inner products of queries and texts, without IDF: document frequencies exist only for indexed terms."""
        query_vectors, doc_vectors = self._encode_late(queries, texts)
        top = exact_sparse(query_vectors, doc_vectors, max(1, len(texts)))
        scores = np.zeros((len(queries), len(texts)), np.float32)
        np.put_along_axis(scores, top.rows, top.scores, axis=1)
        return scores

    def explain_text(self, target: ExplainTarget) -> ScoreParts:
        """The parts of a late score."""
        query, passage = self._encode_late([target.query], [target.passage])
        return self.explain_terms(target, query, (passage.terms, passage.weights))

    def _encode_late(self, queries: Sequence[str], texts: Sequence[str]) -> tuple[Sparse, Sparse]:
        encoded: Encoded = self.query_encoder().encode_queries(queries)
        assert encoded.sparse is not None
        docs = weight_docs(self.encoder.encode_docs(texts), "sparse", self.weighting)
        return weight_queries(encoded.sparse, encoded.bag, self.weighting), docs


def own_tokens(model: ModelEncoder, text: str, side: Side, terms_of: Any) -> OwnTerms:
    """The terms of a text's tokens with their spans; `terms_of` maps token ids to terms."""
    tokens = model.tokens.read_tokens(text, side)
    spans: dict[int, list[Span]] = {}
    for term, place in zip(terms_of(tokens.ids).tolist(), tokens.places, strict=True):
        if place:
            spans.setdefault(term, []).append((place.start, place.end))
    return OwnTerms(spans)


SPARSE = LensType(
    name="sparse",
    description="weights over the vocabulary: words of the passage and words that the model adds",
    colour=Colour("#c06c0a", "#f0a94a"),
    make=lambda setup: SparseLens(setup.model, setup.config, setup.weighting),
    heads=("sparse",),
    config=SparseConfig,
    params=SparseParams,
    expansion="vocabulary feedback",
    late=True,
)

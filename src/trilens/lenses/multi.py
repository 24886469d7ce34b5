"""The lens `multi`: one vector per token, compared by MaxSim: the best document token for each query token, summed.

(Khattab & Zaharia 2020, "ColBERT", eq. 3.) Vectors are quantised (index/codebook.py). Three search methods read the same files:

exact   decode and compare everything: the oracle
plaid   candidates from the best centroids of each query token, pruned by their near tokens, re-scored by MaxSim over all
        tokens (after PLAID, Santhanam et al. 2022)
xtr     score only the tokens near the best centroids and impute the others (Lee et al. 2023; by k', or as WARP does),
        optionally with MaxSim for the best (ColXTR)
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from trilens.encode.encoder import Encoded, Encoder
from trilens.encode.model import HeadEncoder, TokenReader
from trilens.encode.reading import ReadTokens
from trilens.errors import BadInput, CollectionDamaged
from trilens.index.codebook import Codebook, Page, centroid_count, train_page
from trilens.index.multi_params import MultiParams, default_settings
from trilens.index.multi_part import MultiPart
from trilens.index.multi_search import TokenSearcher
from trilens.index.topk import TopK
from trilens.kernels.array_types import Float32s, Float64s, Int64s, Mask
from trilens.kernels.token_lists import pool_tokens
from trilens.lenses.alignment import Alignment
from trilens.lenses.lens import Colour, ExplainTarget, Lens, LensConfig, LensType, Searcher
from trilens.lenses.parts import Match, ScoreParts, Span, with_rest
from trilens.lenses.statistics import ScaleSums
from trilens.represent import Multi
from trilens.represent.ragged import offsets_of

SEED = 1234
WARN_DRIFT, WARN_FEWER = 1.04, 4  # from which `info` advises to retrain the codebook
FEW_TOKENS = 1000  # the quantisation error of fewer tokens is noise
ADVICE = "the codebook was trained on fewer or different documents; `trilens optimize --retrain` trains a new one"
DRIFT = 1.2  # times the error at training: a batch with a larger error gets centroids of its own
MOST_CENTROIDS = 4  # times those that a batch alone would need: beyond that, drift adds no more
NORMALISED = 1e-3  # largest deviation from 1 in the length of normalised vectors
SAMPLE_TOKENS = 16_384
LEAST_SHARE = 0.43  # of the way from a random passage to equal tokens, below which a match is weak: benchmarks/LOG.md


class MultiConfig(LensConfig):
    """Quantisation of token vectors.

    bits        bits per dimension of the residual
    centroids   number of centroids; None: as many as PLAID takes
    pool        one vector per this many document tokens; 2 halves the index and costs little quality
    """

    bits: int = Field(default=4)
    centroids: int | None = Field(default=None, ge=1)
    pool: int = Field(default=1, ge=1)

    def model_post_init(self, _context: Any) -> None:
        """Refuse a number of bits that does not fill a byte."""
        if self.bits not in (1, 2, 4):
            raise ValueError(f"bits is {self.bits}; expected 1, 2 or 4")


DEFAULT = MultiConfig()


class MultiLens(Lens):
    """Indexes one quantised vector per token."""

    name = "multi"
    shares = True

    def __init__(self, encoder: Encoder, config: MultiConfig = DEFAULT) -> None:
        self.encoder = encoder
        self.config = config

    def share(self, encoded: Encoded, shared: Sequence[Page], folder: Path) -> bool:
        """Train the codebook on the first tokens; append a page when a batch is far larger or drifts from earlier ones."""
        vectors = self.tokens(encoded).vectors
        if not len(vectors):
            return False
        wanted = self.config.centroids or centroid_count(len(vectors))
        if not shared:
            _require_dim(vectors.shape[1], self.config.bits)
            normalised = bool((np.abs(np.linalg.norm(vectors, axis=1) - 1) < NORMALISED).all())
            train_page(vectors, min(wanted, len(vectors)), self.config.bits, normalised, SEED).save(folder)
            return True
        codebook = Codebook(shared)
        more = 0 if self.config.centroids else wanted - len(codebook.centroids)
        sample = vectors[:: max(1, len(vectors) // SAMPLE_TOKENS)]
        room = len(codebook.centroids) < MOST_CENTROIDS * wanted
        if more <= 0 and room and codebook.encode(sample)[1].mean() > DRIFT * codebook.error:
            more = max(1, wanted // 2)
        if more <= 0:
            return False
        errors = codebook.encode(vectors)[1]
        outliers = vectors[errors >= np.median(errors)]
        count, seed = min(more, len(outliers)), SEED + len(shared)
        train_page(outliers, count, self.config.bits, codebook.normalise, seed, codebook).save(folder)
        return True

    def open_shared(self, folder: Path) -> Page:
        """Map a page of the codebook."""
        return Page.open(folder)

    def build(self, encoded: Encoded, folder: Path, shared: Sequence[Page] = ()) -> None:
        """Write the codes of one segment."""
        MultiPart.build(self.tokens(encoded), shared, folder)

    def merge(self, parts: Sequence[MultiPart], keep: Sequence[Mask], folder: Path, shared: Sequence[Page] = ()) -> None:
        """Write the codes of the kept rows."""
        MultiPart.merge(parts, keep, shared, folder)

    def open(self, folder: Path) -> MultiPart:
        """Map a part."""
        return MultiPart.open(folder)

    def searcher(self, parts: Sequence[MultiPart], live: Sequence[Mask | None], shared: Sequence[Page] = ()) -> "MultiSearcher":
        """A searcher over these parts."""
        return MultiSearcher(self, parts, live, Codebook(shared) if shared else None)

    def is_separable(self, params: MultiParams | None = None) -> bool:
        """Imputed similarities depend on the tokens that a search retrieves."""
        return params is None or not default_settings(params, 1, 1).imputes

    def figures(self, parts: Sequence[MultiPart], shared: Sequence[Page] = ()) -> dict[str, Any]:
        """How well the codebook fits the collection: a drift above 1 means that later documents fit it worse."""
        tokens = sum(len(part.codes) for part in parts)
        if not shared or not tokens:
            return {"tokens": 0}
        codebook = Codebook(shared)
        error = sum(part.error for part in parts) / tokens
        wanted = self.config.centroids or centroid_count(tokens)
        worn = tokens >= FEW_TOKENS and (error > WARN_DRIFT * codebook.error or len(codebook.centroids) * WARN_FEWER < wanted)
        return {
            "tokens": tokens,
            "dimensions": codebook.dim,
            "bits": codebook.bits,
            "centroids": len(codebook.centroids),
            "centroids of a fresh codebook": wanted,
            "error": round(error, 5),
            "error at training": round(codebook.error, 5),
            "drift": round(error / max(codebook.error, 1e-9), 3),
        } | ({"advice": ADVICE} if worn else {})

    def tokens(self, encoded: Encoded) -> Multi:
        """The token vectors of a batch that are indexed: pooled if the configuration says so."""
        multi = _multi(encoded)
        if not np.isfinite(multi.vectors).all():
            raise BadInput("the model computed token vectors with NaN or infinite values; check the model folder")
        if self.config.pool == 1:
            return multi
        offsets, vectors, first = pool_tokens(multi.offsets, multi.vectors, self.config.pool)
        lengths = np.linalg.norm(multi.vectors, axis=1)
        if (np.abs(lengths - 1) < NORMALISED).all():
            vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return Multi(offsets, vectors, multi.tokens[first])


class MultiSearcher(Searcher):
    """Searches the token codes of all parts."""

    def __init__(
        self, lens: MultiLens, parts: Sequence[MultiPart], live: Sequence[Mask | None], codebook: Codebook | None
    ) -> None:
        super().__init__(parts, live)
        self._lens = lens
        self.tokens = TokenSearcher(codebook, parts, live)

    def search(
        self, queries: Encoded, k: int, allowed: Mask | None = None, exact: bool = False, params: MultiParams | None = None
    ) -> TopK:
        """The k best rows by MaxSim (xtr without candidates: by the imputed score). Rows without tokens are never found."""
        return self.tokens.search(_multi(queries), k, allowed, exact, params)

    def score(self, queries: Encoded, rows: Int64s, params: MultiParams | None = None, allowed: Mask | None = None) -> Float32s:
        """MaxSim, or the imputed score, of the rows (queries, n) of each query; -inf for -1 and for rows without tokens."""
        return self.tokens.score(_multi(queries), rows, params, allowed)

    def explain(self, target: ExplainTarget) -> ScoreParts:
        """One part per query token, in order; none if query or passage have no tokens."""
        alignment = self.align(target)
        if alignment is None or target.score is None:
            return ScoreParts([])
        return ScoreParts(with_rest(alignment.parts(), target.score), matrix=alignment.matrix())

    def matches(self, query: Encoded, rows: Sequence[int], texts: Sequence[str], params: Any = None) -> list[list[Match]]:
        """The token of each text that is most similar to each query token, weighted by the similarity.

        Pooled tokens have no place, because nothing stored says which ones were joined.
        """
        vectors, model = _multi(query).vectors, _token_reader(self._lens.encoder)
        return [
            self._matches(vectors, row, _spans(model.read_tokens(text, "doc", kept=True)))
            for row, text in zip(rows, texts, strict=True)
        ]

    def _matches(self, query: Float32s, row: int, spans: Sequence[Span | None]) -> list[Match]:
        vectors = self.tokens.decode(row)
        if not len(query) or not len(vectors) or len(vectors) != len(spans):
            return []
        similarities = query @ vectors.T
        best = zip(similarities.argmax(axis=1).tolist(), similarities.max(axis=1).tolist(), strict=True)
        found = ((part, spans[token], weight) for part, (token, weight) in enumerate(best))
        return [Match(part, span[0], span[1], weight) for part, span, weight in found if span and weight > 0]

    def vectors(self, rows: Int64s) -> Multi:
        """The decoded token vectors of rows. Which tokens they are is not stored: their ids are -1."""
        decoded = [self.tokens.decode(row) for row in rows.tolist()]
        vectors = np.concatenate(decoded)
        return Multi(offsets_of(np.array([len(one) for one in decoded])), vectors, np.full(len(vectors), -1, np.int32))

    def query_vectors(self, queries: Encoded, params: Any = None) -> Multi:
        """The token vectors of queries."""
        return _multi(queries)

    def scale_sums(self, queries: Encoded, params: Any = None) -> ScaleSums:
        """From the scores of random passages to a passage with the tokens of the query."""
        length = self.tokens.length * len(self.sample.rows)
        return self.sum_scales(queries, params, self.token_mass(queries) * length, LEAST_SHARE)

    def token_mass(self, queries: Encoded) -> Float64s:
        """The total weight of each query's tokens."""
        return _multi(queries).sizes().astype(np.float64)

    def align(self, target: ExplainTarget) -> Alignment | None:
        """The alignment of a query with one row; None if one of them has no tokens."""
        model = _token_reader(self._lens.encoder)
        query, made = _multi(target.encoded), _multi(self._lens.encoder.encode_docs([target.passage]))
        # Pooling joins tokens; each group is shown by its first token.
        numbered = Multi(made.offsets, made.vectors, np.arange(len(made.tokens), dtype=np.int32))
        shown = self._lens.tokens(Encoded(multi=numbered)).tokens
        texts = (model.token_texts(query.tokens.tolist()), model.token_texts(made.tokens[shown].tolist()))
        doc_spans = _spans(model.read_tokens(target.passage, "doc", kept=True))
        spans = (_spans(model.read_tokens(target.query, "query", kept=True)), [doc_spans[token] for token in shown])
        return align(self.tokens, query.vectors, target.row, texts, target.params, spans)


def align(
    searcher: TokenSearcher,
    query: Float32s,
    row: int,
    texts: tuple[list[str], list[str]],
    params: MultiParams | None,
    spans: tuple[list[Span | None], list[Span | None]],
) -> Alignment | None:
    """The alignment of the token vectors of a query with a row; None if one of them has no tokens.

    `texts` are the tokens of query and row, `spans` their places in the two texts.
    """
    vectors = searcher.decode(row)
    if not len(vectors) or not len(query):
        return None
    if len(texts[1]) != len(vectors):
        raise CollectionDamaged(
            f"a passage has {len(texts[1])} tokens, its row in the index {len(vectors)}; run `trilens check`"
        )
    similarities = query @ vectors.T
    retrieved = np.ones(similarities.shape, np.bool_)
    floors = np.full(len(similarities), -np.inf, np.float32)
    settings = searcher.settings(params, 1)  # whether similarities are imputed does not depend on k
    if settings.imputes:
        centroids = searcher.look(query, settings)
        floors = searcher.imputed(centroids, settings)
        similarities, retrieved = searcher.compare(centroids, row)
    return Alignment(*texts, similarities, retrieved, floors, np.linalg.norm(query, axis=1), *spans)


def _token_reader(encoder: Encoder) -> TokenReader:
    if isinstance(encoder, HeadEncoder):
        return encoder.model.tokens
    assert isinstance(encoder, TokenReader)
    return encoder


def _spans(tokens: ReadTokens) -> list[Span | None]:
    return [(place.start, place.end) if place else None for place in tokens.places]


def _require_dim(dim: int, bits: int) -> None:
    if dim * bits % 128:
        raise BadInput(f"token vectors have {dim} dimensions; expected a multiple of {128 // bits} for {bits} bits")


def _multi(encoded: Encoded) -> Multi:
    assert encoded.multi is not None
    return encoded.multi


MULTI = LensType(
    name="multi",
    description="one vector per token: each query token finds its best match in the passage",
    colour=Colour("#4f8a10", "#9bd05a"),
    make=lambda setup: MultiLens(setup.model.heads_encoder("multi"), setup.config),
    heads=("multi",),
    config=MultiConfig,
    params=MultiParams,
    score_params=False,
)

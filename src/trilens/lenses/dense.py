"""The lens `dense`: one vector per passage, compared by inner product.

Segments below `ann_rows` rows are searched exactly. Larger ones have a faiss IVF index that proposes candidates, if faiss is
installed; scores are always computed from the full vectors, so a score does not depend on how its row was found.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from trilens.encode.encoder import Encoded, Encoder
from trilens.encode.model import HeadEncoder, TokenReader
from trilens.encode.tokens import TokenPlace
from trilens.errors import BadInput, CollectionDamaged
from trilens.index.dense_part import DensePart
from trilens.index.exact import offer_dense, require_same_dim
from trilens.index.ivf_file import has_faiss
from trilens.index.topk import Heaps, TopK
from trilens.kernels.array_types import Float32s, Float64s, Int64s, Mask
from trilens.kernels.dense import score_vectors
from trilens.kernels.topk import offer_rows
from trilens.lenses.lens import Colour, ExplainTarget, Lens, LensConfig, LensType, Searcher, require_alike
from trilens.lenses.occlusion import parts_by_leaving_out
from trilens.lenses.parts import Part, ScoreParts, with_rest
from trilens.lenses.statistics import ScaleSums
from trilens.represent import Dense
from trilens.text.passages import WORD

OVERSAMPLE = 4  # candidates per requested row: 8-bit codes change the order only a little
# A larger difference between the parts and the score is not rounding: the vector is not the mean of the token states.
ROUNDING = 1e-3
MOST_OCCLUDED = 512
INSTALL = "large segments are searched exactly; run `pip install 'trilens[faiss]'` to search them approximately"
REBUILD = "large segments have no approximate index; run `trilens optimize --retrain` to build it"
LEAST_SHARE = 0.4  # of the way from a random passage to an equal vector, below which a match is weak: benchmarks/LOG.md


class DenseConfig(LensConfig):
    """`probed_share` is the share of inverted lists that an approximate search reads. Catalogs store it as `probes`."""

    ann_rows: int = Field(default=50_000, ge=256)
    probed_share: float = Field(default=1 / 8, gt=0, le=1, validation_alias="probes", serialization_alias="probes")


DEFAULT = DenseConfig()


class DenseLens(Lens):
    """Indexes one vector per passage."""

    name = "dense"

    def __init__(self, encoder: Encoder, config: DenseConfig = DEFAULT) -> None:
        self.encoder = encoder
        self.config = config

    def build(self, encoded: Encoded, folder: Path, shared: Sequence[Any] = ()) -> None:
        """Write the vectors of one segment."""
        vectors = _dense(encoded)
        if not np.isfinite(vectors.vectors).all():
            raise BadInput("the model computed vectors with NaN or infinite values; check the model folder")
        DensePart.build(vectors, self.config.ann_rows, folder)

    def merge(self, parts: Sequence[DensePart], keep: Sequence[Mask], folder: Path, shared: Sequence[Any] = ()) -> None:
        """Write the vectors of the kept rows."""
        DensePart.merge(parts, keep, self.config.ann_rows, folder)

    def open(self, folder: Path) -> DensePart:
        """Map a part."""
        return DensePart.open(folder)

    def searcher(self, parts: Sequence[DensePart], live: Sequence[Mask | None], shared: Sequence[Any] = ()) -> "DenseSearcher":
        """A searcher over these parts."""
        return DenseSearcher(self, parts, live)

    def figures(self, parts: Sequence[DensePart], shared: Sequence[Any] = ()) -> dict[str, Any]:
        """Advice if a large segment has no approximate index: it was written or is read without faiss."""
        if all(part.ann is not None or len(part) < self.config.ann_rows for part in parts):
            return {}
        return {"advice": REBUILD if has_faiss() else INSTALL}

    def mix_passages(self, queries: Encoded, passages: Encoded) -> Encoded:
        """The normalised mean of query vector and passage vector (Gao et al. 2022, "HyDE")."""
        mean = (_dense(queries).vectors + _dense(passages).vectors) / 2
        lengths = np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), 1e-12)
        return replace(queries, dense=Dense(np.ascontiguousarray(mean / lengths, np.float32)))


class DenseSearcher(Searcher):
    """Searches each part exactly or through its IVF index, depending on its size and the number of allowed rows."""

    def __init__(self, lens: DenseLens, parts: Sequence[DensePart], live: Sequence[Mask | None]) -> None:
        super().__init__(parts, live)
        require_alike({part.dense.dim for part in parts}, "vectors of {} dimensions")
        self._lens = lens

    def search(self, queries: Encoded, k: int, allowed: Mask | None = None, exact: bool = False, params: Any = None) -> TopK:
        """The k best rows by inner product."""
        vectors = _dense(queries)
        if self._parts:
            require_same_dim(vectors, self._parts[0].dense)
        heaps = Heaps(len(vectors), k)
        for i, part in enumerate(self._parts):
            mask, first_row = self._mask(i, allowed), self._first_rows[i]
            if exact or not self._offer_near(part, vectors, k, mask, first_row, heaps):
                offer_dense(vectors, part.dense, heaps, first_row, mask)
        return heaps.sorted()

    def score(self, queries: Encoded, rows: Int64s, params: Any = None, allowed: Mask | None = None) -> Float32s:
        """The inner products of the rows (queries, n) with each query; -inf where a row is -1."""
        vectors = _dense(queries)
        scores = np.full(rows.shape, -np.inf, np.float32)
        for first_row, part in zip(self._first_rows[:-1], self._parts, strict=True):
            require_same_dim(vectors, part.dense)
            score_vectors(vectors.vectors, part.dense.vectors, rows, first_row, scores)
        return scores

    def vectors(self, rows: Int64s) -> Dense:
        """The vectors of rows."""
        return Dense.concat([self._parts[i].dense.take(local) for i, local in self._by_part(rows)])

    def query_vectors(self, queries: Encoded, params: Any = None) -> Dense:
        """The vectors of queries."""
        return _dense(queries)

    def scale_sums(self, queries: Encoded, params: Any = None) -> ScaleSums:
        """From the scores of random passages to a passage with the vector of the query."""
        lengths = np.linalg.norm(_dense(queries).vectors.astype(np.float64), axis=1)
        return self.sum_scales(queries, params, lengths * self.sample.sum_lengths(self._length), LEAST_SHARE)

    def _length(self, row: int) -> float:
        i, part_row = self._locate(row)
        return float(np.linalg.norm(self._parts[i].dense.vectors[part_row]))

    def explain(self, target: ExplainTarget) -> ScoreParts:
        """One part per word of the passage, in text order, plus the share of special tokens.

        The vector of a mean-pooled model is the normalised sum of its token states s, so the score decomposes exactly:
        q · d = Σ_t ⟨q, s_t⟩ / ‖Σ s‖. For any other model the parts are the drops in score when each word is left out
        (occlusion), which is not a decomposition and therefore marked as approximate.
        """
        if target.score is None:
            return ScoreParts([])
        query = _dense(target.encoded).vectors[0].astype(np.float64)
        parts = self._state_parts(target, query, target.score)
        if parts is not None:
            return ScoreParts(parts)
        return ScoreParts(self._occlusion_parts(target, query, target.score), approximate=True)

    def _offer_near(self, part: DensePart, queries: Dense, k: int, mask: Mask | None, first_row: int, heaps: Heaps) -> bool:
        """Offer the candidates of the IVF index; False if an exact search is as cheap, or the index proposed too few."""
        share = self._lens.config.probed_share
        rows = len(part) if mask is None else int(mask.sum())
        wanted = min(rows, OVERSAMPLE * k)
        # An approximate search reads a share of all rows, allowed or not; fewer allowed rows than that are scored exactly.
        if part.ann is None or rows < max(len(part) * share, wanted / share):
            return False
        import faiss

        selector = None
        if mask is not None:
            bits = np.packbits(mask, bitorder="little")
            selector = faiss.IDSelectorBitmap(len(bits), faiss.swig_ptr(bits))
        parameters: Any = faiss.SearchParametersIVF  # its keyword arguments are added at run time
        settings = parameters(sel=selector, nprobe=max(1, int(part.ann.nlist * share)))
        _, candidates = part.ann.search(np.ascontiguousarray(queries.vectors), wanted, params=settings)
        if candidates.max(initial=-1) >= len(part):
            raise CollectionDamaged(f"the faiss index of a segment names a row above {len(part) - 1}; run `trilens check`")
        if ((candidates >= 0).sum(axis=1) < min(k, rows)).any():
            return False
        vectors = part.dense.vectors[np.maximum(candidates, 0)]
        scores = np.einsum("qd,qcd->qc", queries.vectors, vectors, dtype=np.float32)
        candidate_rows: Int64s = np.where(candidates >= 0, candidates + first_row, -1)
        offer_rows(scores, candidate_rows, heaps.scores, heaps.rows)
        return True

    def _state_parts(self, target: ExplainTarget, query: Float64s, score: float) -> list[Part] | None:
        encoder = self._lens.encoder
        model = encoder.model.encoder if isinstance(encoder, HeadEncoder) else encoder
        if not isinstance(model, TokenReader):
            return None
        states = model.doc_states(target.passage)
        if states is None or states.shape[1] != len(query):
            return None
        states = states.astype(np.float64)
        shares = states @ query / max(float(np.linalg.norm(states.sum(axis=0))), 1e-12)
        if abs(shares.sum() - score) > ROUNDING:
            return None
        places = model.read_tokens(target.passage, "doc").places[: len(shares)]
        parts, special = _word_parts(target.passage, places, shares)
        parts.append(Part("special tokens", special, "rest"))
        return with_rest(parts, score)

    def _occlusion_parts(self, target: ExplainTarget, query: Float64s, score: float) -> list[Part]:
        def of_texts(texts: list[str]) -> Float64s:
            return _dense(self._lens.encoder.encode_docs(texts)).vectors.astype(np.float64) @ query

        spans = [match.span() for match in WORD.finditer(target.passage)][:MOST_OCCLUDED]
        return with_rest(parts_by_leaving_out(target.passage, spans, of_texts), score, "all words together")


def _word_parts(text: str, places: Sequence[TokenPlace | None], shares: Float64s) -> tuple[list[Part], float]:
    """The token shares summed by word, and the share of tokens that are not part of the text."""
    sums: dict[int, list[float]] = {}
    spans: dict[int, tuple[int, int]] = {}
    special = 0.0
    for number, (place, share) in enumerate(zip(places, shares.tolist(), strict=True)):
        if place is None:
            special += share
            continue
        word = place.word if place.word >= 0 else -2 - number
        first, last = spans.get(word, (place.start, place.end))
        spans[word] = (min(first, place.start), max(last, place.end))
        sums.setdefault(word, []).append(share)
    parts = [Part(text[slice(*spans[word])], sum(values), "token", doc_spans=(spans[word],)) for word, values in sums.items()]
    return parts, special


def _dense(encoded: Encoded) -> Dense:
    assert encoded.dense is not None
    return encoded.dense


DENSE = LensType(
    name="dense",
    description="the meaning of a passage as one vector",
    colour=Colour("#0b8a7d", "#3fcbb9"),
    make=lambda setup: DenseLens(setup.model.heads_encoder("dense"), setup.config),
    heads=("dense",),
    config=DenseConfig,
    hyde=True,
    batch_rows=65_536,
)

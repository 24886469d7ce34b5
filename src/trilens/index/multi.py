"""The multi lens: one vector per token, compared by MaxSim: for each query token its best document token, summed.

(Khattab & Zaharia 2020, "ColBERT", eq. 3.) Vectors are kept as codes (index/codebook.py). Three searchers read the same
files, chosen for each query:

exact   decode everything and compare: the oracle
plaid   the rows near the best centroids of each query token, the most promising of them by their near tokens, and MaxSim over
        all tokens for the best (after PLAID, Santhanam et al. 2022)
xtr     score only the tokens near the best centroids and impute the others (Lee et al. 2023; by k', or as WARP does), with
        MaxSim for the best if asked (ColXTR)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from trilens.encode.encoder import Encoded, Encoder
from trilens.errors import BadInput
from trilens.index.codebook import CODE_ARRAYS, Codebook, Codes, Page, centroid_count, train_page
from trilens.index.lens import Mask
from trilens.index.multi_search import MultiSearcher
from trilens.kernels.token_lists import count_lists, fill_lists, pool_tokens
from trilens.represent import Multi
from trilens.represent.arrays import create_array, open_array, save_arrays
from trilens.represent.ragged import concat_offsets

SEED = 1234
DRIFT_TOLD, FEWER_TOLD = 1.04, 4  # when the user is told that the codebook does not fit any more
FEW_TOKENS = 1000  # the error of fewer is chance
ADVICE = "the codebook was made for fewer or other documents; `trilens optimize --retrain` makes one that fits"
DRIFT = 1.2  # times the error at training: from here on a batch gets centroids of its own
MOST_CENTROIDS = 4  # times those that a batch alone would ask for: then no more are added because of drift
NORMALISED = 1e-3  # how far from 1 the lengths of normalised vectors are at most
COPY_ROWS = 4096
SAMPLE_TOKENS = 16_384

Floats = NDArray[np.float32]


class MultiConfig(BaseModel):
    """`bits` per dimension of what a centroid leaves over. `centroids`: None for as many as PLAID takes.

    `pool`: one vector for every so many tokens of a document; 2 halves the index and costs little quality.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    bits: int = Field(default=4)
    centroids: int | None = Field(default=None, ge=1)
    pool: int = Field(default=1, ge=1)

    def model_post_init(self, _context: Any) -> None:
        """Refuse a number of bits that does not fill a byte."""
        if self.bits not in (1, 2, 4):
            raise ValueError(f"bits is {self.bits}; expected 1, 2 or 4")


DEFAULT = MultiConfig()


@dataclass(frozen=True, eq=False, slots=True)
class MultiPart:
    """One segment: row i has the tokens `offsets[i]:offsets[i + 1]` of `codes`; centroid c is near some token of the rows
    `list_rows[list_ptr[c]:list_ptr[c + 1]]`. `error` is the sum of squared errors of all tokens."""

    offsets: NDArray[np.int64]
    codes: Codes
    list_ptr: NDArray[np.int64]
    list_rows: NDArray[np.int32]
    error: float

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @staticmethod
    def open(folder: Path) -> "MultiPart":
        """Map a part that `MultiLens` wrote."""
        codes = Codes(*(open_array(folder, name) for name in CODE_ARRAYS))
        offsets, list_ptr, list_rows, error = (
            open_array(folder, name) for name in ("offsets", "list_ptr", "list_rows", "error")
        )
        return MultiPart(offsets, codes, list_ptr, list_rows, float(error))


class MultiLens:
    """Every query token finds its best token in the document."""

    name = "multi"

    def __init__(self, encoder: Encoder, config: MultiConfig = DEFAULT) -> None:
        self.encoder = encoder
        self.config = config

    def share(self, encoded: Encoded, shared: Sequence[Page], folder: Path) -> bool:
        """Train the codebook with the first tokens; add a page when a batch is far larger or quite unlike what came before."""
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
        drawn = vectors[:: max(1, len(vectors) // SAMPLE_TOKENS)]
        room = len(codebook.centroids) < MOST_CENTROIDS * wanted
        if more <= 0 and room and codebook.encode(drawn)[1].mean() > DRIFT * codebook.error:
            more = max(1, wanted // 2)
        if more <= 0:
            return False
        errors = codebook.encode(vectors)[1]
        strangers = vectors[errors >= np.median(errors)]
        count, seed = min(more, len(strangers)), SEED + len(shared)
        train_page(strangers, count, self.config.bits, codebook.normalise, seed, codebook).save(folder)
        return True

    def open_shared(self, folder: Path) -> Page:
        """Map a page of the codebook."""
        return Page.open(folder)

    def build(self, encoded: Encoded, folder: Path, shared: Sequence[Page]) -> None:
        """Write the codes of one segment."""
        multi = self.tokens(encoded)
        if not shared:  # no text so far had a token
            _save_empty(folder, len(multi))
            return
        codebook = Codebook(shared)
        codes, errors = codebook.encode(multi.vectors)
        save_arrays(folder, offsets=multi.offsets, **{name: getattr(codes, name) for name in CODE_ARRAYS})
        _save_lists(folder, multi.offsets, codes.nearest, len(codebook.centroids), float(errors.sum()))

    def merge(self, parts: Sequence[MultiPart], keep: Sequence[Mask], folder: Path, shared: Sequence[Page]) -> None:
        """Copy the codes of the kept rows piece by piece, and make their lists."""
        lengths = [np.diff(part.offsets)[mask] for part, mask in zip(parts, keep, strict=True)]
        offsets = concat_offsets([np.concatenate([[0], np.cumsum(some)]) for some in lengths])
        first = next((part for part in parts if len(part.codes)), parts[0])
        wide = np.result_type(*(part.codes.nearest.dtype for part in parts))
        arrays = {}
        for name in CODE_ARRAYS:
            like = getattr(first.codes, name)
            dtype = wide if name == "nearest" else like.dtype
            arrays[name] = create_array(folder, name, dtype, (int(offsets[-1]), *like.shape[1:]))
        to, error = 0, 0.0
        for part, mask in zip(parts, keep, strict=True):
            kept = 0
            for start in range(0, len(part), COPY_ROWS):
                rows = mask[start : start + COPY_ROWS]
                low, high = part.offsets[start], part.offsets[start + len(rows)]
                tokens = np.repeat(rows, np.diff(part.offsets[start : start + len(rows) + 1]))
                count = int(tokens.sum())
                for name, array in arrays.items():
                    array[to + kept : to + kept + count] = getattr(part.codes, name)[low:high][tokens]
                kept += count
            to += kept
            error += part.error * kept / max(1, len(part.codes))
        save_arrays(folder, offsets=offsets)
        _save_lists(folder, offsets, arrays["nearest"], sum(len(page.centroids) for page in shared), error)

    def open(self, folder: Path) -> MultiPart:
        """Map a part."""
        return MultiPart.open(folder)

    def searcher(self, parts: Sequence[MultiPart], live: Sequence[Mask | None], shared: Sequence[Page]) -> MultiSearcher:
        """A searcher over these parts."""
        return MultiSearcher(Codebook(shared) if shared else None, parts, live)

    def figures(self, parts: Sequence[MultiPart], shared: Sequence[Page]) -> dict[str, Any]:
        """How well the codebook fits what the collection holds: a drift over 1 means that later documents fit it worse."""
        tokens = sum(len(part.codes) for part in parts)
        if not shared or not tokens:
            return {"tokens": 0}
        codebook = Codebook(shared)
        error = sum(part.error for part in parts) / tokens
        wanted = self.config.centroids or centroid_count(tokens)
        worn = tokens >= FEW_TOKENS and (error > DRIFT_TOLD * codebook.error or len(codebook.centroids) * FEWER_TOLD < wanted)
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
        """The token vectors that are indexed of a batch: pooled if asked."""
        multi = encoded.multi
        assert multi is not None
        if not np.isfinite(multi.vectors).all():
            raise BadInput("the model gave token vectors with NaN or infinite values; check the model folder")
        if self.config.pool == 1:
            return multi
        offsets, vectors, first = pool_tokens(multi.offsets, multi.vectors, self.config.pool)
        lengths = np.linalg.norm(multi.vectors, axis=1)
        if (np.abs(lengths - 1) < NORMALISED).all():
            vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return Multi(offsets, vectors, multi.tokens[first])


def _require_dim(dim: int, bits: int) -> None:
    if dim * bits % 128:
        raise BadInput(f"token vectors have {dim} dimensions; expected a multiple of {128 // bits} for {bits} bits")


def _save_empty(folder: Path, rows: int) -> None:
    """A part whose rows have no tokens."""
    offsets, nearest = np.zeros(rows + 1, np.int64), np.zeros(0, np.uint16)
    no_bytes = np.zeros(0, np.uint8)
    save_arrays(folder, offsets=offsets, nearest=nearest, residuals=no_bytes[:, None], sizes=no_bytes, stretches=no_bytes)
    _save_lists(folder, offsets, nearest, 0, 0.0)


def _save_lists(folder: Path, offsets: NDArray[np.int64], nearest: NDArray[Any], centroids: int, error: float) -> None:
    list_ptr = count_lists(offsets, nearest, centroids)
    list_rows = create_array(folder, "list_rows", np.int32, (int(list_ptr[-1]),))
    fill_lists(offsets, nearest, list_ptr, list_rows)
    save_arrays(folder, list_ptr=list_ptr, error=np.array(error))

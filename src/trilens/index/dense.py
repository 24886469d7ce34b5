"""The dense lens: one vector per row, compared by inner product.

Up to `ann_rows` rows a segment is searched exactly. A larger one also gets a faiss IVF index over 8-bit codes, which proposes
candidates; their scores are computed from the full vectors, so a score never depends on how its row was found.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from trilens.encode.encoder import Encoded, Encoder
from trilens.errors import BadInput, CollectionDamaged
from trilens.index.exact import offer_dense, require_same_dim
from trilens.index.lens import Mask, SharesNothing
from trilens.index.topk import Heaps, TopK
from trilens.kernels.dense import score_vectors
from trilens.kernels.topk import offer_rows
from trilens.represent import Dense
from trilens.represent.arrays import create_array

ANN_FILE = "ivf.faiss"
COPY_ROWS = 16_384
SAMPLES_PER_LIST = 64
OVERSAMPLE = 4  # candidates that the codes propose for each row wanted: 8 bits blur the order only a little
SEED = 1234


class DenseConfig(BaseModel):
    """`probes` is the share of lists that an approximate search reads."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    ann_rows: int = Field(default=50_000, ge=256)
    probes: float = Field(default=1 / 8, gt=0, le=1)


DEFAULT = DenseConfig()


@dataclass(frozen=True, eq=False, slots=True)
class DensePart:
    """One segment: its vectors, and a faiss index if it is large."""

    dense: Dense
    ann: Any

    def __len__(self) -> int:
        return len(self.dense)


class DenseLens(SharesNothing):
    """Meaning of the whole passage as one vector."""

    name = "dense"

    def __init__(self, encoder: Encoder, config: DenseConfig = DEFAULT) -> None:
        self.encoder = encoder
        self.config = config

    def build(self, encoded: Encoded, folder: Path, shared: Sequence[Any] = ()) -> None:
        """Write the vectors of one segment."""
        assert encoded.dense is not None
        if not np.isfinite(encoded.dense.vectors).all():
            raise BadInput("the model gave vectors with NaN or infinite values; check the model folder")
        encoded.dense.save(folder)
        self._build_ann(encoded.dense, folder)

    def merge(self, parts: Sequence[DensePart], keep: Sequence[Mask], folder: Path, shared: Sequence[Any] = ()) -> None:
        """Copy the kept vectors piece by piece."""
        total = sum(int(mask.sum()) for mask in keep)
        vectors = create_array(folder, "vectors", np.float32, (total, parts[0].dense.dim))
        to = 0
        for part, mask in zip(parts, keep, strict=True):
            for start in range(0, len(part), COPY_ROWS):
                piece = part.dense.vectors[start : start + COPY_ROWS][mask[start : start + COPY_ROWS]]
                vectors[to : to + len(piece)] = piece
                to += len(piece)
        self._build_ann(Dense(vectors), folder)

    def open(self, folder: Path) -> DensePart:
        """Map a part."""
        ann_path = folder / ANN_FILE
        return DensePart(Dense.open(folder), _open_ann(ann_path) if ann_path.exists() else None)

    def searcher(self, parts: Sequence[DensePart], live: Sequence[Mask | None], shared: Sequence[Any] = ()) -> "DenseSearcher":
        """A searcher over these parts."""
        return DenseSearcher(self.config, parts, live)

    def _build_ann(self, dense: Dense, folder: Path) -> None:
        rows = len(dense)
        if rows < self.config.ann_rows:
            return
        import faiss  # takes a moment to load, and small collections never need it

        lists = 1 << round(np.log2(4 * np.sqrt(rows)))
        quantizer = faiss.IndexFlatIP(dense.dim)
        codes = faiss.ScalarQuantizer.QT_8bit
        ann = faiss.IndexIVFScalarQuantizer(quantizer, dense.dim, lists, codes, faiss.METRIC_INNER_PRODUCT)
        ann.cp.seed, ann.cp.min_points_per_centroid = SEED, 1
        sample_size = min(rows, SAMPLES_PER_LIST * lists)
        sample = np.sort(np.random.default_rng(SEED).choice(rows, sample_size, replace=False))
        ann.train(np.ascontiguousarray(dense.vectors[sample]))
        for start in range(0, rows, COPY_ROWS):
            ann.add(np.ascontiguousarray(dense.vectors[start : start + COPY_ROWS]))
        faiss.write_index(ann, str(folder / ANN_FILE))


class DenseSearcher:
    """Answers queries over all parts, each in the way that suits its size and the number of rows allowed."""

    def __init__(self, config: DenseConfig, parts: Sequence[DensePart], live: Sequence[Mask | None]) -> None:
        self._config = config
        self._parts = parts
        self._live = live
        self._first_rows = np.cumsum([0, *(len(part) for part in parts)]).tolist()

    def search(
        self, queries: Encoded, k: int, allowed: Mask | None = None, exact: bool = False, params: Any | None = None
    ) -> TopK:
        """The k best rows by inner product."""
        dense = queries.dense
        assert dense is not None
        if self._parts:
            require_same_dim(dense, self._parts[0].dense)
        heaps = Heaps(len(dense), k)
        for i, part in enumerate(self._parts):
            first_row = self._first_rows[i]
            mask = self._live[i] if allowed is None else allowed[first_row : first_row + len(part)]
            if exact or not self._offer_near(part, dense, k, mask, first_row, heaps):
                offer_dense(dense, part.dense, heaps, first_row, mask)
        return heaps.sorted()

    def score(
        self, queries: Encoded, rows: NDArray[np.int64], params: Any | None = None, allowed: Mask | None = None
    ) -> NDArray[np.float32]:
        """The inner products of the rows (queries, n) with each query; -inf where a row is -1."""
        dense = queries.dense
        assert dense is not None
        scores = np.full(rows.shape, -np.inf, np.float32)
        for first_row, part in zip(self._first_rows[:-1], self._parts, strict=True):
            require_same_dim(dense, part.dense)
            score_vectors(dense.vectors, part.dense.vectors, rows, first_row, scores)
        return scores

    def _offer_near(self, part: DensePart, queries: Dense, k: int, mask: Mask | None, first_row: int, heaps: Heaps) -> bool:
        """Offer what the faiss index proposes; False if an exact search is as cheap, or it could not propose enough."""
        rows = len(part) if mask is None else int(mask.sum())
        wanted = min(rows, OVERSAMPLE * k)
        # An approximate search reads a share of all rows, allowed or not; fewer than that are scored exactly.
        if part.ann is None or rows < max(len(part) * self._config.probes, wanted / self._config.probes):
            return False
        import faiss

        selector = None
        if mask is not None:
            bits = np.packbits(mask, bitorder="little")
            selector = faiss.IDSelectorBitmap(len(mask), faiss.swig_ptr(bits))
        parameters: Any = faiss.SearchParametersIVF  # its keyword arguments are added at run time
        params = parameters(sel=selector, nprobe=max(1, int(part.ann.nlist * self._config.probes)))
        _, candidates = part.ann.search(np.ascontiguousarray(queries.vectors), wanted, params=params)
        if ((candidates >= 0).sum(axis=1) < min(k, rows)).any():
            return False
        vectors = part.dense.vectors[np.maximum(candidates, 0)]
        scores = np.einsum("qd,qcd->qc", queries.vectors, vectors, dtype=np.float32)
        found: NDArray[np.int64] = np.where(candidates >= 0, candidates + first_row, -1)
        offer_rows(scores, found, heaps.scores, heaps.rows)
        return True


def _open_ann(path: Path) -> Any:
    import faiss

    try:
        return faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
    except RuntimeError as error:
        raise CollectionDamaged(
            f"{path} is truncated or not a faiss index; run `trilens check` and restore it or index again"
        ) from error

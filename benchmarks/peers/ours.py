"""The multi lens of trilens as a contender, measured like its peers."""

import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import numpy as np

from benchmarks.peers.protocol import BITS, Contender, Floats, K, Params, Vectors, run_multi
from trilens.encode.encoder import Encoded, Encoder
from trilens.index.multi_params import MultiParams
from trilens.lenses.multi import MultiConfig, MultiLens
from trilens.represent import Multi


class Ours(Contender[Vectors, Floats]):
    """The multi lens with one segment and one codebook page; threads are limited by environment variables alone."""

    version = version("trilens")

    def warm_up(self, docs: Vectors) -> None:
        """Compile the kernels, which are cached on disk."""
        vectors = np.random.default_rng(0).normal(size=(1024, docs.vectors.shape[1])).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        with tempfile.TemporaryDirectory() as folder:
            self.build(Vectors(np.arange(0, 1025, 16), vectors), Path(folder), {})

    def build(self, docs: Vectors, index: Path, params: Params) -> None:
        """Train the codebook on all documents, then encode them; `centroids` sets the size of the codebook."""
        lens, encoded = self._lens(params.get("centroids")), self._encoded(docs.offsets, docs.vectors)
        lens.share(encoded, [], index / "page")
        lens.build(encoded, index / "part", [lens.open_shared(index / "page")])

    def open(self, index: Path) -> None:
        """Memory-map the index."""
        lens = self._lens(None)
        self._searcher = lens.searcher([lens.open(index / "part")], [None], [lens.open_shared(index / "page")])

    def prepare(self, query: Floats) -> Encoded:
        """A batch of one query."""
        return self._encoded(np.array([0, len(query)]), query)

    def search(self, query: Encoded, params: Params) -> Any:
        """`params` are the fields of MultiParams."""
        return self._searcher.search(query, K, params=MultiParams(**params) if params else None)

    def ids(self, answer: Any) -> list[int]:
        """Rows of the only query, without padding."""
        return [int(row) for row in answer.rows[0] if row >= 0]

    @staticmethod
    def _lens(centroids: int | None) -> MultiLens:
        """A lens without an encoder: the vectors are given."""
        return MultiLens(cast(Encoder, None), MultiConfig(bits=BITS, centroids=centroids))

    @staticmethod
    def _encoded(offsets: Any, vectors: Floats) -> Encoded:
        return Encoded(multi=Multi(offsets, vectors, np.zeros(len(vectors), np.int32)))


if __name__ == "__main__":
    run_multi(Ours, "trilens", __doc__)

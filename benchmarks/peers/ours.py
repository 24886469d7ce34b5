"""The multi lens of trilens as a contender, measured in the same way as its peers."""

import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import numpy as np

from benchmarks.peers.protocol import BITS, Floats, K, Params, Vectors, run
from trilens.encode.encoder import Encoded, Encoder
from trilens.index.multi import MultiConfig, MultiLens
from trilens.index.multi_params import MultiParams
from trilens.represent import Multi


class Ours:
    """One segment with one page of the codebook."""

    name = "trilens"
    version = version("trilens")

    def warm_up(self, dim: int) -> None:
        """Kernels are compiled by their first use and kept on disk."""
        vectors = np.random.default_rng(0).normal(size=(1024, dim)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        with tempfile.TemporaryDirectory() as folder:
            self.build(Vectors(np.arange(0, 1025, 16), vectors), Path(folder), 1, None)

    def build(self, docs: Vectors, index: Path, threads: int, centroids: int | None) -> None:
        """Train the codebook with all documents, then write their codes."""
        lens, encoded = self._lens(centroids), self._encoded(docs.offsets, docs.vectors)
        lens.share(encoded, [], index / "page")
        lens.build(encoded, index / "part", [lens.open_shared(index / "page")])

    def open(self, index: Path, threads: int) -> None:
        """Threads are the caller's variables: the lens itself uses one."""
        lens = self._lens(None)
        self._searcher = lens.searcher([lens.open(index / "part")], [None], [lens.open_shared(index / "page")])

    def prepare(self, query: Floats) -> Encoded:
        """A batch of one."""
        return self._encoded(np.array([0, len(query)]), query)

    def search(self, query: Encoded, params: Params) -> Any:
        """The fields of MultiParams."""
        return self._searcher.search(query, K, params=MultiParams(**params) if params else None)

    def ids(self, answer: Any) -> list[int]:
        """Of the only query."""
        return [int(row) for row in answer.rows[0] if row >= 0]

    @staticmethod
    def _lens(centroids: int | None) -> MultiLens:
        """Vectors are given: nothing is left to encode."""
        return MultiLens(cast(Encoder, None), MultiConfig(bits=BITS, centroids=centroids))

    @staticmethod
    def _encoded(offsets: Any, vectors: Floats) -> Encoded:
        return Encoded(multi=Multi(offsets, vectors, np.zeros(len(vectors), np.int32)))


if __name__ == "__main__":
    run(Ours())

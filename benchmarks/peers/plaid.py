"""fast-plaid as a contender: `pip install fast-plaid` (1.7, with its torch)."""

# mypy: disable-error-code="import-not-found"

from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from fast_plaid.search import FastPlaid

from benchmarks.peers.protocol import BITS, Floats, K, Params, Vectors, run


class Plaid:
    """PLAID in Rust on top of torch."""

    name = "fast-plaid"
    version = version("fast-plaid")

    def warm_up(self, dim: int) -> None:
        """It comes compiled."""

    def build(self, docs: Vectors, index: Path, threads: int, centroids: int | None) -> None:
        """With its own defaults. `start_from_scratch=0`: small indexes need not keep the vectors themselves for updates."""
        torch.set_num_threads(threads)
        texts = [torch.from_numpy(text) for text in docs.texts()]
        FastPlaid(index=str(index), device="cpu").create(documents_embeddings=texts, nbits=BITS, start_from_scratch=0)

    def open(self, index: Path, threads: int) -> None:
        """The index is loaded here, not by the first search."""
        torch.set_num_threads(threads)
        self._index = FastPlaid(index=str(index), device="cpu")

    def prepare(self, query: Floats) -> Any:
        """A batch of one."""
        return torch.from_numpy(query)[None]

    def search(self, query: Any, params: Params) -> Any:
        """n_ivf_probe, n_full_scores."""
        return self._index.search(query, top_k=K, show_progress=False, n_processes=1, **params)

    def ids(self, answer: Any) -> list[int]:
        """Of the only query."""
        return [int(found[0]) for found in answer[0]]


if __name__ == "__main__":
    run(Plaid())

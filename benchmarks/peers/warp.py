"""xtr-warp-rs as a contender: `pip install xtr-warp-rs` (2.1, with its torch)."""

# mypy: disable-error-code="import-not-found"

from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from xtr_warp.search import XTRWarp

from benchmarks.peers.protocol import BITS, Floats, K, Params, Vectors, run


class Warp:
    """WARP in Rust on top of torch: it ranks by imputed scores, so its recall of the best by MaxSim has a ceiling below 1."""

    name = "xtr-warp-rs"
    version = version("xtr-warp-rs")

    def warm_up(self, dim: int) -> None:
        """It comes compiled."""

    def build(self, docs: Vectors, index: Path, threads: int, centroids: int | None) -> None:
        """With its own defaults."""
        torch.set_num_threads(threads)
        texts = [torch.from_numpy(text) for text in docs.texts()]
        XTRWarp(index=str(index), device="cpu").create(texts, device="cpu", nbits=BITS, show_progress=False)

    def open(self, index: Path, threads: int) -> None:
        """Mapped, as is its default."""
        torch.set_num_threads(threads)
        self._threads = threads
        self._index = XTRWarp(index=str(index), device="cpu")
        self._index.load("cpu")

    def prepare(self, query: Floats) -> Any:
        """A batch of one."""
        return torch.from_numpy(query)[None]

    def search(self, query: Any, params: Params) -> Any:
        """nprobe, t_prime, bound, …; it chooses those that are not given by the size of the index."""
        return self._index.search(query, top_k=K, show_progress=False, num_threads=self._threads, **params)

    def ids(self, answer: Any) -> list[int]:
        """Of the only query."""
        return [int(found[0]) for found in answer[0]]


if __name__ == "__main__":
    run(Warp())

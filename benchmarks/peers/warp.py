"""xtr-warp-rs as a contender: `pip install xtr-warp-rs` (2.1, with its torch)."""

# mypy: disable-error-code="import-not-found"

from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from xtr_warp.search import XTRWarp

from benchmarks.peers.protocol import BITS, Contender, Floats, K, Params, Vectors, run_multi


class Warp(Contender[Vectors, Floats]):
    """WARP in Rust on top of torch. It ranks by imputed scores, so its recall of exact MaxSim has a ceiling below 1."""

    version = version("xtr-warp-rs")

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        torch.set_num_threads(threads)

    def build(self, docs: Vectors, index: Path, params: Params) -> None:
        """Build with the defaults of xtr-warp-rs."""
        texts = [torch.from_numpy(text) for text in docs.texts()]
        XTRWarp(index=str(index), device="cpu").create(texts, device="cpu", nbits=BITS, show_progress=False)

    def open(self, index: Path) -> None:
        """Memory-map the index, which is its default."""
        self._index = XTRWarp(index=str(index), device="cpu")
        self._index.load("cpu")

    def prepare(self, query: Floats) -> Any:
        """A batch of one query."""
        return torch.from_numpy(query)[None]

    def search(self, query: Any, params: Params) -> Any:
        """`params` are nprobe, t_prime, bound, …; missing ones are chosen by the size of the index."""
        return self._index.search(query, top_k=K, show_progress=False, num_threads=self.threads, **params)

    def ids(self, answer: Any) -> list[int]:
        """Documents of the only query."""
        return [int(hit[0]) for hit in answer[0]]


if __name__ == "__main__":
    run_multi(Warp, "xtr-warp-rs", __doc__)

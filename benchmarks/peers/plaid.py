"""fast-plaid as a contender: `pip install fast-plaid` (1.7, with its torch)."""

# mypy: disable-error-code="import-not-found"

from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from fast_plaid.search import FastPlaid

from benchmarks.peers.protocol import BITS, Contender, Floats, K, Params, Vectors, run_multi


class Plaid(Contender[Vectors, Floats]):
    """PLAID in Rust on top of torch."""

    version = version("fast-plaid")

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        torch.set_num_threads(threads)

    def build(self, docs: Vectors, index: Path, params: Params) -> None:
        """Build with the defaults of fast-plaid; `start_from_scratch=0` keeps small indexes from storing the raw vectors."""
        texts = [torch.from_numpy(text) for text in docs.texts()]
        FastPlaid(index=str(index), device="cpu").create(documents_embeddings=texts, nbits=BITS, start_from_scratch=0)

    def open(self, index: Path) -> None:
        """Load the index, so that the first search does not."""
        self._index = FastPlaid(index=str(index), device="cpu")

    def prepare(self, query: Floats) -> Any:
        """A batch of one query."""
        return torch.from_numpy(query)[None]

    def search(self, query: Any, params: Params) -> Any:
        """`params` are n_ivf_probe and n_full_scores."""
        return self._index.search(query, top_k=K, show_progress=False, n_processes=1, **params)

    def ids(self, answer: Any) -> list[int]:
        """Documents of the only query."""
        return [int(hit[0]) for hit in answer[0]]


if __name__ == "__main__":
    run_multi(Plaid, "fast-plaid", __doc__)

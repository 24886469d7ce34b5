"""The dense lens and faiss as contenders: read the same vectors, build, answer one query at a time, print JSON lines.

    python -m benchmarks.peers.dense SYSTEM build|search --vectors FOLDER --documents N --queries N --index FOLDER …

Run from the root of the repository by the Python of the environment that the system is installed in. The folder holds
`docs.npy` and `queries.npy`: vectors of length 1 in float32.
"""

# mypy: disable-error-code="import-not-found,import-untyped"

import argparse
import json
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol, cast

import numpy as np

from benchmarks.peers.protocol import Floats, K, Params, Searching, measure, peak_mb, say


class Contender(Searching, Protocol):
    """One system, imported when it is made. Only `build` and `search` are timed."""

    version: str

    def build(self, docs: Floats, index: Path, params: Params) -> None:
        """Write an index."""

    def open(self, index: Path) -> None:
        """Get ready to search an index."""

    def prepare(self, query: Floats) -> Any:
        """The query in the form that `search` takes."""


class Trilens:
    """One segment of the dense lens."""

    def __init__(self) -> None:
        import trilens.index.dense  # noqa: F401  importing is not building

        self.version = version("trilens")

    def build(self, docs: Floats, index: Path, params: Params) -> None:
        """The fields of DenseConfig."""
        from trilens.encode.encoder import Encoded
        from trilens.index.dense import DenseConfig, DenseLens
        from trilens.represent import Dense

        DenseLens(cast(Any, None), DenseConfig(**params)).build(Encoded(dense=Dense(docs)), index)

    def open(self, index: Path) -> None:
        """Mapped."""
        from trilens.index.dense import DenseLens

        self._part = DenseLens(cast(Any, None)).open(index)
        self._searchers: dict[float | None, Any] = {}

    def prepare(self, query: Floats) -> Any:
        """A batch of one."""
        from trilens.encode.encoder import Encoded
        from trilens.represent import Dense

        return Encoded(dense=Dense(query[None]))

    def search(self, query: Any, params: Params) -> Any:
        """`exact`, or `probes`: the share of lists that are read."""
        from trilens.index.dense import DenseConfig, DenseLens

        probes = params.get("probes")
        if probes not in self._searchers:
            config = DenseConfig() if probes is None else DenseConfig(probes=probes)
            self._searchers[probes] = DenseLens(cast(Any, None), config).searcher([self._part], [None])
        return self._searchers[probes].search(query, K, exact=params.get("exact", False))

    def ids(self, answer: Any) -> list[int]:
        """Of the only query."""
        return [int(row) for row in answer.rows[0] if row >= 0]


class Faiss:
    """An index of faiss, by the text that its factory reads."""

    def __init__(self) -> None:
        import faiss  # noqa: F401  importing is not building

        self.version = version("faiss-cpu")

    def build(self, docs: Floats, index: Path, params: Params) -> None:
        """`factory`."""
        import faiss

        made = faiss.index_factory(docs.shape[1], params["factory"], faiss.METRIC_INNER_PRODUCT)
        made.train(docs)
        made.add(docs)
        index.mkdir(parents=True)
        faiss.write_index(made, str(index / "index.faiss"))

    def open(self, index: Path) -> None:
        """In memory."""
        import faiss

        self._index = faiss.read_index(str(index / "index.faiss"))

    def prepare(self, query: Floats) -> Floats:
        """A batch of one."""
        return query[None]

    def search(self, query: Floats, params: Params) -> Any:
        """`nprobe` or `efSearch` where the index has them."""
        import faiss

        if params:
            ((name, value),) = params.items()
            faiss.ParameterSpace().set_index_parameter(self._index, name, value)
        return self._index.search(query, K)

    def ids(self, answer: Any) -> list[int]:
        """Of the only query."""
        return [int(row) for row in answer[1][0] if row >= 0]


CONTENDERS: dict[str, type[Contender]] = {"trilens": Trilens, "faiss": Faiss}


def main() -> None:
    """Build or search as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("system", choices=CONTENDERS)
    parser.add_argument("action", choices=("build", "search"))
    parser.add_argument("--vectors", type=Path, required=True)
    parser.add_argument("--documents", type=int, required=True)
    parser.add_argument("--queries", type=int, required=True)
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--build", type=json.loads, default={}, help="a JSON object of parameters")
    parser.add_argument("--settings", type=json.loads, default=[{}], help="a JSON list of objects of parameters")
    options = parser.parse_args()
    contender = CONTENDERS[options.system]()
    if options.action == "build":
        docs = np.load(options.vectors / "docs.npy")[: options.documents]
        start = perf_counter()
        contender.build(docs, options.index, options.build)
        seconds = round(perf_counter() - start, 2)
        say({"version": contender.version, "build_seconds": seconds, "build_peak_mb": round(peak_mb())})
        return
    contender.open(options.index)
    queries = [contender.prepare(query) for query in np.load(options.vectors / "queries.npy")[: options.queries]]
    for params in options.settings:
        say({**measure(contender, queries, params, options.repeats), "peak_mb": round(peak_mb())})


if __name__ == "__main__":
    main()

"""The dense lens and faiss as contenders.

    python -m benchmarks.peers.dense SYSTEM build|search --vectors FOLDER --documents N --queries N --index FOLDER …

See `benchmarks.peers.protocol`. The folder holds `docs.npy` and `queries.npy`: L2-normalised float32 vectors.
"""

# mypy: disable-error-code="import-not-found,import-untyped"

from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import numpy as np

from benchmarks.peers.protocol import Contender, Floats, K, Params, build, contender_parser, search


class Trilens(Contender[Floats, Floats]):
    """The dense lens with one segment."""

    def __init__(self, threads: int) -> None:
        import trilens.lenses.dense  # noqa: F401

        super().__init__(threads)
        self.version = version("trilens")

    def build(self, docs: Floats, index: Path, params: Params) -> None:
        """`params` are the fields of DenseConfig."""
        from trilens.encode.encoder import Encoded
        from trilens.lenses.dense import DenseConfig, DenseLens
        from trilens.represent import Dense

        DenseLens(cast(Any, None), DenseConfig(**params)).build(Encoded(dense=Dense(docs)), index)

    def open(self, index: Path) -> None:
        """Memory-map the index."""
        from trilens.lenses.dense import DenseLens

        self._part = DenseLens(cast(Any, None)).open(index)
        self._searchers: dict[float | None, Any] = {}

    def prepare(self, query: Floats) -> Any:
        """A batch of one query."""
        from trilens.encode.encoder import Encoded
        from trilens.represent import Dense

        return Encoded(dense=Dense(query[None]))

    def search(self, query: Any, params: Params) -> Any:
        """`params` are `exact`, or `probes`: the fraction of the inverted lists to scan."""
        from trilens.lenses.dense import DenseConfig, DenseLens

        probes = params.get("probes")
        if probes not in self._searchers:
            config = DenseConfig() if probes is None else DenseConfig.model_validate({"probes": probes})
            self._searchers[probes] = DenseLens(cast(Any, None), config).searcher([self._part], [None])
        return self._searchers[probes].search(query, K, exact=params.get("exact", False))

    def ids(self, answer: Any) -> list[int]:
        """Rows of the only query, without padding."""
        return [int(row) for row in answer.rows[0] if row >= 0]


class Faiss(Contender[Floats, Floats]):
    """A faiss index, described by its factory string."""

    def __init__(self, threads: int) -> None:
        import faiss  # noqa: F401

        super().__init__(threads)
        self.version = version("faiss-cpu")

    def build(self, docs: Floats, index: Path, params: Params) -> None:
        """`params` has the `factory` string."""
        import faiss

        faiss_index = faiss.index_factory(docs.shape[1], params["factory"], faiss.METRIC_INNER_PRODUCT)
        faiss_index.train(docs)
        faiss_index.add(docs)
        index.mkdir(parents=True)
        faiss.write_index(faiss_index, str(index / "index.faiss"))

    def open(self, index: Path) -> None:
        """Load the index into memory."""
        import faiss

        self._index = faiss.read_index(str(index / "index.faiss"))

    def prepare(self, query: Floats) -> Floats:
        """A batch of one query."""
        return query[None]

    def search(self, query: Floats, params: Params) -> Any:
        """`params` is `nprobe` or `efSearch`, if the index has one of them."""
        import faiss

        if params:
            ((name, value),) = params.items()
            faiss.ParameterSpace().set_index_parameter(self._index, name, value)
        return self._index.search(query, K)

    def ids(self, answer: Any) -> list[int]:
        """Rows of the only query, without padding."""
        return [int(row) for row in answer[1][0] if row >= 0]


CONTENDERS: dict[str, type[Contender[Floats, Floats]]] = {"trilens": Trilens, "faiss": Faiss}


def main() -> None:
    """Build an index or search it."""
    options = contender_parser(__doc__, CONTENDERS).parse_args()
    contender = CONTENDERS[options.system](options.threads)
    if options.action == "build":
        build(contender, np.load(options.vectors / "docs.npy")[: options.documents], options)
    else:
        search(contender, np.load(options.vectors / "queries.npy")[: options.queries], options)


if __name__ == "__main__":
    main()

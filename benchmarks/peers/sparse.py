"""The sparse lens and its peers as contenders: read the same vectors, build, answer one query at a time, print JSON lines.

    python -m benchmarks.peers.sparse SYSTEM build|search --vectors FOLDER --shape vdr --documents N --queries N --index …

Run from the root of the repository by the Python of the environment that the system is installed in; needs numpy and the system
only (`pip install --no-deps pyseismic-lsr splade-index`, `pip install numpy scipy numba`: splade-index itself asks for
sentence-transformers, which only encodes).
"""

# mypy: disable-error-code="import-not-found,import-untyped"

import argparse
import json
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.protocol import K, Params, Searching, measure, peak_mb, say

DIM = 29_523  # of vectors that do not tell: BERT's vocabulary without the first 999
SHAPES: dict[str, tuple[int | None, int | None]] = {"vdr": (None, None), "splade": (120, 30)}

Ints = NDArray[np.int64]
Terms = NDArray[np.int32]
Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False, slots=True)
class Rows:
    """Text i has the terms `terms[indptr[i]:indptr[i + 1]]`, ascending, with the `weights` beside them."""

    indptr: Ints
    terms: Terms
    weights: Floats
    dim: int

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def one(self, row: int) -> "Rows":
        """A batch of one."""
        span = slice(self.indptr[row], self.indptr[row + 1])
        return Rows(np.array([0, span.stop - span.start]), self.terms[span], self.weights[span], self.dim)


def read_vectors(folder: Path, kind: str, shape: str, count: int | None = None) -> Rows:
    """The first texts of a kind (`docs`, `queries`), all if no number is given, each with as many terms as its shape has."""
    lengths, terms, weights, dim, found = [], [], [], DIM, 0
    for path in sorted(folder.glob(f"{kind}*.npz")):
        if count is not None and found >= count:
            break
        with np.load(path) as file:
            indptr = file["indptr"][: None if count is None else count - found + 1]
            lengths.append(np.diff(indptr))
            terms.append(file["terms"][: indptr[-1]].astype(np.int32))
            weights.append(file["weights"][: indptr[-1]].astype(np.float32))
            dim = int(file["dim"]) if "dim" in file else dim
            found += len(indptr) - 1
    indptr = np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.int64)
    rows = Rows(indptr, np.concatenate(terms), np.concatenate(weights), dim)
    most = SHAPES[shape][kind == "queries"]
    return rows if most is None else heaviest(rows, most)


def heaviest(rows: Rows, most: int) -> Rows:
    """Each text with its heaviest terms only."""
    keep = np.zeros(len(rows.terms), np.bool_)
    for start, end in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
        keep[start + np.argsort(-rows.weights[start:end], kind="stable")[:most]] = True
    indptr = np.concatenate([[0], np.cumsum(keep)])[rows.indptr]
    return Rows(indptr, rows.terms[keep], rows.weights[keep], rows.dim)


class Contender(Searching, Protocol):
    """One system. Only `build` and `search` are timed."""

    version: str

    def warm_up(self, docs: Rows) -> None:
        """What only the first build on a machine costs: compiling."""

    def build(self, docs: Rows, index: Path, params: Params) -> None:
        """Write an index."""

    def open(self, index: Path) -> None:
        """Get ready to search an index."""

    def prepare(self, query: Rows) -> Any:
        """The query in the form that `search` takes."""


class Scipy:
    """Every document times the query, as VDR's own code searches; then the best by partition."""

    def __init__(self) -> None:
        self.version = version("scipy")

    def warm_up(self, docs: Rows) -> None:
        """It comes compiled."""

    def build(self, docs: Rows, index: Path, params: Params) -> None:
        """Compressed rows."""
        import scipy.sparse

        index.mkdir(parents=True)
        matrix = scipy.sparse.csr_matrix((docs.weights, docs.terms, docs.indptr), shape=(len(docs), docs.dim))
        scipy.sparse.save_npz(index / "rows.npz", matrix, compressed=False)

    def open(self, index: Path) -> None:
        """In memory."""
        import scipy.sparse

        self._rows = scipy.sparse.load_npz(index / "rows.npz")

    def prepare(self, query: Rows) -> Floats:
        """A weight for each term of the vocabulary."""
        dense = np.zeros(query.dim, np.float32)
        dense[query.terms] = query.weights
        return dense

    def search(self, query: Floats, params: Params) -> Any:
        """No parameters."""
        scores = self._rows @ query
        best = np.argpartition(-scores, K)[:K]
        return best[np.argsort(-scores[best], kind="stable")]

    def ids(self, answer: Any) -> list[int]:
        """As they are."""
        return [int(row) for row in answer]


class SpladeIndex:
    """splade-index with its numba backend: every posting of the query's terms is added up."""

    def __init__(self) -> None:
        self.version = version("splade-index")

    def warm_up(self, docs: Rows) -> None:
        """Its search compiles; the warm-up of `measure` covers that."""

    def build(self, docs: Rows, index: Path, params: Params) -> None:
        """The arrays that its own `index` makes of a model's output, and that its `save` writes."""
        import scipy.sparse

        columns = scipy.sparse.csr_matrix((docs.weights, docs.terms, docs.indptr), shape=(len(docs), docs.dim)).tocsc()
        index.mkdir(parents=True)
        arrays = {"data": columns.data, "indices": columns.indices.astype(np.int32), "indptr": columns.indptr.astype(np.int32)}
        np.savez(index / "csc.index.npz", num_docs=len(docs), **arrays)

    def open(self, index: Path) -> None:
        """In memory. What its `retrieve` does after encoding the query is this function."""
        from splade_index.numba.retrieve_utils import _retrieve_numba_functional

        self._retrieve = _retrieve_numba_functional
        with np.load(index / "csc.index.npz") as file:
            self._scores = {name: file[name] for name in ("data", "indices", "indptr")} | {"num_docs": int(file["num_docs"])}

    def prepare(self, query: Rows) -> Any:
        """A batch of one."""
        return {"query_tokens_ids": [query.terms], "query_tokens_weights": [query.weights]}

    def search(self, query: Any, params: Params) -> Any:
        """No parameters."""
        return self._retrieve(**query, scores=self._scores, k=K, n_threads=1, chunksize=None)

    def ids(self, answer: Any) -> list[int]:
        """Of the only query."""
        return [int(row) for row in answer[0][0]]


class Seismic:
    """Seismic (Bruch et al. 2024): lists in clusters with summaries, and the documents in 16 bits.

    Its index of numbered terms, which is the faster one: the other looks each term of a query up by its name.
    """

    def __init__(self) -> None:
        self.version = version("pyseismic-lsr")

    def warm_up(self, docs: Rows) -> None:
        """It comes compiled."""

    def build(self, docs: Rows, index: Path, params: Params) -> None:
        """n_postings, summary_energy, …; RAYON_NUM_THREADS is the number of threads."""
        from seismic import SeismicIndexRaw

        index.mkdir(parents=True)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "documents.bin"
            raw_file(docs).tofile(path)
            SeismicIndexRaw.build(str(path), **params).save(str(index / "lists"))

    def open(self, index: Path) -> None:
        """In memory."""
        from seismic import SeismicIndexRaw

        (file,) = index.glob("lists*")
        self._index = SeismicIndexRaw.load(str(file))

    def prepare(self, query: Rows) -> Any:
        """Without the terms beyond the last that a document has."""
        known = query.terms < self._index.dim
        return query.terms[known], query.weights[known]

    def search(self, query: Any, params: Params) -> Any:
        """query_cut and heap_factor; clusters are looked at from the best summary on, as is its default."""
        return self._index.search(*query, K, params["query_cut"], params["heap_factor"], 0, True)

    def ids(self, answer: Any) -> list[int]:
        """Beside their scores."""
        return [int(found[1]) for found in answer]


def raw_file(rows: Rows) -> NDArray[np.uint32]:
    """Seismic's own format in words: how many texts there are; for each how many terms, the terms, the weights as bits."""
    lengths = np.diff(rows.indptr)
    starts = 1 + np.arange(len(rows)) + 2 * rows.indptr[:-1]  # of each text: before it the count, and each text so far
    words = np.empty(1 + len(rows) + 2 * len(rows.terms), np.uint32)
    words[0] = len(rows)
    words[starts] = lengths
    places = np.repeat(starts + 1 - rows.indptr[:-1], lengths) + np.arange(len(rows.terms))
    words[places] = rows.terms
    words[places + np.repeat(lengths, lengths)] = rows.weights.view(np.uint32)
    return words


class Trilens:
    """One segment of the sparse lens."""

    def __init__(self) -> None:
        from trilens.index.sparse import SparseLens

        self.version = version("trilens")
        self._lens = SparseLens("sparse", "sparse", cast(Any, None))  # vectors are given: nothing is left to encode

    def warm_up(self, docs: Rows) -> None:
        """Kernels are compiled by their first use and kept on disk."""
        with tempfile.TemporaryDirectory() as folder:
            self.build(docs.one(0), Path(folder), {})

    def build(self, docs: Rows, index: Path, params: Params) -> None:
        """The fields of SparseConfig."""
        from trilens.index.sparse import SparseConfig, SparseLens

        SparseLens("sparse", "sparse", cast(Any, None), SparseConfig(**params)).build(self.prepare(docs), index)

    def open(self, index: Path) -> None:
        """Mapped."""
        self._searcher = self._lens.searcher([self._lens.open(index)], [None])

    def prepare(self, query: Rows) -> Any:
        """A batch of one."""
        from trilens.encode.encoder import Encoded
        from trilens.represent import Sparse

        return Encoded(sparse=Sparse(query.indptr, query.terms, query.weights, query.dim))

    def search(self, query: Any, params: Params) -> Any:
        """The fields of SparseParams."""
        from trilens.index.sparse_params import SparseParams

        return self._searcher.search(query, K, params=SparseParams(**params))

    def ids(self, answer: Any) -> list[int]:
        """Of the only query."""
        return [int(row) for row in answer.rows[0] if row >= 0]


CONTENDERS: dict[str, type[Contender]] = {
    "trilens": Trilens,
    "scipy": Scipy,
    "splade-index": SpladeIndex,
    "seismic": Seismic,
}


def main() -> None:
    """Build or search as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("system", choices=CONTENDERS)
    parser.add_argument("action", choices=("build", "search"))
    parser.add_argument("--vectors", type=Path, required=True, help="folder of the shards")
    parser.add_argument("--shape", choices=SHAPES, required=True)
    parser.add_argument("--documents", type=int, required=True)
    parser.add_argument("--queries", type=int, required=True)
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--build", type=json.loads, default={}, help="a JSON object of parameters")
    parser.add_argument("--settings", type=json.loads, default=[{}], help="a JSON list of objects of parameters")
    options = parser.parse_args()
    contender = CONTENDERS[options.system]()
    if options.action == "build":
        docs = read_vectors(options.vectors, "docs", options.shape, options.documents)
        contender.warm_up(docs)
        start = perf_counter()
        contender.build(docs, options.index, options.build)
        facts = {"system": options.system, "version": contender.version, "postings": len(docs.terms)}
        say({**facts, "build_seconds": round(perf_counter() - start, 2), "build_peak_mb": round(peak_mb())})
        return
    contender.open(options.index)
    queries = read_vectors(options.vectors, "queries", options.shape, options.queries)
    prepared = [contender.prepare(queries.one(row)) for row in range(len(queries))]
    for params in options.settings:
        say({**measure(contender, prepared, params, options.repeats), "peak_mb": round(peak_mb())})


if __name__ == "__main__":
    main()

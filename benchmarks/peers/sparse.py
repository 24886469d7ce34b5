"""The sparse lens and its peers as contenders.

    python -m benchmarks.peers.sparse SYSTEM build|search --vectors FOLDER --shape vdr --documents N --queries N --index …

See `benchmarks.peers.protocol`. splade-index is installed without dependencies: it requires sentence-transformers, which is
needed only for encoding.
"""

# mypy: disable-error-code="import-not-found,import-untyped"

import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.protocol import Contender, K, Params, build, contender_parser, search

DIM = 29_523  # if the file has no dim: BERT's vocabulary without the first 999 ids
# Maximum number of terms of a document and of a query; None keeps all.
SHAPES: dict[str, tuple[int | None, int | None]] = {"vdr": (None, None), "splade": (120, 30)}

Ints = NDArray[np.int64]
Terms = NDArray[np.int32]
Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False, slots=True)
class Rows:
    """Sparse vectors in CSR form: text i has `terms[indptr[i]:indptr[i + 1]]`, ascending, with their `weights`."""

    indptr: Ints
    terms: Terms
    weights: Floats
    dim: int

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def one(self, row: int) -> "Rows":
        """A batch of one row."""
        span = slice(self.indptr[row], self.indptr[row + 1])
        return Rows(np.array([0, span.stop - span.start]), self.terms[span], self.weights[span], self.dim)


def read_vectors(folder: Path, kind: str, shape: str, count: int | None = None) -> Rows:
    """Read the first `count` texts of a kind (`docs`, `queries`; None: all), truncated to the number of terms of the shape."""
    lengths, terms, weights, dim, texts = [], [], [], DIM, 0
    for path in sorted(folder.glob(f"{kind}*.npz")):
        if count is not None and texts >= count:
            break
        with np.load(path) as file:
            indptr = file["indptr"][: None if count is None else count - texts + 1]
            lengths.append(np.diff(indptr))
            terms.append(file["terms"][: indptr[-1]].astype(np.int32))
            weights.append(file["weights"][: indptr[-1]].astype(np.float32))
            dim = int(file["dim"]) if "dim" in file else dim
            texts += len(indptr) - 1
    indptr = np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.int64)
    rows = Rows(indptr, np.concatenate(terms), np.concatenate(weights), dim)
    limit = SHAPES[shape][kind == "queries"]
    return rows if limit is None else top_terms(rows, limit)


def top_terms(rows: Rows, limit: int) -> Rows:
    """Keep the terms with the highest weights of each text."""
    keep = np.zeros(len(rows.terms), np.bool_)
    for start, end in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
        keep[start + np.argsort(-rows.weights[start:end], kind="stable")[:limit]] = True
    indptr = np.concatenate([[0], np.cumsum(keep)])[rows.indptr]
    return Rows(indptr, rows.terms[keep], rows.weights[keep], rows.dim)


class Scipy(Contender[Rows, Rows]):
    """Product of all documents with the query, as in VDR's reference code, then a partial sort."""

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        self.version = version("scipy")

    def build(self, docs: Rows, index: Path, params: Params) -> None:
        """Save a CSR matrix."""
        import scipy.sparse

        index.mkdir(parents=True)
        matrix = scipy.sparse.csr_matrix((docs.weights, docs.terms, docs.indptr), shape=(len(docs), docs.dim))
        scipy.sparse.save_npz(index / "rows.npz", matrix, compressed=False)

    def open(self, index: Path) -> None:
        """Load the matrix into memory."""
        import scipy.sparse

        self._rows = scipy.sparse.load_npz(index / "rows.npz")

    def prepare(self, query: Rows) -> Floats:
        """A dense vector over the vocabulary."""
        dense = np.zeros(query.dim, np.float32)
        dense[query.terms] = query.weights
        return dense

    def search(self, query: Floats, params: Params) -> Any:
        """There are no parameters."""
        scores = self._rows @ query
        best = np.argpartition(-scores, K)[:K]
        return best[np.argsort(-scores[best], kind="stable")]

    def ids(self, answer: Any) -> list[int]:
        """Rows, best first."""
        return [int(row) for row in answer]


class SpladeIndex(Contender[Rows, Rows]):
    """splade-index with its numba backend, which accumulates all postings of the query terms; `measure` warms it up."""

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        self.version = version("splade-index")

    def build(self, docs: Rows, index: Path, params: Params) -> None:
        """Write the arrays that its `index` and `save` produce."""
        import scipy.sparse

        columns = scipy.sparse.csr_matrix((docs.weights, docs.terms, docs.indptr), shape=(len(docs), docs.dim)).tocsc()
        index.mkdir(parents=True)
        arrays = {"data": columns.data, "indices": columns.indices.astype(np.int32), "indptr": columns.indptr.astype(np.int32)}
        np.savez(index / "csc.index.npz", num_docs=len(docs), **arrays)

    def open(self, index: Path) -> None:
        """Load the arrays into memory; the function is the part of its `retrieve` after query encoding."""
        from splade_index.numba.retrieve_utils import _retrieve_numba_functional

        self._retrieve = _retrieve_numba_functional
        with np.load(index / "csc.index.npz") as file:
            self._scores = {name: file[name] for name in ("data", "indices", "indptr")} | {"num_docs": int(file["num_docs"])}

    def prepare(self, query: Rows) -> Any:
        """A batch of one query."""
        return {"query_tokens_ids": [query.terms], "query_tokens_weights": [query.weights]}

    def search(self, query: Any, params: Params) -> Any:
        """There are no parameters."""
        return self._retrieve(**query, scores=self._scores, k=K, n_threads=1, chunksize=None)

    def ids(self, answer: Any) -> list[int]:
        """Rows of the only query."""
        return [int(row) for row in answer[0][0]]


class Seismic(Contender[Rows, Rows]):
    """Seismic (Bruch et al. 2024): clustered posting lists with summaries, and documents in 16 bits.

    This is its raw index over term ids, which is faster than the one that looks up terms by name.
    """

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        self.version = version("pyseismic-lsr")

    def build(self, docs: Rows, index: Path, params: Params) -> None:
        """`params` are n_postings, summary_energy, …; RAYON_NUM_THREADS sets the number of threads."""
        from seismic import SeismicIndexRaw

        index.mkdir(parents=True)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "documents.bin"
            raw_file(docs).tofile(path)
            SeismicIndexRaw.build(str(path), **params).save(str(index / "lists"))

    def open(self, index: Path) -> None:
        """Load the index into memory."""
        from seismic import SeismicIndexRaw

        (file,) = index.glob("lists*")
        self._index = SeismicIndexRaw.load(str(file))

    def prepare(self, query: Rows) -> Any:
        """Terms and weights, without terms beyond the largest term id of the documents."""
        known = query.terms < self._index.dim
        return query.terms[known], query.weights[known]

    def search(self, query: Any, params: Params) -> Any:
        """`params` are query_cut and heap_factor; clusters are visited by descending summary score, which is its default."""
        return self._index.search(*query, K, params["query_cut"], params["heap_factor"], 0, True)

    def ids(self, answer: Any) -> list[int]:
        """Documents of (score, document) pairs."""
        return [int(hit[1]) for hit in answer]


def raw_file(rows: Rows) -> NDArray[np.uint32]:
    """Seismic's binary format in 32-bit words: number of texts; per text the number of terms, the terms, the float weights."""
    lengths = np.diff(rows.indptr)
    starts = 1 + np.arange(len(rows)) + 2 * rows.indptr[:-1]  # offset of each text: after the header and the preceding texts
    words = np.empty(1 + len(rows) + 2 * len(rows.terms), np.uint32)
    words[0] = len(rows)
    words[starts] = lengths
    offsets = np.repeat(starts + 1 - rows.indptr[:-1], lengths) + np.arange(len(rows.terms))
    words[offsets] = rows.terms
    words[offsets + np.repeat(lengths, lengths)] = rows.weights.view(np.uint32)
    return words


class Trilens(Contender[Rows, Rows]):
    """The sparse lens with one segment."""

    def __init__(self, threads: int) -> None:
        from trilens.lenses.sparse import SparseLens

        super().__init__(threads)
        self.version = version("trilens")
        self._lens = SparseLens(cast(Any, None))  # no model: the vectors are given

    def warm_up(self, docs: Rows) -> None:
        """Compile the kernels, which are cached on disk."""
        with tempfile.TemporaryDirectory() as folder:
            self.build(docs.one(0), Path(folder), {})

    def build(self, docs: Rows, index: Path, params: Params) -> None:
        """`params` are the fields of SparseConfig."""
        from trilens.lenses.sparse import SparseLens
        from trilens.lenses.term_settings import SparseConfig

        SparseLens(cast(Any, None), SparseConfig(**params)).build(self.prepare(docs), index)

    def open(self, index: Path) -> None:
        """Memory-map the index."""
        self._searcher = self._lens.searcher([self._lens.open(index)], [None])

    def prepare(self, query: Rows) -> Any:
        """A batch of one query."""
        from trilens.encode.encoder import Encoded
        from trilens.represent import Sparse

        return Encoded(sparse=Sparse(query.indptr, query.terms, query.weights, query.dim))

    def search(self, query: Any, params: Params) -> Any:
        """`params` are the fields of SparseParams."""
        from trilens.lenses.sparse import SparseParams

        return self._searcher.search(query, K, params=SparseParams(**params))

    def ids(self, answer: Any) -> list[int]:
        """Rows of the only query, without padding."""
        return [int(row) for row in answer.rows[0] if row >= 0]


CONTENDERS: dict[str, type[Contender[Rows, Rows]]] = {
    "trilens": Trilens,
    "scipy": Scipy,
    "splade-index": SpladeIndex,
    "seismic": Seismic,
}


def main() -> None:
    """Build an index or search it."""
    parser = contender_parser(__doc__, CONTENDERS)
    parser.add_argument("--shape", choices=SHAPES, required=True)
    options = parser.parse_args()
    contender = CONTENDERS[options.system](options.threads)
    if options.action == "build":
        docs = read_vectors(options.vectors, "docs", options.shape, options.documents)
        build(contender, docs, options, system=options.system, postings=len(docs.terms))
    else:
        queries = read_vectors(options.vectors, "queries", options.shape, options.queries)
        search(contender, [queries.one(row) for row in range(len(queries))], options)


if __name__ == "__main__":
    main()

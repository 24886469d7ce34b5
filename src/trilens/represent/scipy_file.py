"""Sparse vectors as SciPy's files of compressed rows (.npz), without SciPy: what vsearch calls a binary token index."""

import zipfile
from pathlib import Path

import numpy as np

from trilens.errors import BadInput
from trilens.represent.sparse import Sparse


def write_csr(file: Path, vectors: Sparse) -> None:
    """Write vectors as `scipy.sparse.save_npz` does."""
    if file.suffix != ".npz":
        raise BadInput(f"{file} has the ending {file.suffix or 'none'}; expected .npz")
    try:
        np.savez_compressed(
            file,
            indices=vectors.terms,
            indptr=vectors.indptr,
            format=np.array(b"csr"),
            shape=np.array([len(vectors), vectors.dim]),
            data=vectors.weights,
            _is_array=np.array(True),
        )
    except OSError as error:
        raise BadInput(f"{file} cannot be written: {error.strerror or error}; choose another path") from error


def read_csr(pattern: Path, dim: int, shift: int = 0) -> Sparse:
    """The rows of all files that match a pattern, in the order of their names, over `dim` terms.

    Matrices with `dim` + `shift` columns are over a whole vocabulary; their first `shift` columns are left out.
    """
    files = sorted(pattern.parent.glob(pattern.name))
    if not files:
        raise BadInput(f"there is no file {pattern}; expected one or more .npz files of an index")
    return Sparse.concat([_read(file, dim, shift) for file in files])


def _read(file: Path, dim: int, shift: int) -> Sparse:
    try:
        with np.load(file, allow_pickle=False) as arrays:
            kind, shape = bytes(arrays["format"].item()), arrays["shape"].tolist()
            indptr, terms, weights = (arrays[name] for name in ("indptr", "indices", "data"))
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise BadInput(
            f"{file} cannot be read as a SciPy matrix ({error}); expected what scipy.sparse.save_npz writes"
        ) from error
    if kind != b"csr" or len(indptr) != shape[0] + 1 or indptr[0] != 0 or len(terms) != indptr[-1]:
        raise BadInput(
            f"{file} holds a {kind.decode(errors='replace')} matrix that is not whole; expected compressed rows (csr)"
        )
    if shape[1] not in (dim, dim + shift):
        raise BadInput(
            f"{file} is over a vocabulary of {shape[1]:,} terms; expected {dim:,}, as the model has"
            + (f", or {dim + shift:,} with those below its vocabulary shift" if shift else "")
        )
    rows = np.repeat(np.arange(shape[0]), np.diff(indptr))
    if len(terms) and not (terms.min() >= 0 and terms.max() < shape[1]):
        raise BadInput(f"{file} has columns outside of its {shape[1]:,}; restore it")
    first = shift if shape[1] == dim + shift else 0
    kept = (terms >= first) & (weights != 0)
    order = np.lexsort((terms[kept], rows[kept]))
    starts = np.searchsorted(rows[kept], np.arange(shape[0] + 1)).astype(np.int64)
    return Sparse(starts, (terms[kept] - first)[order].astype(np.int32), weights[kept][order].astype(np.float32), dim)

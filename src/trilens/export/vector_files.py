"""Files of what the heads of a model compute of texts, in the shapes of FlagEmbedding: JSON Lines, .npz and .safetensors.

A line of JSON has `id`, `dense_vecs`, `lexical_weights` (token → weight), `sparse_weights` (word → weight) and `colbert_vecs`
(one vector per token). Arrays have `ids`, `dense_vecs` (texts, dimensions), `colbert_vecs` (tokens, dimensions), where text i
has the rows `colbert_offsets[i]:colbert_offsets[i + 1]`, and compressed rows of `lexical_weights` and `sparse_weights`. Ids of
tokens and terms are those of the tokenizer. Heads that the model does not have are left out.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trilens.encode.encoder import Encoded
from trilens.encode.onnx import OnnxEncoder
from trilens.errors import BadInput
from trilens.extras import needs_extra
from trilens.represent import Dense, Multi, Sparse
from trilens.text.files import without_compression

JSON_LINES, ARRAYS, TENSORS = ".jsonl", ".npz", ".safetensors"
SUFFIXES = (JSON_LINES, ARRAYS, TENSORS)


class Batch(NamedTuple):
    """Ids of texts and what the model computes of them."""

    ids: Sequence[str]
    encoded: Encoded


def suffix_of(file: Path) -> str:
    """The format of a file, by its name; JSON Lines may be compressed."""
    suffix = Path(without_compression(file.name)).suffix.lower()
    if suffix not in SUFFIXES or (suffix != JSON_LINES and without_compression(file.name) != file.name):
        raise BadInput(f"{file} has the ending {file.suffix or 'none'}; expected {', '.join(SUFFIXES)}, or .jsonl.gz")
    if suffix == TENSORS:
        with needs_extra("export"):
            import safetensors  # noqa: F401
    return suffix


def write_vectors(stream: IO[bytes], suffix: str, encoder: OnnxEncoder, batches: Iterable[Batch]) -> None:
    """Write batches in the format of a suffix; arrays are collected in memory."""
    if suffix == JSON_LINES:
        for batch in batches:
            stream.writelines(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows_of(batch, encoder))
        return
    ids, arrays = arrays_of(list(batches), encoder)
    if suffix == ARRAYS:
        np.savez(stream, allow_pickle=False, ids=np.array(ids, np.str_), **arrays)
        return
    from safetensors.numpy import save

    stream.write(save(dict(arrays), {"ids": json.dumps(ids, ensure_ascii=False)}))


def rows_of(batch: Batch, encoder: OnnxEncoder) -> Iterator[dict[str, Any]]:
    """One JSON object per text."""
    encoded = batch.encoded
    columns: dict[str, list[Any]] = {"id": list(batch.ids)}
    if encoded.dense is not None:
        columns["dense_vecs"] = encoded.dense.vectors.tolist()
    if encoded.lexical is not None:
        columns["lexical_weights"] = words_of(encoded.lexical, encoder.token_texts)
    if encoded.sparse is not None:
        columns["sparse_weights"] = words_of(encoded.sparse, encoder.term_texts)
    if encoded.multi is not None:
        spans = pairwise(encoded.multi.offsets.tolist())
        columns["colbert_vecs"] = [encoded.multi.vectors[start:end].tolist() for start, end in spans]
    for row in zip(*columns.values(), strict=True):
        yield dict(zip(columns, row, strict=True))


def words_of(vectors: Sparse, decode: Callable[[Sequence[int]], list[str]]) -> list[dict[str, float]]:
    """The weights of each text by word; of tokens that look alike, the higher one."""
    rows = []
    for start, end in pairwise(vectors.indptr.tolist()):
        weights: dict[str, float] = {}
        for word, weight in zip(decode(vectors.terms[start:end].tolist()), vectors.weights[start:end].tolist(), strict=True):
            weights[word] = max(weight, weights.get(word, 0.0))
        rows.append(weights)
    return rows


def arrays_of(batches: Sequence[Batch], encoder: OnnxEncoder) -> tuple[list[str], Mapping[str, NDArray[Any]]]:
    """The ids of all texts, and the arrays of all heads."""
    arrays: dict[str, NDArray[Any]] = {}
    dense, multi = ([found for batch in batches if (found := getattr(batch.encoded, head))] for head in ("dense", "multi"))
    if dense:
        arrays["dense_vecs"] = Dense.concat(dense).vectors
    if multi:
        joined = Multi.concat(multi)
        arrays |= {"colbert_vecs": joined.vectors, "colbert_offsets": joined.offsets, "colbert_ids": joined.tokens}
    sparse = encoder.folder.config.sparse
    for head, shift in (("lexical", 0), ("sparse", sparse.shift if sparse else 0)):
        parts = [found for batch in batches if (found := getattr(batch.encoded, head))]
        if parts:
            rows = Sparse.concat(parts)
            ids = (rows.terms + shift).astype(np.int32)
            arrays |= {f"{head}_indptr": rows.indptr, f"{head}_ids": ids, f"{head}_weights": rows.weights}
    return [name for batch in batches for name in batch.ids], arrays

"""trilens and sentence-transformers as encoders of the same texts: dense vectors and seconds.

    python -m benchmarks.peers.encoding SYSTEM --texts FOLDER --model MODEL --threads N --max-tokens N [--heads dense …]

Runs from the root of the repository with the Python of the environment that the system is installed in. The folder holds
`docs.jsonl` and `queries.jsonl`, one JSON string per line. Writes the dense vectors next to them and prints one JSON line.
"""

# mypy: disable-error-code="import-not-found"

import argparse
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.peers.protocol import Floats, peak_mb, report
from benchmarks.peers.words import read_texts

WARM_UP = 32

Encode = Callable[[list[str], str], Floats]
"""(texts, "doc" or "query") → L2-normalised dense vectors"""


def trilens(options: Any) -> Encode:
    """A model folder run by onnxruntime with the requested heads."""
    from trilens.encode.onnx import OnnxEncoder

    encoder = OnnxEncoder(Path(options.model), threads=options.threads, heads=options.heads)

    def encode(texts: list[str], side: str) -> Floats:
        encoded = encoder.encode_docs(texts) if side == "doc" else encoder.encode_queries(texts)
        assert encoded.dense
        return encoded.dense.vectors

    return encode


def sentence_transformers(options: Any) -> Encode:
    """torch in float32 with its default batch size, sorting texts by length as it does by default.

    Texts are truncated at the length of trilens, since reading less text would be faster for that reason alone.
    """
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(options.threads)
    model = SentenceTransformer(options.model, device="cpu")
    model.max_seq_length = options.max_tokens

    def encode(texts: list[str], side: str) -> Floats:
        vectors: Floats = model.encode(texts, normalize_embeddings=True, show_progress_bar=False)
        return vectors

    return encode


SYSTEMS = {"trilens": trilens, "sentence-transformers": sentence_transformers}


def main() -> None:
    """Encode the queries, then time the documents."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("system", choices=SYSTEMS)
    parser.add_argument("--texts", type=Path, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--heads", nargs="+", default=["dense"])
    parser.add_argument("--max-tokens", type=int, required=True, help="truncation length for sentence-transformers")
    options = parser.parse_args()
    encode = SYSTEMS[options.system](options)
    docs, queries = read_texts(options.texts / "docs.jsonl"), read_texts(options.texts / "queries.jsonl")
    encode(docs[:WARM_UP], "doc")
    np.save(options.texts / "queries.npy", encode(queries, "query"))
    start = perf_counter()
    vectors = encode(docs, "doc")
    seconds = perf_counter() - start
    np.save(options.texts / "docs.npy", vectors)
    report({"version": version(options.system), "seconds": seconds, "peak_mb": round(peak_mb())})


if __name__ == "__main__":
    main()

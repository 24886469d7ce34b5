"""BM25 of trilens and its peers as contenders: index the same texts or terms, answer all queries repeatedly.

    python -m benchmarks.peers.words SYSTEM --folder FOLDER [--own-analysis]

Runs from the root of the repository with the Python of the environment that the system is installed in. `benchmarks.bm25`
writes the folder: `texts.jsonl`, `queries.jsonl`, and their terms, one text per line, `terms.txt` and `query-terms.txt`. Prints
one JSON line with the rows and scores of the top k, best first.
"""

# mypy: disable-error-code="import-not-found,import-untyped"

import argparse
import json
import tempfile
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.peers.protocol import K, report
from benchmarks.record import folder_bytes, seconds

K1, B = 1.2, 0.75  # the fixed parameters of tantivy
BATCH = 100_000

Facts = dict[str, Any]


def run_trilens(folder: Path, index: Path, own_analysis: bool) -> Facts:
    """Encode and index in batches, merge them, and search."""
    from trilens.lenses.bm25 import Bm25Config, Bm25Lens

    lens = Bm25Lens(Bm25Config(k1=K1, b=B))
    texts = read_texts(folder / "texts.jsonl")
    lens.build(lens.encoder.encode_docs(texts[:100]), index / "warm-up")
    start = perf_counter()
    parts = []
    for first in range(0, len(texts), BATCH):
        lens.build(lens.encoder.encode_docs(texts[first : first + BATCH]), index / str(first))
        parts.append(lens.open(index / str(first)))
    whole = index / "0"
    if len(parts) > 1:
        whole = index / "whole"
        lens.merge(parts, [np.ones(len(part), np.bool_) for part in parts], whole)
    index_seconds = perf_counter() - start
    searcher = lens.searcher([lens.open(whole)], [None])
    queries = lens.encoder.encode_queries(read_texts(folder / "queries.jsonl"))
    times = seconds(lambda: searcher.search(queries, K), 7)
    top = searcher.search(queries, K)
    return {
        **{"index_seconds": index_seconds, "query": times, "repeats": 7, "index_bytes": folder_bytes(whole)},
        "found": [[int(row) for row in rows if row >= 0] for rows in top.rows],
        "scores": [[float(score) for score in scores if np.isfinite(score)] for scores in top.scores],
    }


def run_bm25s(folder: Path, index: Path, own_analysis: bool) -> Facts:
    """bm25s with its numba backend; indexing is timed with its tokeniser, search with the terms of trilens."""
    import bm25s
    import Stemmer

    index_seconds: float | None = None
    if own_analysis:
        texts = read_texts(folder / "texts.jsonl")
        start = perf_counter()
        tokens = bm25s.tokenize(texts, stopwords="en", stemmer=Stemmer.Stemmer("english"), show_progress=False)
        bm25s.BM25(method="lucene", k1=K1, b=B, backend="numba").index(tokens, show_progress=False)
        index_seconds = perf_counter() - start
        del tokens, texts
    model = bm25s.BM25(method="lucene", k1=K1, b=B, backend="numba")
    model.index(read_terms(folder / "terms.txt"), show_progress=False)
    queries = read_terms(folder / "query-terms.txt")
    times = seconds(lambda: model.retrieve(queries, k=K, n_threads=1, show_progress=False), 7)
    size = sum(array.nbytes for array in model.scores.values() if isinstance(array, np.ndarray))
    rows, scores = model.retrieve(queries, k=K, n_threads=1, show_progress=False)
    return {
        **{"index_seconds": index_seconds, "query": times, "repeats": 7, "index_bytes": size},
        **{"found": rows.tolist(), "scores": scores.tolist()},
    }


def run_tantivy(folder: Path, index: Path, own_analysis: bool) -> Facts:
    """tantivy-py with one writer thread and one segment."""
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("body", stored=False, tokenizer_name="whitespace", index_option="freq")
    builder.add_integer_field("row", stored=True, fast=True)
    opened = tantivy.Index(builder.build(), path=str(index))
    terms = read_terms(folder / "terms.txt")
    start = perf_counter()
    writer = opened.writer(heap_size=1_000_000_000, num_threads=1)
    for row, words in enumerate(terms):
        writer.add_document(tantivy.Document(body=" ".join(words), row=row))
    writer.commit()
    writer.wait_merging_threads()
    index_seconds = perf_counter() - start
    opened.reload()
    searcher = opened.searcher()
    queries = []
    for words in read_terms(folder / "query-terms.txt"):
        clauses = [(tantivy.Occur.Should, tantivy.Query.term_query(opened.schema, "body", word)) for word in words]
        queries.append(tantivy.Query.boolean_query(clauses))
    hits = [searcher.search(query, K).hits for query in queries]
    times = seconds(lambda: [searcher.search(query, K, count=False) for query in queries], 3)
    return {
        **{"index_seconds": index_seconds, "query": times, "repeats": 3, "index_bytes": folder_bytes(index)},
        "found": [[int(searcher.doc(address)["row"][0]) for _, address in ranking] for ranking in hits],
        "scores": [[float(score) for score, _ in ranking] for ranking in hits],
    }


def read_texts(path: Path) -> list[str]:
    """Read texts, one JSON string per line."""
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def read_terms(path: Path) -> list[list[str]]:
    """Read the terms of texts, one text per line."""
    with path.open(encoding="utf-8") as lines:
        return [line.split() for line in lines]


CONTENDERS = {"trilens": run_trilens, "bm25s": run_bm25s, "tantivy": run_tantivy}


def main() -> None:
    """Index and search."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("system", choices=CONTENDERS)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--own-analysis", action="store_true", help="time indexing with the tokeniser of the system")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as index:
        facts = CONTENDERS[options.system](options.folder, Path(index), options.own_analysis)
    report({"system": options.system, "version": version(options.system), **facts})


if __name__ == "__main__":
    main()

"""BM25 against bm25s (numba) and tantivy: one thread, k = 10, the same terms, the same queries.

    python -m benchmarks.bm25 --corpus debian-en.jsonl.xz [--grow 1000000]

Needs `pip install trilens[bench]`. Everybody gets the terms of trilens's analysis, and k1 = 1.2, b = 0.75, since tantivy
knows no other. Queries are runs of 2 to 8 words out of random documents (seeded). `--grow` makes a larger corpus by recombining
sentences of the first (seeded). The top 10 must agree with bm25s; tantivy rounds lengths, so its overlap is recorded.
"""

import argparse
import os
import random
import re
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import bm25s
import numpy as np
import Stemmer
import tantivy
from numpy.typing import NDArray

from benchmarks.record import file_hash, record, seconds
from trilens.index.bm25 import Bm25Config, Bm25Lens, Bm25Searcher
from trilens.text.analysis import Analyzer
from trilens.text.readers import read

SEED, QUERIES, K, K1, B = 1, 1000, 10, 1.2, 0.75
SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
BATCH = 100_000

Scores = NDArray[np.float32]


def grow(texts: list[str], size: int) -> Iterator[str]:
    """Documents made of sentences of the corpus, as many sentences each as some document of the corpus has."""
    chance = random.Random(SEED)
    split = [[sentence for sentence in SENTENCE.split(text) if sentence.strip()] for text in texts]
    sentences, lengths = [sentence for document in split for sentence in document], [len(document) for document in split]
    for _ in range(size):
        yield " ".join(chance.choices(sentences, k=max(1, chance.choice(lengths))))


def make_queries(texts: list[str]) -> list[str]:
    """Runs of words, some frequent and some rare, as documents hold them."""
    chance = random.Random(SEED)
    queries = []
    for text in chance.sample(texts, QUERIES):
        words = text.split()
        start = chance.randrange(max(1, len(words) - 8))
        queries.append(" ".join(words[start : start + chance.randint(2, 8)]))
    return queries


def run_trilens(texts: list[str], queries: list[str], folder: Path) -> tuple[dict[str, Any], Bm25Searcher, Scores]:
    """Encode, build, merge the pieces of a large corpus, and answer."""
    lens = Bm25Lens(Bm25Config(k1=K1, b=B))
    lens.build(lens.encoder.encode_docs(texts[:100]), folder / "warm-up")
    start = perf_counter()
    pieces = []
    for first in range(0, len(texts), BATCH):
        lens.build(lens.encoder.encode_docs(texts[first : first + BATCH]), folder / str(first))
        pieces.append(lens.open(folder / str(first)))
    whole = folder / "0"
    if len(pieces) > 1:
        whole = folder / "whole"
        lens.merge(pieces, [np.ones(len(piece), np.bool_) for piece in pieces], whole)
    index_seconds = perf_counter() - start
    searcher = lens.searcher([lens.open(whole)], [None])
    encoded = lens.encoder.encode_queries(queries)
    times = seconds(lambda: searcher.search(encoded, K), 7)
    size = sum(file.stat().st_size for file in whole.rglob("*"))
    found = searcher.search(encoded, K)
    return {"index_seconds": index_seconds, "query": times, "index_bytes": size}, searcher, found.scores


def run_bm25s(
    texts: list[str], terms: list[list[str]], queries: list[list[str]], own_analysis: bool
) -> tuple[dict[str, Any], Any]:
    """bm25s with its numba backend. Indexing is timed with its own tokeniser, searching with our terms."""
    index_seconds: float | None = None
    if own_analysis:
        start = perf_counter()
        tokens = bm25s.tokenize(texts, stopwords="en", stemmer=Stemmer.Stemmer("english"), show_progress=False)
        bm25s.BM25(method="lucene", k1=K1, b=B, backend="numba").index(tokens, show_progress=False)
        index_seconds = perf_counter() - start
        del tokens
    model = bm25s.BM25(method="lucene", k1=K1, b=B, backend="numba")
    model.index(terms, show_progress=False)
    times = seconds(lambda: model.retrieve(queries, k=K, n_threads=1, show_progress=False), 7)
    size = sum(array.nbytes for array in model.scores.values() if isinstance(array, np.ndarray))
    return {"index_seconds": index_seconds, "query": times, "index_bytes": size}, model


def run_tantivy(terms: list[list[str]], queries: list[list[str]], folder: Path) -> tuple[dict[str, Any], list[list[int]]]:
    """tantivy-py, one writer thread, one segment."""
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("body", stored=False, tokenizer_name="whitespace", index_option="freq")
    builder.add_integer_field("row", stored=True, fast=True)
    folder.mkdir()
    index = tantivy.Index(builder.build(), path=str(folder))
    start = perf_counter()
    writer = index.writer(heap_size=1_000_000_000, num_threads=1)
    for row, words in enumerate(terms):
        writer.add_document(tantivy.Document(body=" ".join(words), row=row))
    writer.commit()
    writer.wait_merging_threads()
    index_seconds = perf_counter() - start
    index.reload()
    searcher = index.searcher()
    parsed = [_any_of(index, words) for words in queries]
    answers = [[int(searcher.doc(address)["row"][0]) for _, address in searcher.search(query, K).hits] for query in parsed]
    times = seconds(lambda: [searcher.search(query, K, count=False) for query in parsed], 3)
    size = sum(file.stat().st_size for file in folder.rglob("*"))
    return {"index_seconds": index_seconds, "query": times, "index_bytes": size}, answers


def _any_of(index: Any, words: list[str]) -> Any:
    clauses = [(tantivy.Occur.Should, tantivy.Query.term_query(index.schema, "body", word)) for word in words]
    return tantivy.Query.boolean_query(clauses)


def compare(name: str, data: str, texts: list[str], queries: list[str], own_analysis: bool) -> None:
    """All three on one corpus."""
    analyzer = Analyzer()
    query_terms = [analyzer.terms(query) for query in queries]
    kept = [i for i, words in enumerate(query_terms) if words]
    queries, query_terms = [queries[i] for i in kept], [query_terms[i] for i in kept]
    facts = {"corpus": name, "documents": len(texts), "queries": len(queries), "k": K, "threads": 1, "seed": SEED, "data": data}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        ours, _, our_scores = run_trilens(texts, queries, folder)
        record("bm25", system="trilens", **facts, **per_query(ours, len(queries)))
        terms = [words for first in range(0, len(texts), BATCH) for words in terms_of(analyzer, texts[first : first + BATCH])]
        theirs, model = run_bm25s(texts, terms, query_terms, own_analysis)
        scores = model.retrieve(query_terms, k=K, n_threads=1, show_progress=False).scores
        rows = np.isfinite(our_scores)
        worst = float(np.abs(np.where(rows, our_scores, 0) - np.where(rows, scores, 0)).max())
        record("bm25", system="bm25s", **facts, **per_query(theirs, len(queries)), largest_score_difference=worst)
        del model
        other, answers = run_tantivy(terms, query_terms, folder / "tantivy")
        searcher_rows = our_top(texts, queries, folder)
        overlap = float(np.mean([len(set(a) & set(b)) / max(1, len(a)) for a, b in zip(answers, searcher_rows, strict=True)]))
        record("bm25", system="tantivy", **facts, **per_query(other, len(queries)), overlap_at_10=overlap)


def our_top(texts: list[str], queries: list[str], folder: Path) -> list[list[int]]:
    """Rows that trilens found, from the index that is still in `folder`."""
    lens = Bm25Lens(Bm25Config(k1=K1, b=B))
    whole = folder / "whole" if (folder / "whole").exists() else folder / "0"
    top = lens.searcher([lens.open(whole)], [None]).search(lens.encoder.encode_queries(queries), K)
    return [[int(row) for row in rows if row >= 0] for rows in top.rows]


def terms_of(analyzer: Analyzer, texts: list[str]) -> list[list[str]]:
    """The terms of each text, in order."""
    words, ends, terms = analyzer.words(texts)
    starts = [0, *ends.tolist()]
    numbers = words.tolist()
    return [[term for word in numbers[start:end] if (term := terms[word]) is not None] for start, end in pairwise(starts)]


def per_query(result: dict[str, Any], queries: int) -> dict[str, Any]:
    """Milliseconds for one query."""
    times = {f"ms_per_query_{name}": round(1000 * value / queries, 5) for name, value in result.pop("query").items()}
    index_seconds = result["index_seconds"]
    return {**result, "index_seconds": None if index_seconds is None else round(index_seconds, 3), **times}


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True, help="JSON lines with title and text")
    parser.add_argument("--grow", type=int, default=0, help="also compare on a made corpus of this size")
    options = parser.parse_args()
    texts = [f"{document.title}\n{document.text}" for document in read([options.corpus], on_bad=lambda error: None)]
    queries = make_queries(texts)
    data = file_hash(options.corpus)
    compare(options.corpus.name.partition(".")[0], data, texts, queries, own_analysis=True)
    if options.grow:
        compare(f"grown to {options.grow:,}", data, list(grow(texts, options.grow)), queries, own_analysis=False)


if __name__ == "__main__":
    main()

"""BM25 against bm25s (numba) and tantivy: one thread, k = 10, the same terms and queries.

    ./scripts/bench bm25 --corpus debian-en.jsonl.xz
    ./scripts/bench growth --corpus debian-en.jsonl.xz

All systems get the terms of trilens's analyzer, and k1 = 1.2, b = 0.75, which are fixed in tantivy. Queries are sequences of 2
to 8 words from random documents (seeded). `--grow` generates larger corpora by recombining sentences (seeded). Scores are
compared with those of bm25s; tantivy quantises document lengths, so its overlap is recorded.
"""

import argparse
import json
import random
import re
import tempfile
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.contest import ask, python_for, taking_part
from benchmarks.peers.words import BATCH, CONTENDERS
from benchmarks.record import add_data, file_hash, record
from benchmarks.tasks import SEED, K, whole, write_lines
from trilens.read.readers import read
from trilens.text.analysis import Analyzer

QUERIES = 1000
SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")


def grow(texts: list[str], size: int) -> Iterator[str]:
    """Generate documents from random sentences of the corpus; their numbers of sentences are drawn from its documents."""
    rng = random.Random(SEED)
    split = [[sentence for sentence in SENTENCE.split(text) if sentence.strip()] for text in texts]
    sentences, lengths = [sentence for document in split for sentence in document], [len(document) for document in split]
    for _ in range(size):
        yield " ".join(rng.choices(sentences, k=max(1, rng.choice(lengths))))


def make_queries(texts: list[str]) -> list[str]:
    """Word sequences from random documents, with frequent and rare words."""
    rng = random.Random(SEED)
    queries = []
    for text in rng.sample(texts, min(QUERIES, len(texts))):
        words = text.split()
        start = rng.randrange(max(1, len(words) - 8))
        queries.append(" ".join(words[start : start + rng.randint(2, 8)]))
    return queries


def compare(name: str, data: str, texts: list[str], queries: list[str], systems: Sequence[str], own_analysis: bool) -> None:
    """Measure all systems on one corpus."""
    analyzer = Analyzer()
    query_terms = terms_of(analyzer, queries)
    kept = [i for i, words in enumerate(query_terms) if words]
    queries, query_terms = [queries[i] for i in kept], [query_terms[i] for i in kept]
    facts = {"corpus": name, "documents": len(texts), "queries": len(queries), "k": K, "threads": 1, "seed": SEED, "data": data}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_lines(folder / "texts.jsonl", map(json.dumps, texts))
        write_lines(folder / "queries.jsonl", map(json.dumps, queries))
        write_lines(folder / "query-terms.txt", map(" ".join, query_terms))
        batches = (terms_of(analyzer, texts[first : first + BATCH]) for first in range(0, len(texts), BATCH))
        write_lines(folder / "terms.txt", (" ".join(words) for batch in batches for words in batch))
        ours: dict[str, Any] = {}
        for system in systems:
            arguments = [system, "--folder", str(folder), *(["--own-analysis"] if own_analysis else [])]
            with taking_part("bm25", system):
                (answer,) = ask(python_for(system), "words", arguments, threads=1)
                ours = answer if system == "trilens" else ours
                record("bm25", **facts, **per_query(answer, len(queries)), **compared(answer, ours))


def compared(answer: dict[str, Any], ours: dict[str, Any]) -> dict[str, float]:
    """Overlap with the results of trilens, and for bm25s the largest score difference."""
    if not ours or answer is ours:
        return {}
    both = zip(answer["found"], ours["found"], strict=True)
    shares = [len(set(theirs) & set(own)) / max(1, len(own)) for theirs, own in both]
    overlap = {"overlap_at_10": float(np.mean(shares))}
    if answer["system"] != "bm25s":  # tantivy's scores have another scale
        return overlap
    pairs = zip(answer["scores"], ours["scores"], strict=True)
    worst = max(float(np.abs(np.subtract(theirs[: len(own)], own)).max(initial=0.0)) for theirs, own in pairs)
    return {"largest_score_difference": worst, **overlap}


def terms_of(analyzer: Analyzer, texts: list[str]) -> list[list[str]]:
    """The terms of each text, in order."""
    words, ends, terms = analyzer.words(texts)
    starts = [0, *ends.tolist()]
    word_ids = words.tolist()
    return [[term for word in word_ids[start:end] if (term := terms[word]) is not None] for start, end in pairwise(starts)]


def per_query(answer: dict[str, Any], queries: int) -> dict[str, Any]:
    """Recorded facts of an answer, with milliseconds per query."""
    times = {f"ms_per_query_{name}": round(1000 * value / queries, 5) for name, value in answer["query"].items()}
    index_seconds = answer["index_seconds"]
    facts = {name: answer[name] for name in ("system", "version", "repeats", "index_bytes")}
    return {**facts, "index_seconds": None if index_seconds is None else round(index_seconds, 3), **times}


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data(parser, "--corpus", "debian-en.jsonl.xz", "JSON lines with title and text")
    parser.add_argument("--grow", type=int, nargs="*", default=[], help="use generated corpora of these sizes instead")
    parser.add_argument("--systems", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    options = parser.parse_args()
    texts = [whole(document) for document in read([options.corpus], on_skip=lambda error: None)]
    queries, data = make_queries(texts), file_hash(options.corpus)
    if not options.grow:
        compare(options.corpus.name.partition(".")[0], data, texts, queries, options.systems, own_analysis=True)
    for size in options.grow:
        compare(f"grown to {size:,}", data, list(grow(texts, size)), queries, options.systems, own_analysis=False)


if __name__ == "__main__":
    main()

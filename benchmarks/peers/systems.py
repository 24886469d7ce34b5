"""End-to-end systems as contenders: index texts to disk, then answer questions in another process.

    python -m benchmarks.peers.systems SYSTEM index|answer --texts FOLDER --index FOLDER --model MODEL --threads N

Runs from the root of the repository with the Python of the environment that the system is installed in. The folder holds
`docs.jsonl` and `queries.jsonl`, one JSON string per line; the id of a document is its position. `answer` prints a line after
the first question, so that the caller can time a cold start, and another after all passes. Every system is used as its
documentation shows.
"""

# mypy: disable-error-code="import-not-found,import-untyped"

import argparse
import json
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

from benchmarks.peers.protocol import K, peak_mb, report
from benchmarks.peers.words import read_texts

SEED = 1


class System(Protocol):
    """A system, imported by its constructor so that importing does not count as indexing; `options` is the command line."""

    package: str

    def __init__(self, options: Any) -> None: ...

    def index(self, texts: list[str]) -> None:
        """Write the index."""

    def open(self) -> None:
        """Load the index."""

    def answer(self, query: str) -> list[int]:
        """Top K documents, best first."""


class Trilens:
    """A collection; several lenses are combined by reciprocal rank fusion."""

    package = "trilens"

    def __init__(self, options: Any) -> None:
        import trilens.collection  # noqa: F401

        self.options = options

    def index(self, texts: list[str]) -> None:
        """Index passages of 150 words."""
        from trilens import Collection, Document
        from trilens.store.config import WORD_PASSAGES

        lenses = {"lenses": self.options.lenses, "model": self.options.model, "passages": WORD_PASSAGES}
        with Collection.create(self.options.index, threads=self.options.threads, **lenses) as collection:
            collection.add(Document(str(position), text) for position, text in enumerate(texts))

    def open(self) -> None:
        """Memory-map the index."""
        from trilens import Collection

        self._collection = Collection.open(self.options.index, threads=self.options.threads)

    def answer(self, query: str) -> list[int]:
        """Search all lenses of the collection."""
        return [int(hit.doc_id) for hit in self._collection.search([query], K)[0]]


class Bm25s:
    """bm25s with its numba backend and an English stemmer."""

    package = "bm25s"

    def __init__(self, options: Any) -> None:
        import bm25s  # noqa: F401
        import Stemmer

        self.options = options
        self._stemmer = Stemmer.Stemmer("english")

    def index(self, texts: list[str]) -> None:
        """Tokenise, index, save."""
        import bm25s

        tokens = bm25s.tokenize(texts, stopwords="en", stemmer=self._stemmer, show_progress=False)
        model = bm25s.BM25(k1=0.9, b=0.4, backend="numba")
        model.index(tokens, show_progress=False)
        model.save(self.options.index)

    def open(self) -> None:
        """Memory-map the index."""
        import bm25s

        self._model = bm25s.BM25.load(self.options.index, mmap=True)

    def answer(self, query: str) -> list[int]:
        """Search a batch of one query."""
        import bm25s

        tokens = bm25s.tokenize([query], stopwords="en", stemmer=self._stemmer, show_progress=False, return_ids=False)
        results = self._model.retrieve(tokens, k=K, n_threads=1, show_progress=False)
        return [int(position) for position in results.documents[0]]


class Pyserini:
    """Lucene through Anserini; JAVA_HOME selects the Java installation."""

    package = "pyserini"

    def __init__(self, options: Any) -> None:
        self.options = options

    def index(self, texts: list[str]) -> None:
        """Run its indexing command on a folder of JSON lines."""
        with tempfile.TemporaryDirectory() as folder:
            with (Path(folder) / "docs.jsonl").open("w", encoding="utf-8") as file:
                file.writelines(json.dumps({"id": str(row), "contents": text}) + "\n" for row, text in enumerate(texts))
            command = [sys.executable, "-m", "pyserini.index.lucene", "--collection", "JsonCollection", "--input", folder]
            command += ["--index", str(self.options.index), "--generator", "DefaultLuceneDocumentGenerator"]
            subprocess.run([*command, "--threads", str(self.options.threads)], check=True, stdout=subprocess.DEVNULL)

    def open(self) -> None:
        """Use the BM25 parameters of its regressions."""
        from pyserini.search.lucene import LuceneSearcher

        self._searcher = LuceneSearcher(str(self.options.index))
        self._searcher.set_bm25(0.9, 0.4)

    def answer(self, query: str) -> list[int]:
        """Search one query."""
        return [int(hit.docid) for hit in self._searcher.search(query, k=K)]


class PyLate:
    """PyLate with fast-plaid; a plain encoder gets a random projection to 128 dimensions, so only its speed is meaningful."""

    package = "pylate"

    def __init__(self, options: Any) -> None:
        import pylate.models  # noqa: F401

        self.options = options

    def _model(self) -> Any:
        import torch
        from pylate import models

        torch.set_num_threads(self.options.threads)
        torch.manual_seed(SEED)
        return models.ColBERT(model_name_or_path=self.options.model, device="cpu")

    def _index(self, override: bool) -> Any:
        from pylate import indexes

        return indexes.PLAID(index_folder=str(self.options.index), index_name="index", override=override, device="cpu")

    def index(self, texts: list[str]) -> None:
        """Encode all texts, then index them."""
        vectors = self._model().encode(texts, batch_size=32, is_query=False, show_progress_bar=False)
        self._index(override=True).add_documents(documents_ids=list(map(str, range(len(texts)))), documents_embeddings=vectors)

    def open(self) -> None:
        """Load the model and the index."""
        from pylate import retrieve

        self._encoder = self._model()
        self._retriever = retrieve.ColBERT(index=self._index(override=False))

    def answer(self, query: str) -> list[int]:
        """Search a batch of one query."""
        vectors = self._encoder.encode([query], is_query=True, show_progress_bar=False)
        return [int(hit["id"]) for hit in self._retriever.retrieve(queries_embeddings=vectors, k=K)[0]]


class Txtai:
    """txtai's hybrid search: its BM25 and dense vectors in faiss, fused by a convex combination."""

    package = "txtai"

    def __init__(self, options: Any) -> None:
        import txtai  # noqa: F401

        self.options = options

    def index(self, texts: list[str]) -> None:
        """Index without storing the texts, like the other peers."""
        import torch
        from txtai import Embeddings

        torch.set_num_threads(self.options.threads)
        embeddings = Embeddings(path=self.options.model, hybrid=True, content=False, gpu=False)
        embeddings.index((position, text, None) for position, text in enumerate(texts))
        embeddings.save(str(self.options.index))

    def open(self) -> None:
        """Load the model and the index."""
        import torch
        from txtai import Embeddings

        torch.set_num_threads(self.options.threads)
        self._embeddings = Embeddings()
        self._embeddings.load(str(self.options.index))

    def answer(self, query: str) -> list[int]:
        """Search one query."""
        return [int(position) for position, _ in self._embeddings.search(query, K)]


SYSTEMS: dict[str, type[System]] = {
    "trilens": Trilens,
    "bm25s": Bm25s,
    "pyserini": Pyserini,
    "pylate": PyLate,
    "txtai": Txtai,
}


def main() -> None:
    """Index texts or answer questions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("system", choices=SYSTEMS)
    parser.add_argument("action", choices=("index", "answer"))
    parser.add_argument("--texts", type=Path, required=True)
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--model", default="")
    parser.add_argument("--lenses", nargs="+", default=[], help="lenses of trilens")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3, help="passes over the questions")
    options = parser.parse_args()
    kind = SYSTEMS[options.system]
    system = kind(options)
    if options.action == "index":
        texts = read_texts(options.texts / "docs.jsonl")
        start = perf_counter()
        system.index(texts)
        report({"version": version(kind.package), "seconds": perf_counter() - start, "peak_mb": round(peak_mb())})
        return
    queries = read_texts(options.texts / "queries.jsonl")
    system.open()
    system.answer(queries[0])
    report({"answered": 1})
    passes: list[float] = []
    rankings: list[list[int]] = []
    for _ in range(options.repeats):
        start = perf_counter()
        rankings = [system.answer(query) for query in queries]
        passes.append(perf_counter() - start)
    report({"seconds": passes, "found": rankings, "peak_mb": round(peak_mb())})


if __name__ == "__main__":
    main()

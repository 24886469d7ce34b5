"""Whole systems as contenders: texts in, an index on disk; then, in another process, questions in and answers out.

    python -m benchmarks.peers.systems SYSTEM index|answer --texts FOLDER --index FOLDER --model MODEL --threads N

Run from the root of the repository by the Python of the environment that the system is installed in. The folder holds
`docs.jsonl` and `queries.jsonl`, a JSON string to a line; a document's id is its place. `answer` prints a line as soon as the
first question is answered, so that the caller can tell how long a cold start takes, and another after all passes. Every system
indexes and searches as its documentation shows.
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

from benchmarks.peers.protocol import K, peak_mb, say
from benchmarks.peers.words import read_texts

SEED = 1


class System(Protocol):
    """One system, imported when it is made: that is not indexing. `options` are those of the command line."""

    package: str

    def __init__(self, options: Any) -> None: ...

    def index(self, texts: list[str]) -> None:
        """Write everything that is needed to answer."""

    def open(self) -> None:
        """Get ready to answer."""

    def answer(self, query: str) -> list[int]:
        """The best K documents, best first."""


class Trilens:
    """A collection with some lenses; several are fused by reciprocal rank."""

    package = "trilens"

    def __init__(self, options: Any) -> None:
        import trilens.collection  # noqa: F401

        self.options = options

    def index(self, texts: list[str]) -> None:
        """Passages of 150 words, as is the default."""
        from trilens import Collection, Document

        chosen = {"lenses": self.options.lenses, "model": self.options.model}
        with Collection.create(self.options.index, threads=self.options.threads, **chosen) as collection:
            collection.add(Document(str(place), text) for place, text in enumerate(texts))

    def open(self) -> None:
        """Mapped."""
        from trilens import Collection

        self._collection = Collection.open(self.options.index, threads=self.options.threads)

    def answer(self, query: str) -> list[int]:
        """All lenses of the collection."""
        return [int(hit.doc_id) for hit in self._collection.search([query], K)[0]]


class Bm25s:
    """bm25s with its numba backend and an English stemmer; the index is mapped."""

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
        """Mapped."""
        import bm25s

        self._model = bm25s.BM25.load(self.options.index, mmap=True)

    def answer(self, query: str) -> list[int]:
        """A batch of one."""
        import bm25s

        tokens = bm25s.tokenize([query], stopwords="en", stemmer=self._stemmer, show_progress=False, return_ids=False)
        found = self._model.retrieve(tokens, k=K, n_threads=1, show_progress=False)
        return [int(place) for place in found.documents[0]]


class Pyserini:
    """Lucene through Anserini; JAVA_HOME says which Java."""

    package = "pyserini"

    def __init__(self, options: Any) -> None:
        self.options = options

    def index(self, texts: list[str]) -> None:
        """Its own command, which reads a folder of JSON lines."""
        with tempfile.TemporaryDirectory() as folder:
            with (Path(folder) / "docs.jsonl").open("w", encoding="utf-8") as file:
                file.writelines(json.dumps({"id": str(place), "contents": text}) + "\n" for place, text in enumerate(texts))
            command = [sys.executable, "-m", "pyserini.index.lucene", "--collection", "JsonCollection", "--input", folder]
            command += ["--index", str(self.options.index), "--generator", "DefaultLuceneDocumentGenerator"]
            subprocess.run([*command, "--threads", str(self.options.threads)], check=True, stdout=subprocess.DEVNULL)

    def open(self) -> None:
        """With the parameters of its own regressions."""
        from pyserini.search.lucene import LuceneSearcher

        self._searcher = LuceneSearcher(str(self.options.index))
        self._searcher.set_bm25(0.9, 0.4)

    def answer(self, query: str) -> list[int]:
        """One question."""
        return [int(hit.docid) for hit in self._searcher.search(query, k=K)]


class PyLate:
    """PyLate with fast-plaid; a plain encoder gets a projection to 128 dimensions, drawn by seed, so speed alone counts."""

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
        """Encode all, then index all."""
        vectors = self._model().encode(texts, batch_size=32, is_query=False, show_progress_bar=False)
        self._index(override=True).add_documents(documents_ids=list(map(str, range(len(texts)))), documents_embeddings=vectors)

    def open(self) -> None:
        """Model and index."""
        from pylate import retrieve

        self._encoder = self._model()
        self._retriever = retrieve.ColBERT(index=self._index(override=False))

    def answer(self, query: str) -> list[int]:
        """A batch of one."""
        vectors = self._encoder.encode([query], is_query=True, show_progress_bar=False)
        return [int(found["id"]) for found in self._retriever.retrieve(queries_embeddings=vectors, k=K)[0]]


class Txtai:
    """txtai's hybrid search: its BM25 and dense vectors in faiss, joined by convex combination."""

    package = "txtai"

    def __init__(self, options: Any) -> None:
        import txtai  # noqa: F401

        self.options = options

    def index(self, texts: list[str]) -> None:
        """Texts are not stored, as nowhere else."""
        import torch
        from txtai import Embeddings

        torch.set_num_threads(self.options.threads)
        embeddings = Embeddings(path=self.options.model, hybrid=True, content=False, gpu=False)
        embeddings.index((place, text, None) for place, text in enumerate(texts))
        embeddings.save(str(self.options.index))

    def open(self) -> None:
        """Model and index."""
        import torch
        from txtai import Embeddings

        torch.set_num_threads(self.options.threads)
        self._embeddings = Embeddings()
        self._embeddings.load(str(self.options.index))

    def answer(self, query: str) -> list[int]:
        """One question."""
        return [int(place) for place, _ in self._embeddings.search(query, K)]


SYSTEMS: dict[str, type[System]] = {
    "trilens": Trilens,
    "bm25s": Bm25s,
    "pyserini": Pyserini,
    "pylate": PyLate,
    "txtai": Txtai,
}


def main() -> None:
    """Index or answer as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("system", choices=SYSTEMS)
    parser.add_argument("action", choices=("index", "answer"))
    parser.add_argument("--texts", type=Path, required=True)
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--model", default="")
    parser.add_argument("--lenses", nargs="+", default=[], help="of trilens")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3, help="passes over the questions")
    options = parser.parse_args()
    kind = SYSTEMS[options.system]
    system = kind(options)
    if options.action == "index":
        texts = read_texts(options.texts / "docs.jsonl")
        start = perf_counter()
        system.index(texts)
        say({"version": version(kind.package), "seconds": perf_counter() - start, "peak_mb": round(peak_mb())})
        return
    queries = read_texts(options.texts / "queries.jsonl")
    system.open()
    system.answer(queries[0])
    say({"answered": 1})
    passes: list[float] = []
    found: list[list[int]] = []
    for _ in range(options.repeats):
        start = perf_counter()
        found = [system.answer(query) for query in queries]
        passes.append(perf_counter() - start)
    say({"seconds": passes, "found": found, "peak_mb": round(peak_mb())})


if __name__ == "__main__":
    main()

"""`CrossEncoder`: scores pairs of query and passage with a model folder on the CPU, in batches of similar length."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from trilens.cancellation import require_wanted
from trilens.encode.cross_folder import SCORE, CrossFolder
from trilens.encode.models import resolve_model
from trilens.encode.onnx import BATCH_TOKENS, BATCHES_AT_ONCE, batches_by_length, open_session, run_ahead, thread_count
from trilens.encode.pair_reading import Pair, PairReading
from trilens.encode.reading import require_texts
from trilens.encode.tokens import Tokens
from trilens.kernels.array_types import Float32s, Int64s

TYPES = "token_type_ids"


class CrossEncoder:
    """Reads a query and a passage together and scores how well the passage answers. Thread-safe; loaded at first use."""

    def __init__(self, path: Path, threads: int | None = None) -> None:
        self._threads = thread_count(threads)
        self.folder = CrossFolder.open(path)
        self._lock = threading.Lock()
        self._loaded: _LoadedGraph | None = None

    @staticmethod
    def named(model: str, threads: int | None = None) -> "CrossEncoder":
        """The cross-encoder with a name in the cache, or of a folder."""
        return CrossEncoder(resolve_model(model), threads)

    @property
    def name(self) -> str:
        """Name and digest of the model."""
        return self.folder.fingerprint

    def score(self, queries: Sequence[str], passages: Sequence[Sequence[str]]) -> list[Float32s]:
        """The scores of each query's own passages, in order. They are logits, and do not depend on the other pairs."""
        pairs = [(query, text) for query, texts in zip(queries, passages, strict=True) for text in texts]
        scores, ends = self.score_pairs(pairs), np.cumsum([len(texts) for texts in passages]).tolist()
        return [scores[end - len(texts) : end] for texts, end in zip(passages, ends, strict=True)]

    def score_pairs(self, pairs: Sequence[Pair]) -> Float32s:
        """The scores of pairs of query and passage."""
        require_texts([text for pair in pairs for text in pair])
        return self._load().score(pairs) if pairs else np.empty(0, np.float32)

    def _load(self) -> "_LoadedGraph":
        with self._lock:
            if self._loaded is None:
                self._loaded = _LoadedGraph(self.folder, self._threads)
            return self._loaded


class _LoadedGraph:
    """The tokenizer and the graph of a folder. A single batch uses all threads, several run concurrently."""

    def __init__(self, folder: CrossFolder, threads: int) -> None:
        self._reading = PairReading.of(Tokens(folder.tokenizer), folder.config)
        self._file, self._types = folder.weights, folder.config.token_types
        self._threads, self._at_once = threads, min(threads, BATCHES_AT_ONCE)
        self._pool = ThreadPoolExecutor(self._at_once, "score")
        self._lock = threading.Lock()
        self._opened: dict[int, Callable[[list[str], dict[str, Int64s]], list[Float32s]]] = {}

    def score(self, pairs: Sequence[Pair]) -> Float32s:
        inputs, scores = self._reading.read(pairs), np.empty(len(pairs), np.float32)
        batches = [*batches_by_length([len(row) for row in inputs.ids], BATCH_TOKENS, len(pairs))]
        threads = self._threads if len(batches) == 1 else self._threads // self._at_once
        run = self._open(threads)

        def work(batch: Int64s) -> int:
            padded = inputs.padded(batch)
            if not self._types:
                del padded[TYPES]
            (scores[batch],) = run([SCORE], padded)
            return len(batch)

        for _ in map(work, batches) if threads == self._threads else run_ahead(self._pool, work, batches):
            require_wanted()
        return scores

    def _open(self, threads: int) -> Callable[[list[str], dict[str, Int64s]], list[Float32s]]:
        with self._lock:
            if threads not in self._opened:
                self._opened[threads] = open_session(self._file, {SCORE: None}, threads)
            return self._opened[threads]

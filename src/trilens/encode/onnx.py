"""`OnnxEncoder`: runs a model folder on the CPU, in batches of texts of like length."""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trilens.encode.encoder import Encoded, Progress
from trilens.encode.folder import Head, ModelFolder
from trilens.encode.reading import Kept, Reading, Rows, Side
from trilens.encode.tokens import Tokens
from trilens.errors import BadInput, BadModel
from trilens.represent import Dense, Multi
from trilens.represent.ragged import concat_offsets, take_ragged
from trilens.text.document import require_utf8

# Small, so that the activations of a layer stay in the cache: batches of 8192 tokens take a quarter longer or more.
BATCH_TOKENS = 1024
# Texts tokenised and sorted by length at a time: enough for batches of like length, few enough to bound the memory.
WINDOW_TEXTS = 4096


class OnnxEncoder:
    """One model folder, opened. Loading waits for the first text; every method may be called from any thread.

    A text gets the same vectors whatever it is encoded together with, and whichever `heads` are asked for (None: all).
    """

    def __init__(self, path: Path, threads: int | None = None, heads: Sequence[Head] | None = None) -> None:
        if threads is not None and threads < 1:
            raise BadInput(f"threads is {threads}; expected at least 1, or None for all cores available")
        self.folder = ModelFolder.open(path)
        self.heads = choose_heads(self.folder, heads)
        self._threads = threads
        self._lock = threading.Lock()
        self._loaded: _Loaded | None = None

    @property
    def fingerprint(self) -> str:
        """Name and digest of the model; see `ModelFolder.fingerprint`."""
        return self.folder.fingerprint

    @property
    def dim(self) -> int:
        """Dimensions of the dense vectors."""
        return self.folder.config.dim

    def encode_docs(self, texts: Sequence[str], progress: Progress | None = None) -> Encoded:
        """Representations of passages, in the order given."""
        return self._encode(texts, "doc", progress or _silent)

    def encode_queries(self, texts: Sequence[str]) -> Encoded:
        """Representations of queries, in the order given."""
        return self._encode(texts, "query", _silent)

    def doc_tokens(self, texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Offsets and vocabulary ids of the tokens that `encode_docs` gives a vector, without running the model."""
        require_texts(texts)
        reading = self._load().readings["doc"]
        kept = reading.kept(reading.read(list(texts)))
        return kept.offsets, kept.tokens

    def token_texts(self, ids: Sequence[int]) -> list[str]:
        """The tokens of a `Multi` in words, for people to read."""
        return self._load().tokens.texts(ids)

    def _encode(self, texts: Sequence[str], side: Side, progress: Progress) -> Encoded:
        require_texts(texts)
        multi = self.folder.config.multi if "multi" in self.heads else None
        dense = np.empty((len(texts), self.dim), np.float32) if "dense" in self.heads else None
        parts: list[Multi] = []
        truncated = 0
        for start in range(0, len(texts), WINDOW_TEXTS):
            loaded = self._load()
            reading = loaded.readings[side]
            rows = reading.read(list(texts[start : start + WINDOW_TEXTS]))
            truncated += rows.truncated
            kept = reading.kept(rows) if multi else None
            vectors = np.empty((len(kept.tokens) if kept else 0, multi.dim if multi else 0), np.float32)
            for batch in batches_by_length([len(row) for row in rows.ids], BATCH_TOKENS):
                found = loaded.run(rows, batch, self.heads)
                if dense is not None:
                    dense[start + batch] = found["dense"]
                if kept is not None:
                    place_tokens(vectors, found["multi"], kept, batch)
                progress(len(batch))
            if kept is not None:
                parts.append(Multi(kept.offsets, vectors, kept.tokens))
        return Encoded(
            dense=None if dense is None else Dense(dense),
            multi=None if multi is None else join_windows(parts, multi.dim),
            truncated=truncated,
        )

    def _load(self) -> "_Loaded":
        with self._lock:
            if self._loaded is None:
                config, tokens = self.folder.config, Tokens(self.folder.tokenizer)
                fill = "multi" in self.heads
                readings: dict[Side, Reading] = {
                    "query": Reading(tokens, config, "query", fill),
                    "doc": Reading(tokens, config, "doc", fill),
                }
                session = open_session(self.folder, self._threads or len(os.sched_getaffinity(0)))
                self._loaded = _Loaded(tokens, readings, session.run)
            return self._loaded


@dataclass(frozen=True, slots=True)
class _Loaded:
    """The parts that take time to open; none is changed by use."""

    tokens: Tokens
    readings: dict[Side, Reading]
    session_run: Callable[[list[str], dict[str, NDArray[np.int64]]], list[NDArray[np.float32]]]

    def run(self, rows: Rows, batch: NDArray[np.int64], heads: Sequence[Head]) -> dict[Head, NDArray[np.float32]]:
        """The outputs for one batch, padded to its longest text.

        Outputs that are not asked for are computed all the same: onnxruntime 1.31 has `only_execute_path_to_fetches` but
        runs every node with it too. The projection of the bundled model takes 0.6 % of the time of its graph.
        """
        shape = (len(batch), max(len(rows.ids[at]) for at in batch))
        input_ids, mask = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for place, at in enumerate(batch):
            input_ids[place, : len(rows.ids[at])] = rows.ids[at]
            mask[place, : rows.seen[at]] = 1
        outputs = self.session_run([*heads], {"input_ids": input_ids, "attention_mask": mask})
        return dict(zip(heads, outputs, strict=True))


def place_tokens(vectors: NDArray[np.float32], padded: NDArray[np.float32], kept: Kept, batch: NDArray[np.int64]) -> None:
    """Copy the kept tokens of a batch (texts, tokens, dimensions) to their places among `vectors` (tokens, dimensions)."""
    mask = np.zeros(padded.shape[:2], bool)
    for place, at in enumerate(batch):
        row = kept.row(at)
        mask[place, : len(row)] = row
    vectors[take_ragged(kept.offsets, batch)[1]] = padded[mask]


def join_windows(parts: list[Multi], dim: int) -> Multi:
    """All windows in one, emptying `parts`: each is let go once copied, so that memory holds the vectors once."""
    if len(parts) == 1:
        return parts.pop()
    offsets = concat_offsets([np.zeros(1, np.int64), *(part.offsets for part in parts)])
    tokens = np.concatenate([np.empty(0, np.int32), *(part.tokens for part in parts)])
    vectors = np.empty((len(tokens), dim), np.float32)
    stop = len(vectors)
    while parts:
        part = parts.pop()
        vectors[stop - len(part.vectors) : stop] = part.vectors
        stop -= len(part.vectors)
    return Multi(offsets, vectors, tokens)


def choose_heads(folder: ModelFolder, wanted: Sequence[Head] | None) -> tuple[Head, ...]:
    """The heads to compute: all that the folder has, or those wanted."""
    present = folder.config.heads
    if wanted is None:
        return tuple(present)
    if isinstance(wanted, str) or not wanted:
        raise BadInput(f"heads is {wanted!r}; expected a list of some of {present}, or None for all")
    if lacking := [head for head in wanted if head not in present]:
        raise BadModel(f"{folder.path} has the heads {present}, not {lacking}; choose among them or another model")
    return tuple(head for head in present if head in wanted)


def batches_by_length(lengths: Sequence[int], batch_tokens: int) -> Iterator[NDArray[np.int64]]:
    """Positions of texts in batches, longest first; a batch with its padding holds at most `batch_tokens` tokens.

    A text that is longer than that is a batch of its own.
    """
    order = np.argsort(-np.asarray(lengths, np.int64), kind="stable")
    start = 0
    while start < len(order):
        stop = start + max(1, batch_tokens // max(1, lengths[order[start]]))
        yield order[start:stop]
        start = stop


def open_session(folder: ModelFolder, threads: int) -> Any:
    """The inference session of a folder, checked to have an output for each head."""
    import onnxruntime  # here, because it takes long to import and a bm25 search does not need it

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Graphs are stored fused. The extended level would join Add and LayerNormalization into a kernel that is slower.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    try:
        session = onnxruntime.InferenceSession(str(folder.weights), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        reason = str(error).splitlines()[0]
        raise BadModel(f"{folder.weights} cannot be opened ({reason}); restore it or make the folder again") from error
    outputs = {output.name: output.shape[-1] for output in session.get_outputs()}
    if missing := [head for head in folder.config.heads if head not in outputs]:
        raise BadModel(f"{folder.weights} has the outputs {sorted(outputs)}; expected {missing} as well")
    dims = {"dense": folder.config.dim} | ({"multi": folder.config.multi.dim} if folder.config.multi else {})
    for head in folder.config.heads:
        if isinstance(outputs[head], int) and outputs[head] != dims[head]:  # a graph need not say it
            raise BadModel(
                f"{folder.weights} gives {head} {outputs[head]} dimensions; its configuration says {dims[head]}: "
                "correct it or make the folder again"
            )
    return session


def require_texts(texts: Sequence[str]) -> None:
    """Refuse a bare string, which would be read as a batch of characters, and anything that is not text."""
    if isinstance(texts, str):
        raise BadInput(f"a single string was given ({texts[:40]!r}); expected a list of texts: put it in brackets")
    for at, text in enumerate(texts):
        if not isinstance(text, str):
            raise BadInput(f"text {at} is {type(text).__name__}; expected a string")
        require_utf8(f"text {at}", text)


def _silent(_finished: int) -> None:
    """Progress that nobody asked for."""

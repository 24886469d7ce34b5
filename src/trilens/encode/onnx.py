"""`OnnxEncoder`: runs a model folder on the CPU, in batches of similar length, one core per batch."""

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trilens.cancellation import require_wanted
from trilens.encode.bag import BagEncoder
from trilens.encode.encoder import Encoded, Progress
from trilens.encode.folder import CONFIG_FILE, QUERY_WEIGHTS, STATES, Head, ModelFolder, TermWeighting
from trilens.encode.reading import ModelInputs, Reading, ReadTokens, Side, require_texts
from trilens.encode.runtime import onnx_runtime
from trilens.encode.terms import Pruning, SparseMode, TermSpace
from trilens.encode.tokens import Tokens
from trilens.encode.window import BatchPositions, Window, join_windows
from trilens.errors import BadInput, BadModel
from trilens.kernels.array_types import Float32s, Int32s, Int64s
from trilens.kernels.padding import cut_batches

# Small, so that activations of a layer fit in the cache: batches of 8192 tokens are at least 25 % slower.
BATCH_TOKENS = 1024
# Fixed cost of a graph run, in tokens: 1.5 ms for the bundled model, which takes 0.3 ms per token.
BATCH_PRICE = 5
# Maximum number of `sparse` weights per batch: 16 megabytes.
BATCH_WEIGHTS = 1 << 22
# Maximum number of concurrent batches, about 50 megabytes each. Further cores are divided among them.
BATCHES_AT_ONCE = 8
# Texts tokenised and sorted by length at a time: enough for batches of similar length, few enough to bound memory.
WINDOW_TEXTS = 4096
MOST_THREADS = 1024  # onnxruntime starts them all, and cannot be interrupted meanwhile
UNCHANGED = Pruning()


class OnnxEncoder:
    """Encodes texts with a model folder, which is loaded at first use. Thread-safe.

    Representations do not depend on the other texts of a batch or on the selected `heads` (None: all). `sparse` implies `bag`.
    """

    prunes = True

    def __init__(
        self,
        path: Path,
        threads: int | None = None,
        heads: Sequence[Head] | None = None,
        mode: SparseMode | None = None,
    ) -> None:
        """`mode` prunes `sparse`; by default it keeps the `top` weights of the configuration and the tokens of the text."""
        self._threads = thread_count(threads)
        self.folder = ModelFolder.open(path)
        self.heads = choose_heads(self.folder.path, tuple(self.folder.config.heads), heads)
        self._mode = mode or SparseMode(self.folder.config.sparse.top if self.folder.config.sparse else 0)
        self._lock = threading.Lock()
        self._loaded: _LoadedModel | None = None

    @property
    def fingerprint(self) -> str:
        """Name and digest of the model; see `ModelFolder.fingerprint`."""
        return self.folder.fingerprint

    @cached_property
    def bags(self) -> BagEncoder:
        """An encoder of bags only, which does not load the graphs."""
        return BagEncoder(self.folder.path)

    @property
    def dim(self) -> int:
        """Dimensions of the dense vectors."""
        return self.folder.config.dim

    def encode_docs(
        self,
        texts: Sequence[str],
        progress: Progress | None = None,
        heads: Sequence[Head] | None = None,
        pruning: Pruning = UNCHANGED,
    ) -> Encoded:
        """Representations of passages, in input order, by the selected heads (None: all); `pruning` changes the mode."""
        return self._encode(texts, "doc", progress or _silent, choose_heads(self.folder.path, self.heads, heads), pruning)

    def encode_queries(
        self, texts: Sequence[str], heads: Sequence[Head] | None = None, pruning: Pruning = UNCHANGED
    ) -> Encoded:
        """Representations of queries, in input order, by the selected heads (None: all); `pruning` changes the mode."""
        return self._encode(texts, "query", _silent, choose_heads(self.folder.path, self.heads, heads), pruning)

    @property
    def max_doc_tokens(self) -> int:
        """Maximum length of a passage in tokens, special tokens included."""
        return self.folder.config.max_doc_tokens

    def doc_lengths(self, texts: Sequence[str]) -> list[int]:
        """Length of each passage in tokens, prefix and special tokens included, before truncation."""
        require_texts(texts)
        return self._load().reading("doc", False).lengths(list(texts))

    def doc_tokens(self, texts: Sequence[str]) -> tuple[Int64s, Int32s]:
        """Offsets and ids of the tokens that keep a vector in `encode_docs`, without running the model."""
        require_texts(texts)
        reading = self._load().reading("doc", True)
        kept = reading.kept(reading.read(list(texts)))
        return kept.offsets, kept.tokens

    def read_tokens(self, text: str, side: Side, kept: bool = False) -> ReadTokens:
        """The input tokens of a text; with `kept`, only those that keep a vector in `multi`."""
        require_texts([text])
        reading = self._load().reading(side, kept)
        inputs = reading.read([text])
        ids, places = np.array(inputs.ids[0], np.int64), reading.places(text)
        if not kept:
            return ReadTokens(ids, places)
        positions = np.flatnonzero(reading.kept(inputs).row(0))
        return ReadTokens(ids[positions], [places[position] for position in positions])

    def doc_states(self, text: str) -> Float32s | None:
        """The last hidden states (tokens, hidden) of a passage, whose mean `dense` is computed from.

        None if the graph does not output them or the model does not use mean pooling.
        """
        require_texts([text])
        if not self.folder.config.sparse or self.folder.config.pooling != "mean":
            return None
        loaded = self._load()
        inputs = loaded.reading("doc", False).read([text])
        return loaded.states(inputs)[: inputs.attended[0]]

    def token_texts(self, ids: Sequence[int]) -> list[str]:
        """Readable text of `Multi` tokens or `lexical` terms."""
        return self._load().tokens.texts(ids)

    @property
    def term_weighting(self) -> TermWeighting:
        """The term weighting that collections of this model use."""
        return self.folder.config.term_weighting

    @property
    def fusions(self) -> Mapping[str, str]:
        """The default fusions of searches with this model, by lenses."""
        return self.folder.config.fusion

    def token_terms(self, ids: NDArray[np.integer]) -> NDArray[np.integer]:
        """The terms of a `sparse` that tokens stand for."""
        return ids - (self.folder.config.sparse.shift if self.folder.config.sparse else 0)

    def lexical_terms(self, ids: Int64s) -> Int32s:
        """The `lexical` terms of tokens; see `TermSpace.lexical_terms`."""
        return self._load().terms.lexical_terms(ids)

    def term_texts(self, terms: Sequence[int]) -> list[str]:
        """Readable text of `sparse` or `bag` terms; see `TermSpace.texts`."""
        return self._load().terms.texts(terms)

    def _encode(
        self, texts: Sequence[str], side: Side, progress: Progress, heads: tuple[Head, ...], pruning: Pruning
    ) -> Encoded:
        require_texts(texts)
        mode = pruning.of(self._mode) if "sparse" in heads else self._mode
        dims = {head: self.folder.config.dims[head] for head in heads}
        dense = np.empty((len(texts), dims.get("dense", 0)), np.float32)
        parts: list[Encoded] = []
        for start in range(0, len(texts), WINDOW_TEXTS):
            loaded, stop = self._load(), start + WINDOW_TEXTS
            reading = loaded.reading(side, "multi" in heads)
            inputs = reading.read(list(texts[start:stop]))
            window = Window(inputs, reading, loaded.terms, dims, mode, dense[start:stop])
            max_texts = BATCH_WEIGHTS // dims.get("sparse", 1)
            batches = [*batches_by_length([len(row) for row in inputs.ids], BATCH_TOKENS, max_texts)]
            for finished in loaded.run(side, inputs, batches, heads, window.place):
                require_wanted()
                progress(finished)
            parts.append(window.encoded())
        return join_windows(parts, dims, dense)

    def _load(self) -> "_LoadedModel":
        with self._lock:
            if self._loaded is None:
                self._loaded = _LoadedModel(self.folder, self._threads)
            return self._loaded


Run = Callable[[list[str], dict[str, NDArray[Any]]], list[Float32s]]
"""Runs a graph: output names and inputs by name → outputs."""
PlaceOutputs = Callable[[BatchPositions, dict[Head, Float32s]], None]
"""Stores the outputs of the heads for a batch; called from several threads."""


class _LoadedModel:
    """The tokenizer and graphs of a model folder. Immutable, so threads can share it."""

    def __init__(self, folder: ModelFolder, threads: int) -> None:
        config, self.tokens = folder.config, Tokens(folder.tokenizer)
        self.terms = TermSpace(self.tokens, config)
        kinds: list[tuple[Side, bool]] = [("query", False), ("query", True), ("doc", False), ("doc", True)]
        self._readings = {(side, fill): Reading(self.tokens, config, side, fill) for side, fill in kinds}
        docs = _Graphs(folder)
        queries = _Graphs(folder.query) if config.query_tower else docs
        self._graphs: dict[Side, _Graphs] = {"doc": docs, "query": queries}
        self._threads, self._at_once = threads, min(threads, BATCHES_AT_ONCE)

    def reading(self, side: Side, fill: bool) -> Reading:
        """The input builder of a side; `fill` if token vectors are computed."""
        return self._readings[side, fill]

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self._at_once, "encode")

    def run(
        self, side: Side, inputs: ModelInputs, batches: Sequence[BatchPositions], heads: Sequence[Head], place: PlaceOutputs
    ) -> Iterator[int]:
        """Run each batch, padded to its longest text, and pass the outputs to `place`; yields the size of each batch.

        A single batch uses all threads. Several batches run concurrently instead, because threads inside one run wait for
        each other at every graph node.
        """
        threads = self._threads if len(batches) == 1 else self._threads // self._at_once

        def work(batch: BatchPositions) -> int:
            place(batch, self._graphs[side].run(_padded(inputs, batch), heads, side, threads))
            return len(batch)

        return map(work, batches) if threads == self._threads else run_ahead(self._pool, work, batches)

    def states(self, inputs: ModelInputs) -> Float32s:
        """The last hidden states (tokens, hidden) of a single document."""
        return self._graphs["doc"].states(_padded(inputs, np.zeros(1, np.int64)), self._threads)


class _Graphs:
    """The graphs of one tower, each opened when first run."""

    def __init__(self, folder: ModelFolder) -> None:
        self._config = folder.config
        self._weights, self._sparse = folder.weights, folder.sparse
        self._weighted = folder.config.multi is not None and folder.config.multi.weighted
        self._lock = threading.Lock()
        self._opened: dict[tuple[Path, int], Run] = {}

    def run(self, inputs: dict[str, Int64s], heads: Sequence[Head], side: Side, threads: int) -> dict[Head, Float32s]:
        """The outputs of the heads for a batch; query token vectors are multiplied by their weights if the model has any.

        onnxruntime computes all outputs, including those not requested: `only_execute_path_to_fetches` has no effect in 1.31.
        The heads of the bundled model take less than 1 % of the time.
        """
        names = [STATES if head == "sparse" else head for head in heads]
        weighted = self._weighted and side == "query" and "multi" in heads
        outputs = self._open(self._weights, threads)([*names, *[QUERY_WEIGHTS] * weighted], {**inputs})
        by_head = dict(zip(heads, outputs[: len(names)], strict=True))
        if weighted:
            by_head["multi"] = by_head["multi"] * outputs[-1][:, :, None]
        if "sparse" in by_head:
            sparse_inputs: dict[str, NDArray[Any]] = {STATES: by_head["sparse"], "attention_mask": inputs["attention_mask"]}
            (by_head["sparse"],) = self._open(self._sparse, threads)(["sparse"], sparse_inputs)
        return by_head

    def states(self, inputs: dict[str, Int64s], threads: int) -> Float32s:
        """The last hidden states (tokens, hidden) of a batch of one text."""
        (batch_states,) = self._open(self._weights, threads)([STATES], {**inputs})
        states: Float32s = batch_states[0]
        return states

    def _open(self, file: Path, threads: int) -> Run:
        with self._lock:
            if (file, threads) not in self._opened:
                dims, is_sparse = self._config.dims, file == self._sparse
                outputs: dict[str, int | None] = {head: dim for head, dim in dims.items() if (head == "sparse") == is_sparse}
                if "sparse" in dims and not is_sparse:
                    outputs[STATES] = None
                if self._weighted and not is_sparse:
                    outputs[QUERY_WEIGHTS] = None
                self._opened[file, threads] = open_session(file, outputs, threads)
            return self._opened[file, threads]


def _padded(inputs: ModelInputs, batch: BatchPositions) -> dict[str, Int64s]:
    """The graph inputs of a batch, padded to the longest text."""
    longest = max(len(inputs.ids[text]) for text in batch)
    shape = (len(batch), max(1, longest))  # at least one position: max pooling over zero positions is undefined
    input_ids, mask = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for row, text in enumerate(batch):
        input_ids[row, : len(inputs.ids[text])] = inputs.ids[text]
        mask[row, : inputs.attended[text]] = 1
    return {"input_ids": input_ids, "attention_mask": mask}


def choose_heads(model: Path, present: tuple[Head, ...], wanted: Sequence[Head] | None) -> tuple[Head, ...]:
    """The heads to compute: the wanted ones, or all if None."""
    if wanted is None:
        return present
    if isinstance(wanted, str) or not wanted:
        raise BadInput(f"heads is {wanted!r}; expected a list of some of {[*present]}, or None for all")
    if missing := [head for head in wanted if head not in present]:
        raise BadModel(f"{model} has the heads {[*present]}, not {missing}; choose among them or another model")
    return tuple(head for head in present if head in wanted)


def run_ahead(
    pool: ThreadPoolExecutor, work: Callable[[BatchPositions], int], batches: Sequence[BatchPositions]
) -> Iterator[int]:
    """Run `work` on all batches and yield the results in order; pending batches are cancelled on failure or early exit."""
    futures = [pool.submit(work, batch) for batch in batches]
    try:
        for future in futures:
            yield future.result()
    finally:
        for future in futures:  # running batches are not affected
            future.cancel()


def batches_by_length(lengths: Sequence[int], batch_tokens: int, max_texts: int) -> Iterator[BatchPositions]:
    """Split texts into batches of similar length, longest first, and yield their positions.

    A batch holds at most `batch_tokens` tokens, padding included, unless it is a single text, and at most `max_texts` texts.
    Batches are smaller where that saves more padding than a run costs.
    """
    sizes = np.asarray(lengths, np.int64)
    order = np.argsort(-sizes, kind="stable")
    start = 0
    for stop in cut_batches(sizes[order], batch_tokens, max_texts, BATCH_PRICE).tolist():
        yield order[start:stop]
        start = stop


def thread_count(threads: int | None) -> int:
    """A number of threads that is sensible to start; None takes all available cores."""
    if threads is not None and not 1 <= threads <= MOST_THREADS:
        raise BadInput(f"threads is {threads}; expected 1 to {MOST_THREADS:,}, or None for all available cores")
    return threads or len(os.sched_getaffinity(0))


def open_session(file: Path, outputs: Mapping[str, int | None], threads: int) -> Run:
    """Open a graph and check its outputs, and their dimensions unless None."""
    onnxruntime = onnx_runtime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Spinning threads would take cores from other sessions.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    # Graphs are stored fused. The extended level would fuse Add and LayerNormalization into a slower kernel.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    try:
        session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        reason = str(error).splitlines()[0]
        raise BadModel(f"{file} cannot be opened ({reason}); restore it or export the model again") from error
    present = {output.name: output.shape[-1] for output in session.get_outputs()}
    if missing := [name for name in outputs if name not in present]:
        raise BadModel(f"{file} has the outputs {sorted(present)}; expected {missing} as well")
    for name, dim in outputs.items():
        if isinstance(present[name], int) and dim not in (None, present[name]):  # None if the graph leaves it open
            raise BadModel(
                f"{file} gives {name} {present[name]} dimensions; expected {dim} as in {CONFIG_FILE}: "
                "correct it or export the model again"
            )
    run: Run = session.run
    return run


def _silent(_finished: int) -> None:
    """Ignore progress."""

"""`OnnxEncoder`: runs a model folder on the CPU, in batches of texts of like length, each batch on a core of its own."""

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trilens.encode.bag import BagEncoder
from trilens.encode.encoder import Encoded, Progress
from trilens.encode.folder import QUERY_WEIGHTS, STATES, Head, ModelFolder
from trilens.encode.reading import Reading, ReadTokens, Rows, Side, require_texts
from trilens.encode.terms import SparseMode, Terms
from trilens.encode.tokens import Tokens
from trilens.encode.window import Batch, Window, join_windows
from trilens.errors import BadInput, BadModel
from trilens.kernels.padding import cut_batches

# Small, so that the activations of a layer stay in the cache: batches of 8192 tokens take a quarter longer or more.
BATCH_TOKENS = 1024
# What a run of the graph costs beside its tokens, in tokens: 1.5 ms for the bundled model, where a token takes 0.3.
BATCH_PRICE = 5
# Weights over the vocabulary that a batch may give: 16 megabytes.
BATCH_WEIGHTS = 1 << 22
# Batches that run side by side: each takes some fifty megabytes. With more cores than that a batch has several.
BATCHES_AT_ONCE = 8
# Texts tokenised and sorted by length at a time: enough for batches of like length, few enough to bound the memory.
WINDOW_TEXTS = 4096


class OnnxEncoder:
    """One model folder, opened. Loading waits for the first text; every method may be called from any thread.

    A text gets the same vectors whatever it is encoded together with, and whichever `heads` are asked for (None: all). With
    `sparse` comes `bag`.
    """

    def __init__(
        self,
        path: Path,
        threads: int | None = None,
        heads: Sequence[Head] | None = None,
        mode: SparseMode | None = None,
    ) -> None:
        """`mode` says which weights of `sparse` are kept; None: the folder's `top` and the text's own tokens."""
        if threads is not None and threads < 1:
            raise BadInput(f"threads is {threads}; expected at least 1, or None for all cores available")
        self.folder = ModelFolder.open(path)
        self.heads = choose_heads(self.folder.path, tuple(self.folder.config.heads), heads)
        self._mode = mode or SparseMode(self.folder.config.sparse.top if self.folder.config.sparse else 0)
        self._threads = threads
        self._lock = threading.Lock()
        self._loaded: _Loaded | None = None

    @property
    def fingerprint(self) -> str:
        """Name and digest of the model; see `ModelFolder.fingerprint`."""
        return self.folder.fingerprint

    @cached_property
    def bags(self) -> BagEncoder:
        """The tokenizer alone, for bags of tokens."""
        return BagEncoder(self.folder.path)

    @property
    def dim(self) -> int:
        """Dimensions of the dense vectors."""
        return self.folder.config.dim

    def encode_docs(
        self, texts: Sequence[str], progress: Progress | None = None, heads: Sequence[Head] | None = None
    ) -> Encoded:
        """Representations of passages, in the order given, by some of the encoder's heads (None: all)."""
        return self._encode(texts, "doc", progress or _silent, choose_heads(self.folder.path, self.heads, heads))

    def encode_queries(self, texts: Sequence[str], heads: Sequence[Head] | None = None) -> Encoded:
        """Representations of queries, in the order given, by some of the encoder's heads (None: all)."""
        return self._encode(texts, "query", _silent, choose_heads(self.folder.path, self.heads, heads))

    def doc_tokens(self, texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Offsets and vocabulary ids of the tokens that `encode_docs` gives a vector, without running the model."""
        require_texts(texts)
        reading = self._load().reading("doc", True)
        kept = reading.kept(reading.read(list(texts)))
        return kept.offsets, kept.tokens

    def read_tokens(self, text: str, side: Side, kept: bool = False) -> ReadTokens:
        """The tokens that the model reads of a text; with `kept`, those that get a vector of their own in `multi`."""
        require_texts([text])
        reading = self._load().reading(side, kept)
        rows = reading.read([text])
        ids, places = np.array(rows.ids[0], np.int64), reading.places(text)
        if not kept:
            return ReadTokens(ids, places)
        chosen = np.flatnonzero(reading.kept(rows).row(0))
        return ReadTokens(ids[chosen], [places[at] for at in chosen])

    def doc_states(self, text: str) -> NDArray[np.float32] | None:
        """The states (tokens, hidden) of the tokens of a passage, if the model tells them; their mean is what `dense` is of.

        None for a model that pools in another way.
        """
        require_texts([text])
        if not self.folder.config.sparse or self.folder.config.pooling != "mean":
            return None
        loaded = self._load()
        rows = loaded.reading("doc", False).read([text])
        return loaded.states(rows)[: rows.seen[0]]

    def token_texts(self, ids: Sequence[int]) -> list[str]:
        """The tokens of a `Multi`, or the terms of a `lexical`, in words, for people to read."""
        return self._load().tokens.texts(ids)

    def lexical_terms(self, ids: NDArray[np.int64]) -> NDArray[np.int32]:
        """The terms of a `lexical` that tokens are; see `Terms.lexical_terms`."""
        return self._load().terms.lexical_terms(ids)

    def term_texts(self, terms: Sequence[int]) -> list[str]:
        """The terms of a `sparse` or `bag` in words; see `Terms.texts`."""
        return self._load().terms.texts(terms)

    def _encode(self, texts: Sequence[str], side: Side, progress: Progress, heads: tuple[Head, ...]) -> Encoded:
        require_texts(texts)
        dims = {head: self.folder.config.dims[head] for head in heads}
        dense = np.empty((len(texts), dims.get("dense", 0)), np.float32)
        parts: list[Encoded] = []
        for start in range(0, len(texts), WINDOW_TEXTS):
            loaded, stop = self._load(), start + WINDOW_TEXTS
            reading = loaded.reading(side, "multi" in heads)
            rows = reading.read(list(texts[start:stop]))
            window = Window(rows, reading, loaded.terms, dims, self._mode, dense[start:stop])
            most = BATCH_WEIGHTS // dims.get("sparse", 1)
            batches = [*batches_by_length([len(row) for row in rows.ids], BATCH_TOKENS, most)]
            for finished in loaded.run(side, rows, batches, heads, window.place):
                progress(finished)
            parts.append(window.encoded())
        return join_windows(parts, dims, dense)

    def _load(self) -> "_Loaded":
        with self._lock:
            if self._loaded is None:
                self._loaded = _Loaded(self.folder, self._threads or len(os.sched_getaffinity(0)))
            return self._loaded


Run = Callable[[list[str], dict[str, NDArray[Any]]], list[NDArray[np.float32]]]
"""Runs a graph: names of outputs and inputs by name → outputs."""
Keep = Callable[[Batch, dict[Head, NDArray[np.float32]]], None]
"""Keeps what the heads gave for a batch; called from several threads."""


class _Loaded:
    """The parts that take time to open; none is changed by use."""

    def __init__(self, folder: ModelFolder, threads: int) -> None:
        config, self.tokens = folder.config, Tokens(folder.tokenizer)
        self.terms = Terms(self.tokens, config)
        kinds: list[tuple[Side, bool]] = [("query", False), ("query", True), ("doc", False), ("doc", True)]
        self._readings = {(side, fill): Reading(self.tokens, config, side, fill) for side, fill in kinds}
        docs = _Graphs(folder)
        queries = _Graphs(folder.query) if config.query_tower else docs
        self._graphs: dict[Side, _Graphs] = {"doc": docs, "query": queries}
        self._threads, self._at_once = threads, min(threads, BATCHES_AT_ONCE)

    def reading(self, side: Side, fill: bool) -> Reading:
        """How texts of that side are put to the model; `fill` where vectors of tokens are wanted."""
        return self._readings[side, fill]

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self._at_once, "encode")

    def run(self, side: Side, rows: Rows, batches: Sequence[Batch], heads: Sequence[Head], keep: Keep) -> Iterator[int]:
        """Give the outputs for each batch, padded to its longest text, to `keep`; yields how many texts that were.

        A single batch has all threads for itself. Several share them, which keeps the cores busier than threads that wait
        for each other at every step of the graph.
        """
        threads = self._threads if len(batches) == 1 else self._threads // self._at_once

        def work(batch: Batch) -> int:
            keep(batch, self._graphs[side].run(_inputs(rows, batch), heads, side, threads))
            return len(batch)

        return map(work, batches) if threads == self._threads else run_ahead(self._pool, work, batches)

    def states(self, rows: Rows) -> NDArray[np.float32]:
        """The states (tokens, hidden) of a single document."""
        return self._graphs["doc"].states(_inputs(rows, np.zeros(1, np.int64)), self._threads)


class _Graphs:
    """The graphs of one folder, each opened when it is first run."""

    def __init__(self, folder: ModelFolder) -> None:
        self._config = folder.config
        self._weights, self._sparse = folder.weights, folder.sparse
        self._weighted = folder.config.multi is not None and folder.config.multi.weighted
        self._lock = threading.Lock()
        self._opened: dict[tuple[Path, int], Run] = {}

    def run(
        self, inputs: dict[str, NDArray[np.int64]], heads: Sequence[Head], side: Side, threads: int
    ) -> dict[Head, NDArray[np.float32]]:
        """The outputs of the heads for a batch; token vectors of queries by their weights, where the model gives any.

        Outputs that are not asked for are computed all the same: onnxruntime 1.31 has `only_execute_path_to_fetches` but
        runs every node with it too. The heads in the graph of the bundled model take less than 1 % of its time.
        """
        names = [STATES if head == "sparse" else head for head in heads]
        weighted = self._weighted and side == "query" and "multi" in heads
        outputs = self._open(self._weights, threads)([*names, *[QUERY_WEIGHTS] * weighted], {**inputs})
        found = dict(zip(heads, outputs[: len(names)], strict=True))
        if weighted:
            found["multi"] = found["multi"] * outputs[-1][:, :, None]
        if "sparse" in found:
            mask = inputs["attention_mask"]
            given: dict[str, NDArray[Any]] = {STATES: found["sparse"], "attention_mask": mask}
            (found["sparse"],) = self._open(self._sparse, threads)(["sparse"], given)
        return found

    def states(self, inputs: dict[str, NDArray[np.int64]], threads: int) -> NDArray[np.float32]:
        """The states (tokens, hidden) of the only text of a batch."""
        (found,) = self._open(self._weights, threads)([STATES], {**inputs})
        states: NDArray[np.float32] = found[0]
        return states

    def _open(self, file: Path, threads: int) -> Run:
        with self._lock:
            if (file, threads) not in self._opened:
                dims, ends = self._config.dims, file == self._sparse
                outputs: dict[str, int | None] = {head: dim for head, dim in dims.items() if (head == "sparse") == ends}
                if "sparse" in dims and not ends:
                    outputs[STATES] = None
                if self._weighted and not ends:
                    outputs[QUERY_WEIGHTS] = None
                self._opened[file, threads] = open_session(file, outputs, threads)
            return self._opened[file, threads]


def _inputs(rows: Rows, batch: Batch) -> dict[str, NDArray[np.int64]]:
    """The texts of a batch as the graph takes them, padded to the longest."""
    longest = max(len(rows.ids[at]) for at in batch)
    shape = (len(batch), max(1, longest))  # one padding where all are empty: there is no maximum over no positions
    input_ids, mask = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for place, at in enumerate(batch):
        input_ids[place, : len(rows.ids[at])] = rows.ids[at]
        mask[place, : rows.seen[at]] = 1
    return {"input_ids": input_ids, "attention_mask": mask}


def choose_heads(model: Path, present: tuple[Head, ...], wanted: Sequence[Head] | None) -> tuple[Head, ...]:
    """The heads to compute: all that are present, or those wanted."""
    if wanted is None:
        return present
    if isinstance(wanted, str) or not wanted:
        raise BadInput(f"heads is {wanted!r}; expected a list of some of {[*present]}, or None for all")
    if lacking := [head for head in wanted if head not in present]:
        raise BadModel(f"{model} has the heads {[*present]}, not {lacking}; choose among them or another model")
    return tuple(head for head in present if head in wanted)


def run_ahead(pool: ThreadPoolExecutor, work: Callable[[Batch], int], batches: Sequence[Batch]) -> Iterator[int]:
    """What `work` gives for each batch, in order; where one fails, or nobody asks on, those that wait are not begun."""
    given = [pool.submit(work, batch) for batch in batches]
    try:
        for future in given:
            yield future.result()
    finally:
        for future in given:  # does nothing to those that have begun
            future.cancel()


def batches_by_length(lengths: Sequence[int], batch_tokens: int, most: int) -> Iterator[Batch]:
    """Positions of texts in batches, longest first; a batch with its padding holds at most `batch_tokens` tokens.

    A text that is longer than that is a batch of its own. No batch has more than `most` texts. There are more batches where
    the padding that this saves is worth it.
    """
    known = np.asarray(lengths, np.int64)
    order = np.argsort(-known, kind="stable")
    start = 0
    for stop in cut_batches(known[order], batch_tokens, most, BATCH_PRICE).tolist():
        yield order[start:stop]
        start = stop


def open_session(file: Path, outputs: Mapping[str, int | None], threads: int) -> Run:
    """The inference session of a graph, checked to have these outputs, of so many dimensions where that is said."""
    import onnxruntime  # here, because it takes long to import and a bm25 search does not need it

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Threads that wait busily for the next run would keep the cores from other sessions.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    # Graphs are stored fused. The extended level would join Add and LayerNormalization into a kernel that is slower.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    try:
        session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        reason = str(error).splitlines()[0]
        raise BadModel(f"{file} cannot be opened ({reason}); restore it or make the folder again") from error
    present = {output.name: output.shape[-1] for output in session.get_outputs()}
    if missing := [name for name in outputs if name not in present]:
        raise BadModel(f"{file} has the outputs {sorted(present)}; expected {missing} as well")
    for name, dim in outputs.items():
        if isinstance(present[name], int) and dim not in (None, present[name]):  # a graph need not say it
            raise BadModel(
                f"{file} gives {name} {present[name]} dimensions; its configuration says {dim}: "
                "correct it or make the folder again"
            )
    run: Run = session.run
    return run


def _silent(_finished: int) -> None:
    """Progress that nobody asked for."""

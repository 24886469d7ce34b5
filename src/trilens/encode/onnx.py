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
from trilens.encode.folder import ModelFolder
from trilens.errors import BadInput, BadModel
from trilens.represent import Dense
from trilens.text.document import require_utf8

# Small, so that the activations of a layer stay in the cache: batches of 8192 tokens take a quarter longer or more.
BATCH_TOKENS = 1024
# Texts tokenised and sorted by length at a time: enough for batches of like length, few enough to bound the memory.
WINDOW_TEXTS = 4096
# Words are tokenised independently, so the start of a long text has the same tokens alone as within the whole. This
# many characters per wanted token nearly always hold enough; a text of rarer kind is tokenised whole.
CHARS_PER_TOKEN = 24


class OnnxEncoder:
    """One model folder, opened. Loading waits for the first text; every method may be called from any thread.

    A text gets the same vector whatever it is encoded together with.
    """

    def __init__(self, path: Path, threads: int | None = None) -> None:
        if threads is not None and threads < 1:
            raise BadInput(f"threads is {threads}; expected at least 1, or None for all cores available")
        self.folder = ModelFolder.open(path)
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
        config = self.folder.config
        return self._encode(texts, config.doc_prefix, config.max_doc_tokens, progress or _silent)

    def encode_queries(self, texts: Sequence[str]) -> Encoded:
        """Representations of queries, in the order given."""
        config = self.folder.config
        return self._encode(texts, config.query_prefix, config.max_query_tokens, _silent)

    def _encode(self, texts: Sequence[str], prefix: str, max_tokens: int, progress: Progress) -> Encoded:
        require_texts(texts)
        vectors = np.empty((len(texts), self.dim), np.float32)
        truncated = 0
        for start in range(0, len(texts), WINDOW_TEXTS):
            loaded = self._load()
            window = [prefix + text for text in texts[start : start + WINDOW_TEXTS]]
            ids, cut = loaded.tokens.encode(window, max_tokens)
            truncated += cut
            for batch in batches_by_length([len(row) for row in ids], BATCH_TOKENS):
                vectors[start + batch] = loaded.run([ids[at] for at in batch])
                progress(len(batch))
        return Encoded(dense=Dense(vectors), truncated=truncated)

    def _load(self) -> "_Loaded":
        with self._lock:
            if self._loaded is None:
                session = open_session(self.folder, self._threads or len(os.sched_getaffinity(0)))
                self._loaded = _Loaded(Tokens(self.folder.tokenizer), session.run)
            return self._loaded


class Tokens:
    """A tokenizer without padding or truncation.

    Setting a length on a shared tokenizer fails while another thread uses it; so texts are cut here, after tokenising,
    and one tokenizer serves queries and documents of different lengths.
    """

    def __init__(self, file: Path) -> None:
        from tokenizers import Tokenizer  # here, because a bm25 search does not need it

        try:
            self._tokenizer = Tokenizer.from_file(str(file))
        except Exception as error:
            raise BadModel(f"{file} cannot be read ({error}); restore it or make the folder again") from error
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        sample = self._tokenizer.encode("a")
        closing = len(sample.ids)
        while closing and sample.special_tokens_mask[closing - 1]:
            closing -= 1
        self._closing: list[int] = sample.ids[closing:]

    def encode(self, texts: list[str], max_tokens: int) -> tuple[list[list[int]], int]:
        """Ids of each text, special tokens included, and how many texts had to be cut to `max_tokens`."""
        ids = self._all([head(text, max_tokens * CHARS_PER_TOKEN) for text in texts])
        short = [at for at, text in enumerate(texts) if len(text) > max_tokens * CHARS_PER_TOKEN]
        short = [at for at in short if len(ids[at]) <= max_tokens]
        for at, whole in zip(short, self._all([texts[at] for at in short]), strict=True):
            ids[at] = whole
        long = [at for at, row in enumerate(ids) if len(row) > max_tokens]
        for at in long:
            ids[at] = ids[at][: max_tokens - len(self._closing)] + self._closing
        return ids, len(long)

    def _all(self, texts: list[str]) -> list[list[int]]:
        return [encoding.ids for encoding in self._tokenizer.encode_batch_fast(texts)]


@dataclass(frozen=True, slots=True)
class _Loaded:
    """The two parts that take time to open; neither is changed by use."""

    tokens: Tokens
    session_run: Callable[[list[str], dict[str, NDArray[np.int64]]], list[NDArray[np.float32]]]

    def run(self, ids: list[list[int]]) -> NDArray[np.float32]:
        """The dense vectors of one batch, padded to its longest text."""
        shape = (len(ids), max(len(row) for row in ids))
        input_ids, mask = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for at, row in enumerate(ids):
            input_ids[at, : len(row)] = row
            mask[at, : len(row)] = 1
        return self.session_run(["dense"], {"input_ids": input_ids, "attention_mask": mask})[0]


def head(text: str, max_chars: int) -> str:
    """The start of a text, ending before a space; the whole text when it is short or has no space to end at."""
    if len(text) <= max_chars:
        return text
    parts = text[:max_chars].rsplit(None, 1)
    return parts[0] if len(parts) == 2 else text


def batches_by_length(lengths: Sequence[int], batch_tokens: int) -> Iterator[NDArray[np.int64]]:
    """Positions of texts in batches, longest first; a batch with its padding holds at most `batch_tokens` tokens.

    A text that is longer than that is a batch of its own.
    """
    order = np.argsort(-np.asarray(lengths, np.int64), kind="stable")
    start = 0
    while start < len(order):
        stop = start + max(1, batch_tokens // lengths[order[start]])
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
    outputs = {output.name for output in session.get_outputs()}
    if missing := [head for head in folder.config.heads if head not in outputs]:
        raise BadModel(f"{folder.weights} has the outputs {sorted(outputs)}; expected {missing} as well")
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

"""`TorchEncoder`: a model in training as an `Encoder`, for evaluation, mining and indexing."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from trilens.encode.encoder import Encoded, Progress
from trilens.encode.folder import Head
from trilens.encode.onnx import BATCH_WEIGHTS, WINDOW_TEXTS, batches_by_length, choose_heads
from trilens.encode.reading import ModelInputs, Side, require_texts
from trilens.encode.terms import SparseMode, TermSpace
from trilens.encode.window import Window, join_windows
from trilens.kernels.array_types import Float32s, Int32s, Int64s
from trilens.represent import Sparse
from trilens.train.model import Stack, description_of, stacks_of

BATCH_TOKENS = {"cpu": 2048}
BATCH_TOKENS_ELSEWHERE = 1 << 16
TASKS: dict[Side, str] = {"query": "query", "doc": "document"}


class TorchEncoder:
    """Encodes with the current weights, without dropout and gradients, and restores the training mode of all modules.

    `mode` selects the stored weights of `sparse`; None: the description's `top` and the text's own tokens.
    """

    def __init__(
        self,
        model: SentenceTransformer,
        device: str | None = None,
        heads: Sequence[Head] | None = None,
        mode: SparseMode | None = None,
        known: "Known | None" = None,
    ) -> None:
        """`device`: moves the model there; None keeps it. `known`: provides precomputed features of texts."""
        self.model = model if device is None else model.to(device)
        self.description = description_of(model)
        self.heads = choose_heads(Path(self.description.name), tuple(self.description.heads), heads)
        self._known = known
        self._mode = mode or SparseMode(self.description.sparse.top if self.description.sparse else 0)
        self._stacks: dict[Side, Stack] = {side: stacks_of(model)[task] for side, task in TASKS.items()}
        self._terms = {side: TermSpace(stack.backbone.tokens, self.description) for side, stack in self._stacks.items()}

    @property
    def fingerprint(self) -> str:
        """Model name and a digest of description and weights; it changes with every training step."""
        digest = hashlib.blake2b(self.description.model_dump_json(by_alias=True).encode(), digest_size=8)
        for name, tensor in self.model.state_dict().items():
            content = tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy()
            digest.update(f"{name} {tuple(tensor.shape)}".encode())
            digest.update(content.data)
        return f"{self.description.name}-torch-{digest.hexdigest()}"

    @property
    def dim(self) -> int:
        """Dimensions of the dense vectors."""
        return self.description.dim

    def encode_docs(
        self, texts: Sequence[str], progress: Progress | None = None, heads: Sequence[Head] | None = None
    ) -> Encoded:
        """Representations of passages, in order, by the given heads (None: all of the encoder)."""
        return self._encode(texts, "doc", progress or _silent, heads)

    def encode_queries(self, texts: Sequence[str], heads: Sequence[Head] | None = None) -> Encoded:
        """Representations of queries, in order, by the given heads (None: all of the encoder)."""
        return self._encode(texts, "query", _silent, heads)

    def doc_tokens(self, texts: Sequence[str]) -> tuple[Int64s, Int32s]:
        """Offsets and vocabulary ids of the tokens that get a vector in `encode_docs`, without running the model."""
        require_texts(texts)
        reading = self._stacks["doc"].backbone.reading("doc", True)
        kept = reading.kept(reading.read(list(texts)))
        return kept.offsets, kept.tokens

    def doc_bags(self, texts: Sequence[str]) -> Sparse:
        """The `bag` of `encode_docs`, without running the model."""
        require_texts(texts)
        reading = self._stacks["doc"].backbone.reading("doc", False)
        starts = range(0, max(1, len(texts)), WINDOW_TEXTS)
        rows = (reading.read(list(texts[start : start + WINDOW_TEXTS])) for start in starts)
        return Sparse.concat([self._terms["doc"].bag(reading.own(window)) for window in rows])

    def token_texts(self, ids: Sequence[int]) -> list[str]:
        """Strings of the tokens of a `Multi` or the terms of a `lexical`."""
        return self._stacks["doc"].backbone.tokens.texts(ids)

    def term_texts(self, terms: Sequence[int]) -> list[str]:
        """Strings of the terms of a `sparse` or `bag`."""
        return self._terms["doc"].texts(terms)

    def _encode(self, texts: Sequence[str], side: Side, progress: Progress, wanted: Sequence[Head] | None) -> Encoded:
        require_texts(texts)
        heads = choose_heads(Path(self.description.name), self.heads, wanted)
        dims = {head: self.description.dims[head] for head in heads}
        dense = np.empty((len(texts), dims.get("dense", 0)), np.float32)
        stack, parts = self._stacks[side], list[Encoded]()
        reading = stack.backbone.reading(side, "multi" in heads)
        size = BATCH_TOKENS.get(self.model.device.type, BATCH_TOKENS_ELSEWHERE)
        with at_rest(self.model):
            for start in range(0, len(texts), WINDOW_TEXTS):
                stop = start + WINDOW_TEXTS
                rows = reading.read(list(texts[start:stop]))
                window = Window(rows, reading, self._terms[side], dims, self._mode, dense[start:stop])
                for batch in batches_by_length([len(row) for row in rows.ids], size, BATCH_WEIGHTS // dims.get("sparse", 1)):
                    known = self._known(TASKS[side], [texts[start + int(row)] for row in batch]) if self._known else {}
                    window.place(batch, run(stack, rows, batch, heads, side, known))
                    progress(len(batch))
                parts.append(window.encoded())
        return join_windows(parts, dims, dense)


Known = Callable[[str, Sequence[str]], dict[str, Any]]
"""Returns precomputed features of texts of a task, padded to the longest."""


def run(
    stack: Stack,
    rows: ModelInputs,
    batch: Int64s,
    heads: Sequence[Head],
    side: Side,
    known: Mapping[str, Any] = MappingProxyType({}),
) -> dict[Head, Float32s]:
    """The head outputs for a batch, padded to its longest text; `known` features are not computed again."""
    device = next(stack.backbone.parameters()).device
    padded = {name: tensor.to(device) for name, tensor in stack.backbone.padded(rows, batch).items()}
    kept = torch.ones_like(padded["input_ids"], dtype=torch.bool)  # the window selects tokens
    features = {**padded, "kept": kept, "task": TASKS[side], **known}
    outputs = stack.heads.outputs(stack.backbone(features), heads)
    return {head: output.float().cpu().numpy() for head, output in outputs.items()}


@contextmanager
def at_rest(model: SentenceTransformer) -> Iterator[None]:
    """Switch to evaluation mode without gradients; restores the mode of each module afterwards."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, training in modes:
            module.training = training


def _silent(_finished: int) -> None:
    """Ignore progress."""

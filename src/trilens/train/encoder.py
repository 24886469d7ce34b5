"""`TorchEncoder`: a model in training as an encoder, for everything that takes one: evaluation, mining, indexing."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from trilens.encode.encoder import Encoded, Progress
from trilens.encode.folder import Head
from trilens.encode.onnx import BATCH_WEIGHTS, WINDOW_TEXTS, batches_by_length, choose_heads
from trilens.encode.reading import Rows, Side, require_texts
from trilens.encode.terms import SparseMode, Terms
from trilens.encode.window import Window, join_windows
from trilens.represent import Sparse
from trilens.train.model import Stack, description_of, stacks_of

BATCH_TOKENS = {"cpu": 2048}
BATCH_TOKENS_ELSEWHERE = 1 << 16
TASKS: dict[Side, str] = {"query": "query", "doc": "document"}


class TorchEncoder:
    """A model as it is at the moment of each call: without dropout and gradients, and left as it was found.

    `mode` says which weights of `sparse` are kept; None: the description's `top` and the text's own tokens.
    """

    def __init__(
        self,
        model: SentenceTransformer,
        device: str | None = None,
        heads: Sequence[Head] | None = None,
        mode: SparseMode | None = None,
        known: "Known | None" = None,
    ) -> None:
        """`device` moves the model there; None: where it is. `known` gives what is known of texts beside their tokens."""
        self.model = model if device is None else model.to(device)
        self.description = description_of(model)
        self.heads = choose_heads(Path(self.description.name), tuple(self.description.heads), heads)
        self._known = known
        self._mode = mode or SparseMode(self.description.sparse.top if self.description.sparse else 0)
        self._stacks: dict[Side, Stack] = {side: stacks_of(model)[task] for side, task in TASKS.items()}
        self._terms = {side: Terms(stack.backbone.tokens, self.description) for side, stack in self._stacks.items()}

    @property
    def fingerprint(self) -> str:
        """The name and a digest of description and weights; another one after every step of training."""
        digest = hashlib.blake2b(self.description.model_dump_json().encode(), digest_size=8)
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
        """Representations of passages, in the order given, by some of the encoder's heads (None: all)."""
        return self._encode(texts, "doc", progress or _silent, heads)

    def encode_queries(self, texts: Sequence[str], heads: Sequence[Head] | None = None) -> Encoded:
        """Representations of queries, in the order given, by some of the encoder's heads (None: all)."""
        return self._encode(texts, "query", _silent, heads)

    def doc_tokens(self, texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Offsets and vocabulary ids of the tokens that `encode_docs` gives a vector, without running the model."""
        require_texts(texts)
        reading = self._stacks["doc"].backbone.reading("doc", True)
        kept = reading.kept(reading.read(list(texts)))
        return kept.offsets, kept.tokens

    def doc_bags(self, texts: Sequence[str]) -> Sparse:
        """The tokens of passages as `encode_docs` gives them in `bag`, without running the model."""
        require_texts(texts)
        reading = self._stacks["doc"].backbone.reading("doc", False)
        starts = range(0, max(1, len(texts)), WINDOW_TEXTS)
        rows = (reading.read(list(texts[start : start + WINDOW_TEXTS])) for start in starts)
        return Sparse.concat([self._terms["doc"].bag(reading.own(some)) for some in rows])

    def token_texts(self, ids: Sequence[int]) -> list[str]:
        """The tokens of a `Multi`, or the terms of a `lexical`, in words."""
        return self._stacks["doc"].backbone.tokens.texts(ids)

    def term_texts(self, terms: Sequence[int]) -> list[str]:
        """The terms of a `sparse` or `bag` in words."""
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
                    beside = self._known(TASKS[side], [texts[start + int(at)] for at in batch]) if self._known else {}
                    window.place(batch, run(stack, rows, batch, heads, side, beside))
                    progress(len(batch))
                parts.append(window.encoded())
        return join_windows(parts, dims, dense)


Known = Callable[[str, Sequence[str]], dict[str, Any]]
"""Features of texts of a task that need not be computed, padded to the longest of them."""


def run(
    stack: Stack,
    rows: Rows,
    batch: NDArray[np.int64],
    heads: Sequence[Head],
    side: Side,
    known: Mapping[str, Any] = MappingProxyType({}),
) -> dict[Head, NDArray[np.float32]]:
    """What the heads give for one batch, padded to its longest text; `known` features are not computed again."""
    device = next(stack.backbone.parameters()).device
    padded = {name: tensor.to(device) for name, tensor in stack.backbone.padded(rows, batch).items()}
    kept = torch.ones_like(padded["input_ids"], dtype=torch.bool)  # which are kept is the window's business
    features = {**padded, "kept": kept, "task": TASKS[side], **known}
    found = stack.heads.outputs(stack.backbone(features), heads)
    return {head: output.float().cpu().numpy() for head, output in found.items()}


@contextmanager
def at_rest(model: SentenceTransformer) -> Iterator[None]:
    """No dropout and no gradients; afterwards each module is in the mode that it was in."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, training in modes:
            module.training = training


def _silent(_finished: int) -> None:
    """Progress that nobody asked for."""

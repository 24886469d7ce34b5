"""`StateCache`: token states after frozen layers, computed once and read from disk in every epoch.

Dropout is off in the frozen layers, since all epochs share the states. They are stored as float16 for the duration of the run,
so a resumed run finds them.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from torch import Tensor

from trilens.encode.onnx import batches_by_length
from trilens.encode.reading import ModelInputs
from trilens.errors import BadInput
from trilens.kernels.array_types import Int64s
from trilens.represent.ragged import offsets_of
from trilens.train.backbone import SIDES
from trilens.train.encoder import BATCH_TOKENS, BATCH_TOKENS_ELSEWHERE, at_rest
from trilens.train.layers import lower_states
from trilens.train.model import Stack, stacks_of
from trilens.train.step_inputs import text_reader

WINDOW = 4096  # texts tokenised at a time
NO_LIMIT = 1 << 30


class StateCache:
    """A `TextReader` that adds cached token states to the inputs of `Backbone.preprocess`."""

    def __init__(self, model: SentenceTransformer, folder: Path, layers: int | None = None) -> None:
        """`folder` stores the states after the first `layers` layers (None: after the whole backbone)."""
        self._layers = layers
        self._stacks, self._read = stacks_of(model), text_reader(model)
        self._model, self._folder = model, folder
        self._rows: dict[str, dict[str, int]] = {}
        self._offsets: dict[str, Int64s] = {}
        self._states: dict[str, NDArray[np.float16]] = {}

    def add(self, task: str, texts: Iterable[str], progress: Callable[[int], None] = lambda texts: None) -> None:
        """Compute the states of all distinct texts of a task, unless the folder already has them."""
        distinct = list(dict.fromkeys(texts))
        stack = self._stacks[task]
        reading = stack.backbone.reading(SIDES[task], fill=True)
        lengths = [
            len(ids) for start in range(0, len(distinct), WINDOW) for ids in reading.read(distinct[start : start + WINDOW]).ids
        ]
        offsets = offsets_of(np.array(lengths, np.int64))
        self._folder.mkdir(parents=True, exist_ok=True)
        file, complete = self._folder / f"{task}.npy", self._folder / f"{task}.whole"
        digest = self._digest(stack, distinct)
        if complete.exists() and complete.read_text(encoding="utf-8") == digest:
            states = np.load(file, mmap_mode="r")
        else:
            complete.unlink(missing_ok=True)
            shape = (int(offsets[-1]), stack.backbone.get_embedding_dimension())
            states = np.lib.format.open_memmap(file, "w+", np.float16, shape)
            with at_rest(self._model):
                for start in range(0, len(distinct), WINDOW):
                    self._fill(stack, task, distinct[start : start + WINDOW], states[offsets[start] :], progress)
            states.flush()
            complete.write_text(digest, encoding="utf-8")
        self._rows[task] = {text: row for row, text in enumerate(distinct)}
        self._offsets[task], self._states[task] = offsets, states

    def _digest(self, stack: Stack, texts: list[str]) -> str:
        """Digest of everything that determines the states, so that a resumed run reuses only its own."""
        description = stack.heads.description.model_dump_json(by_alias=True)
        digest = hashlib.blake2b(f"{self._layers} {description}".encode(), digest_size=16)
        for tensor in stack.backbone.state_dict().values():
            digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
        for text in texts:
            digest.update(f"{len(text)} {text}".encode())
        return digest.hexdigest()

    def _fill(
        self, stack: Stack, task: str, texts: list[str], states: NDArray[np.float16], progress: Callable[[int], None]
    ) -> None:
        rows = stack.backbone.reading(SIDES[task], fill=True).read(texts)
        starts = offsets_of(np.array([len(ids) for ids in rows.ids], np.int64))
        for batch, computed in in_batches(stack, rows, self._compute):
            half = computed.to(torch.float16).cpu().numpy()
            if not np.isfinite(half).all():
                raise BadInput(
                    "some states exceed the range of float16; expected at most 65,504: remove freeze and cache_states"
                )
            for index, row in enumerate(batch):
                states[starts[row] : starts[row + 1]] = half[index, : len(rows.ids[row])]
            progress(len(batch))

    def _compute(self, stack: Stack, features: dict[str, Tensor]) -> Tensor:
        if self._layers is not None:
            return lower_states(stack.backbone.model, features, self._layers)
        return last_states(stack, features)

    def __call__(self, texts: list[str], *, task: str) -> dict[str, Any]:
        """See `TextReader`."""
        return self._read(texts, task=task) | self.known(task, texts)

    def known(self, task: str, texts: Sequence[str]) -> dict[str, Any]:
        """The cached states of texts, padded to the longest."""
        rows = [self._rows[task][text] for text in texts]
        ends = [self._offsets[task][row : row + 2] for row in rows]
        longest = max([1, *(int(last - first) for first, last in ends)])
        states = torch.zeros(len(texts), longest, self._states[task].shape[1])
        for index, (first, last) in enumerate(ends):
            states[index, : last - first] = torch.from_numpy(self._states[task][first:last].astype(np.float32))
        if self._layers is None:
            return {"token_embeddings": states}
        return {"lower_states": states, "lower_layers": self._layers}


def in_batches(
    stack: Stack, rows: ModelInputs, compute: Callable[[Stack, dict[str, Tensor]], Tensor]
) -> Iterator[tuple[Int64s, Tensor]]:
    """Yield batches of texts of similar length, as row numbers, and the result of `compute` padded to the longest text."""
    device = next(stack.backbone.parameters()).device
    size = BATCH_TOKENS.get(device.type, BATCH_TOKENS_ELSEWHERE)
    for batch in batches_by_length([len(ids) for ids in rows.ids], size, NO_LIMIT):
        features = {name: tensor.to(device) for name, tensor in stack.backbone.padded(rows, batch).items()}
        yield batch, compute(stack, features)


def last_states(stack: Stack, features: dict[str, Tensor]) -> Tensor:
    """The states (texts, tokens, hidden) after the last layer."""
    states: Tensor = stack.backbone(features)["token_embeddings"]
    return states

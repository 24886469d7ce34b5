"""Token states after frozen layers, computed once: a run that trains heads alone, or the layers above, reads them instead of
computing them again.

Dropout is off below, since the same states serve every round. They are kept in 16 bits, in a file that lasts as long as the
run, so that one which was stopped finds them when it goes on.
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
from trilens.encode.reading import Rows
from trilens.errors import BadInput
from trilens.represent.ragged import offsets_of
from trilens.train.backbone import SIDES
from trilens.train.encoder import BATCH_TOKENS, BATCH_TOKENS_ELSEWHERE, at_rest
from trilens.train.feed import reader
from trilens.train.layers import lower_states
from trilens.train.model import Stack, stacks_of

WINDOW = 4096  # texts read at a time
NO_LIMIT = 1 << 30


class StateCache:
    """Reads texts as `Backbone.preprocess` does, with their states beside their tokens."""

    def __init__(self, model: SentenceTransformer, folder: Path, layers: int | None = None) -> None:
        """`folder` is where the states are kept: those after the first `layers` layers (None: of the whole backbone)."""
        self._layers = layers
        self._stacks, self._read = stacks_of(model), reader(model)
        self._model, self._folder = model, folder
        self._places: dict[str, dict[str, int]] = {}
        self._offsets: dict[str, NDArray[np.int64]] = {}
        self._states: dict[str, NDArray[np.float16]] = {}

    def add(self, task: str, texts: Iterable[str], progress: Callable[[int], None] = lambda texts: None) -> None:
        """Compute the states of all texts of a task, each once."""
        every = list(dict.fromkeys(texts))
        stack = self._stacks[task]
        reading = stack.backbone.reading(SIDES[task], fill=True)
        lengths = [
            len(ids) for start in range(0, len(every), WINDOW) for ids in reading.read(every[start : start + WINDOW]).ids
        ]
        offsets = offsets_of(np.array(lengths, np.int64))
        self._folder.mkdir(parents=True, exist_ok=True)
        file, whole = self._folder / f"{task}.npy", self._folder / f"{task}.whole"
        wanted = self._digest(stack, every)
        if whole.exists() and whole.read_text(encoding="utf-8") == wanted:
            states = np.load(file, mmap_mode="r")
        else:
            whole.unlink(missing_ok=True)
            shape = (int(offsets[-1]), stack.backbone.get_embedding_dimension())
            states = np.lib.format.open_memmap(file, "w+", np.float16, shape)
            with at_rest(self._model):
                for start in range(0, len(every), WINDOW):
                    self._fill(stack, task, every[start : start + WINDOW], states[offsets[start] :], progress)
            states.flush()
            whole.write_text(wanted, encoding="utf-8")
        self._places[task] = {text: place for place, text in enumerate(every)}
        self._offsets[task], self._states[task] = offsets, states

    def _digest(self, stack: Stack, texts: list[str]) -> str:
        """Of all that decides the states: a run that goes on computes none again, and uses none of another model or text."""
        digest = hashlib.blake2b(f"{self._layers} {stack.heads.description.model_dump_json()}".encode(), digest_size=16)
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
            found = computed.to(torch.float16).cpu().numpy()
            if not np.isfinite(found).all():
                raise BadInput(
                    "some states are too large for 16 bits; expected up to 65,504: leave out freeze and cache_states"
                )
            for place, at in enumerate(batch):
                states[starts[at] : starts[at + 1]] = found[place, : len(rows.ids[at])]
            progress(len(batch))

    def _compute(self, stack: Stack, features: dict[str, Tensor]) -> Tensor:
        if self._layers is not None:
            return lower_states(stack.backbone.model, features, self._layers)
        return last_states(stack, features)

    def __call__(self, texts: list[str], *, task: str) -> dict[str, Any]:
        """See `feed.Read`."""
        return self._read(texts, task=task) | self.known(task, texts)

    def known(self, task: str, texts: Sequence[str]) -> dict[str, Any]:
        """The states of texts, padded to the longest of them."""
        places = [self._places[task][text] for text in texts]
        ends = [self._offsets[task][place : place + 2] for place in places]
        longest = max([1, *(int(last - first) for first, last in ends)])
        states = torch.zeros(len(texts), longest, self._states[task].shape[1])
        for at, (first, last) in enumerate(ends):
            states[at, : last - first] = torch.from_numpy(self._states[task][first:last].astype(np.float32))
        if self._layers is None:
            return {"token_embeddings": states}
        return {"lower_states": states, "lower_layers": self._layers}


def in_batches(
    stack: Stack, rows: Rows, compute: Callable[[Stack, dict[str, Tensor]], Tensor]
) -> Iterator[tuple[NDArray[np.int64], Tensor]]:
    """The places of texts of like length, and what is computed of them, padded to the longest."""
    device = next(stack.backbone.parameters()).device
    size = BATCH_TOKENS.get(device.type, BATCH_TOKENS_ELSEWHERE)
    for batch in batches_by_length([len(ids) for ids in rows.ids], size, NO_LIMIT):
        features = {name: tensor.to(device) for name, tensor in stack.backbone.padded(rows, batch).items()}
        yield batch, compute(stack, features)


def last_states(stack: Stack, features: dict[str, Tensor]) -> Tensor:
    """The states (texts, tokens, hidden) after the last layer."""
    states: Tensor = stack.backbone(features)["token_embeddings"]
    return states

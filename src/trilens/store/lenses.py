"""From a collection's config to its lenses. Models are loaded when first needed, and never the wrong ones."""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from trilens.encode.encoder import Encoded, Progress
from trilens.encode.folder import resolve_model
from trilens.encode.onnx import OnnxEncoder
from trilens.errors import BadInput, BadModel
from trilens.index.bm25 import Bm25Lens
from trilens.index.dense import DenseLens
from trilens.index.lens import Lens, SharesNothing
from trilens.index.multi import MultiLens
from trilens.store.config import CollectionConfig


class ModelEncoder:
    """The collection's model, loaded at the first text."""

    def __init__(self, config: CollectionConfig, threads: int | None) -> None:
        self._config = config
        self._threads = threads

    @cached_property
    def _encoder(self) -> OnnxEncoder:
        encoder = OnnxEncoder(resolve_model(self._config.model), threads=self._threads, heads=self._config.heads)
        expected = self._config.model_fingerprint
        if expected and encoder.fingerprint != expected:
            raise BadModel(
                f"model {self._config.model} is {encoder.fingerprint}, but the collection was made with {expected}; "
                "their vectors cannot be compared: restore that model, or index again into a new collection"
            )
        return encoder

    @property
    def fingerprint(self) -> str:
        """Of the loaded model."""
        return self._encoder.fingerprint

    def encode_docs(self, texts: Sequence[str], progress: Progress | None = None) -> Encoded:
        """Representations of passages."""
        return self._encoder.encode_docs(texts, progress)

    def encode_queries(self, texts: Sequence[str]) -> Encoded:
        """Representations of queries."""
        return self._encoder.encode_queries(texts)

    def doc_tokens(self, texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """See `OnnxEncoder.doc_tokens`."""
        return self._encoder.doc_tokens(texts)

    def token_texts(self, ids: Sequence[int]) -> list[str]:
        """See `OnnxEncoder.token_texts`."""
        return self._encoder.token_texts(ids)


class Lenses:
    """The lenses of one collection by name."""

    def __init__(self, config: CollectionConfig, threads: int | None = None) -> None:
        self.model = model = ModelEncoder(config, threads)
        makers: dict[str, Callable[[], Lens]] = {
            "bm25": lambda: Bm25Lens(config.bm25),
            "dense": lambda: DenseLens(model, config.dense),
            "multi": lambda: MultiLens(model, config.multi),
        }
        self._lenses = {name: makers[name]() for name in config.lenses}

    @property
    def names(self) -> list[str]:
        """In the order of the config."""
        return list(self._lenses)

    @property
    def sharing(self) -> list[str]:
        """Those that may keep something for all segments together."""
        return [name for name, lens in self._lenses.items() if not isinstance(lens, SharesNothing)]

    def __getitem__(self, name: str) -> Lens:
        if name not in self._lenses:
            raise BadInput(
                f"there is no lens {name!r} in this collection; expected one of {', '.join(self.names)}, "
                "or index again with --lens"
            )
        return self._lenses[name]

    def encode_queries(self, names: list[str], texts: list[str]) -> dict[str, Encoded]:
        """The queries as each lens wants them; lenses that share an encoder share its work."""
        done: dict[int, Encoded] = {}
        for name in names:
            encoder = self[name].encoder
            if id(encoder) not in done:
                done[id(encoder)] = encoder.encode_queries(texts)
        return {name: done[id(self[name].encoder)] for name in names}

    def encode_docs(
        self, names: Sequence[str], texts: list[str], progress: Progress | None = None
    ) -> Iterator[tuple[list[str], Encoded]]:
        """What each encoder makes of the texts, one after the other, and the names of the lenses that use it."""
        users: dict[int, list[str]] = {}
        for name in names:
            users.setdefault(id(self[name].encoder), []).append(name)
        slowest = list(users)[-1]  # counting words takes no time beside a model, so only one of them reports
        for key, using in users.items():
            yield using, self[using[0]].encoder.encode_docs(texts, progress if key == slowest else None)

"""From a collection's config to its lenses. Models are loaded when first needed, and never the wrong ones."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trilens.encode.bag import BagEncoder
from trilens.encode.encoder import Encoded, Encoder, Progress
from trilens.encode.folder import Head
from trilens.encode.models import resolve_model
from trilens.encode.onnx import OnnxEncoder
from trilens.errors import BadInput, BadModel
from trilens.index.bm25 import Bm25Lens
from trilens.index.dense import DenseLens
from trilens.index.given import GivenLens
from trilens.index.lens import Lens, SharesNothing
from trilens.index.multi import MultiLens
from trilens.index.sparse import SparseLens
from trilens.index.sparse_params import SparseParams
from trilens.store.config import CollectionConfig


class ModelEncoder:
    """The collection's model, loaded at the first text. It computes the heads that it is asked for."""

    def __init__(self, config: CollectionConfig, threads: int | None) -> None:
        self._config = config
        self._threads = threads

    @cached_property
    def encoder(self) -> OnnxEncoder:
        """The model itself, if it is the one that the collection was made with."""
        encoder = OnnxEncoder(resolve_model(self._config.model), threads=self._threads, heads=self._config.heads)
        expected = self._config.model_fingerprint
        if expected and encoder.fingerprint != expected:
            raise BadModel(
                f"model {self._config.model} is {encoder.fingerprint}, but the collection was made with {expected}; "
                "their vectors cannot be compared: restore that model, or index again into a new collection"
            )
        return encoder

    @property
    def bags(self) -> BagEncoder:
        """Its tokenizer alone, for texts as bags of tokens."""
        return self.encoder.bags

    @property
    def fingerprint(self) -> str:
        """Of the loaded model."""
        return self.encoder.fingerprint

    def encode_docs(
        self, texts: Sequence[str], progress: Progress | None = None, heads: Sequence[Head] | None = None
    ) -> Encoded:
        """Representations of passages."""
        return self.encoder.encode_docs(texts, progress, heads)

    def encode_queries(self, texts: Sequence[str], heads: Sequence[Head] | None = None) -> Encoded:
        """Representations of queries."""
        return self.encoder.encode_queries(texts, heads)

    def doc_tokens(self, texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """See `OnnxEncoder.doc_tokens`."""
        return self.encoder.doc_tokens(texts)

    def token_texts(self, ids: Sequence[int]) -> list[str]:
        """See `OnnxEncoder.token_texts`."""
        return self.encoder.token_texts(ids)

    def term_texts(self, terms: Sequence[int]) -> list[str]:
        """See `OnnxEncoder.term_texts`."""
        return self.encoder.term_texts(terms)


@dataclass(frozen=True)
class HeadEncoder:
    """Some heads of the model. Lenses that use the same model share its pass over the text."""

    model: ModelEncoder
    heads: tuple[Head, ...]

    @property
    def fingerprint(self) -> str:
        """Of the model."""
        return self.model.fingerprint

    def encode_docs(self, texts: Sequence[str], progress: Progress | None = None) -> Encoded:
        """What the heads make of passages."""
        return self.model.encode_docs(texts, progress, self.heads)

    def encode_queries(self, texts: Sequence[str]) -> Encoded:
        """What the heads make of queries."""
        return self.model.encode_queries(texts, self.heads)


class TokenEncoder:
    """Texts as bags of tokens, by the tokenizer of the model."""

    def __init__(self, model: ModelEncoder) -> None:
        self.model = model

    @property
    def fingerprint(self) -> str:
        """Of the model."""
        return self.model.bags.fingerprint

    def encode_docs(self, texts: Sequence[str], progress: Progress | None = None) -> Encoded:
        """The tokens of passages."""
        return self.model.bags.encode_docs(texts, progress)

    def encode_queries(self, texts: Sequence[str]) -> Encoded:
        """The tokens of queries."""
        return self.model.bags.encode_queries(texts)


class Lenses:
    """The lenses of one collection by name."""

    def __init__(self, config: CollectionConfig, threads: int | None = None) -> None:
        self.model = model = ModelEncoder(config, threads)
        self._bags = TokenEncoder(model)
        self._heads = config.heads
        self.weighing = config.weighing
        weighted = config.sparse, config.weighing
        makers: dict[str, Callable[[], Lens]] = {
            "bm25": lambda: Bm25Lens(config.bm25),
            "dense": lambda: DenseLens(HeadEncoder(model, ("dense",)), config.dense),
            "sparse": lambda: SparseLens("sparse", "sparse", HeadEncoder(model, ("sparse",)), *weighted),
            "tokens": lambda: SparseLens("tokens", "bag", self._bags, *weighted),
            "lexical": lambda: SparseLens("lexical", "lexical", HeadEncoder(model, ("lexical",)), *weighted),
            "vectors": lambda: GivenLens(config.sparse),
            "multi": lambda: MultiLens(HeadEncoder(model, ("multi",)), config.multi),
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

    def late_head(self, name: str) -> Head | None:
        """The head that makes a lens which is not in the collection, if another lens needs that head as well."""
        return next((head for head in self._heads if head == name and name not in self._lenses), None)

    def encode_queries(
        self, names: Sequence[str], texts: list[str], params: Mapping[str, Any] | None = None
    ) -> dict[str, Encoded]:
        """The queries as each lens wants them in a search with these params."""
        encoders = {name: self._query_encoder(name, (params or {}).get(name)) for name in names}
        found: dict[str, Encoded] = {}
        for users, encoder in _together(encoders):
            found |= dict.fromkeys(users, encoder.encode_queries(texts))
        return found

    def encode_docs(
        self, names: Sequence[str], texts: list[str], progress: Progress | None = None
    ) -> Iterator[tuple[list[str], Encoded]]:
        """What each encoder makes of the texts, one after the other, and the names of the lenses that use it."""
        passes = _together({name: self[name].encoder for name in names})
        for number, (users, encoder) in enumerate(passes, start=1):
            # Counting words takes no time beside a model, so only one of them reports.
            yield users, encoder.encode_docs(texts, progress if number == len(passes) else None)

    def _query_encoder(self, name: str, params: Any | None) -> Encoder:
        """The token index holds bags of tokens, but is asked with the weights of the model unless the params say otherwise."""
        if isinstance(params, SparseParams) and params.query == "bag":
            if name not in ("sparse", "tokens"):
                raise BadInput(f"lens {name!r} takes no bag of tokens; expected query weights, or lens sparse or tokens")
            return self._bags
        return HeadEncoder(self.model, ("sparse",)) if name == "tokens" else self[name].encoder


def _together(encoders: Mapping[str, Encoder]) -> list[tuple[list[str], Encoder]]:
    """The passes that are needed, with the lenses that use each: one for all heads of the model, which comes last."""
    passes: dict[int, tuple[list[str], Encoder]] = {}
    for name, encoder in encoders.items():
        key = id(encoder.model) if isinstance(encoder, HeadEncoder) else id(encoder)
        users, known = passes.get(key, ([], encoder))
        if isinstance(known, HeadEncoder) and isinstance(encoder, HeadEncoder):
            known = HeadEncoder(known.model, tuple(dict.fromkeys(known.heads + encoder.heads)))
        passes[key] = ([*users, name], known)
    return sorted(passes.values(), key=lambda one: isinstance(one[1], HeadEncoder))

"""The model of a collection: loaded on first use, checked against its fingerprint, shared by the lenses that use its heads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from trilens.encode.encoder import Encoded, Encoder, Progress
from trilens.encode.folder import CONFIG_FILE, Head, read_config
from trilens.encode.models import resolve_model
from trilens.encode.onnx import OnnxEncoder
from trilens.encode.reading import ReadTokens, Side
from trilens.encode.terms import Pruning
from trilens.errors import BadInput, BadModel
from trilens.kernels.array_types import Float32s, Int32s, Int64s


class HeadsEncoder(Protocol):
    """An encoder with one or more heads: what `Collection.create(path, encoder=…)` takes.

    `OnnxEncoder` and the encoder of a model in training are such encoders. One with the head `sparse` also returns `bag`; if it
    has an attribute `prunes` that is true, its methods take a `Pruning` as `pruning`. An attribute `term_weighting`, if there
    is one, says how the collection weights its terms; `fusions`, how searches fuse lenses by default (`fusion` of
    `ModelConfig`).
    """

    @property
    def heads(self) -> Sequence[Head]:
        """The heads that it computes."""

    @property
    def fingerprint(self) -> str:
        """Identifies the weights: representations of different fingerprints must not be mixed."""

    def encode_docs(
        self, texts: Sequence[str], progress: Progress | None = None, heads: Sequence[Head] | None = None
    ) -> Encoded:
        """Representations of passages by some heads (None: all), in the order of the texts."""

    def encode_queries(self, texts: Sequence[str], heads: Sequence[Head] | None = None) -> Encoded:
        """Representations of queries by some heads (None: all), in the order of the texts."""


@runtime_checkable
class TokenReader(Protocol):
    """The part of an encoder that explanations of term and token scores need: its tokens, terms and their texts."""

    def read_tokens(self, text: str, side: Side, kept: bool = False) -> ReadTokens:
        """The tokens of a text as the model reads it; with `kept`, those with a vector in `multi`."""

    def token_texts(self, ids: Sequence[int]) -> list[str]:
        """Tokens as text."""

    def term_texts(self, terms: Sequence[int]) -> list[str]:
        """Terms of `sparse` or `bag` as text."""

    def token_terms(self, ids: NDArray[np.integer]) -> NDArray[np.integer]:
        """The terms of `sparse` that tokens stand for."""

    def lexical_terms(self, ids: Int64s) -> Int32s:
        """The terms of `lexical` that tokens stand for."""

    def doc_states(self, text: str) -> Float32s | None:
        """The token states (tokens, hidden) whose mean is the dense vector; None if the model pools in another way."""


@runtime_checkable
class LengthReader(Protocol):
    """The part of an encoder that lets documents be split into passages that it reads in full."""

    @property
    def max_doc_tokens(self) -> int:
        """Maximum length of a passage in tokens, special tokens included; longer ones are truncated."""

    def doc_lengths(self, texts: Sequence[str]) -> list[int]:
        """Length of each passage in tokens, special tokens included, before truncation."""


class ModelEncoder:
    """The encoder of a collection: the model folder `name`, loaded on first use, or an encoder object."""

    def __init__(
        self,
        name: str,
        heads: Sequence[Head],
        fingerprint: str = "",
        threads: int | None = None,
        encoder: HeadsEncoder | None = None,
    ) -> None:
        """`fingerprint` is the expected one; "" accepts any."""
        self.name = name
        self.heads = tuple(heads)
        self._fingerprint = fingerprint
        self._threads = threads
        self._given = encoder

    @cached_property
    def encoder(self) -> HeadsEncoder:
        """The encoder itself, if it is the one that the collection was made with."""
        if self._given is None and not self.name:
            raise BadModel(
                f"the collection was made with an encoder object ({self._fingerprint}); open it with "
                "Collection.open(path, encoder=…)"
            )
        encoder = self._given or OnnxEncoder(resolve_model(self.name), threads=self._threads, heads=self.heads)
        if self._fingerprint and encoder.fingerprint != self._fingerprint:
            raise BadModel(
                f"model {self.name or 'given as an object'} is {encoder.fingerprint}, but the collection was made with "
                f"{self._fingerprint}; their vectors cannot be compared: restore that model, or index into a new collection"
            )
        return encoder

    @cached_property
    def fusions(self) -> Mapping[str, str]:
        """The default fusions by lenses, see `ModelConfig.fusion`; the model is not loaded for them."""
        if self._given is not None:
            return getattr(self._given, "fusions", {})
        return read_config(resolve_model(self.name) / CONFIG_FILE).fusion if self.name and self.heads else {}

    @property
    def tokens(self) -> TokenReader:
        """The encoder as a reader of tokens, which explanations need."""
        if not isinstance(self.encoder, TokenReader):
            raise BadInput(
                f"encoder {self.encoder.fingerprint} does not implement TokenReader; expected the methods of "
                "trilens.encode.model.TokenReader to explain scores or expand queries by its terms"
            )
        return self.encoder

    @property
    def lengths(self) -> LengthReader:
        """The encoder as a reader of lengths, which passages within its maximum length need."""
        if not isinstance(self.encoder, LengthReader):
            raise BadInput(
                f"encoder {self.encoder.fingerprint} does not implement LengthReader; expected the methods of "
                "trilens.encode.model.LengthReader to split documents by its tokens"
            )
        return self.encoder

    def heads_encoder(self, *heads: Head, pruning: Pruning | None = None) -> "HeadEncoder":
        """An encoder of some heads; `pruning` changes which weights of `sparse` are kept."""
        return HeadEncoder(self, heads, pruning if pruning != Pruning() else None)

    @cached_property
    def bags(self) -> "BagOfTokensEncoder":
        """An encoder that only tokenises."""
        return BagOfTokensEncoder(self)


@dataclass(frozen=True)
class HeadEncoder:
    """Some heads of a collection's model. Lenses that use the same model share its pass over the texts."""

    model: ModelEncoder
    heads: tuple[Head, ...]
    pruning: Pruning | None = None

    @property
    def fingerprint(self) -> str:
        """That of the model."""
        return self.model.encoder.fingerprint

    def encode_docs(self, texts: Sequence[str], progress: Progress | None = None) -> Encoded:
        """Representations of passages by these heads."""
        return self.model.encoder.encode_docs(texts, progress, self.heads, **self._options)

    def encode_queries(self, texts: Sequence[str]) -> Encoded:
        """Representations of queries by these heads."""
        return self.model.encoder.encode_queries(texts, self.heads, **self._options)

    @property
    def _options(self) -> dict[str, Any]:
        if self.pruning is None:
            return {}
        if not getattr(self.model.encoder, "prunes", False):
            raise BadInput(
                f"encoder {self.model.encoder.fingerprint} keeps a fixed number of terms; expected no top and no own for it"
            )
        return {"pruning": self.pruning}

    def joined(self, other: "HeadEncoder") -> "HeadEncoder | None":
        """One encoder for the heads of both; None if both compute `sparse` and keep other weights of it."""
        if "sparse" in self.heads and "sparse" in other.heads and self.pruning != other.pruning:
            return None
        heads = tuple(dict.fromkeys(self.heads + other.heads))
        return HeadEncoder(self.model, heads, self.pruning if "sparse" in self.heads else other.pruning)


class BagOfTokensEncoder:
    """Texts as bags of tokens, by the tokenizer of a collection's model."""

    def __init__(self, model: ModelEncoder) -> None:
        self._model = model

    @cached_property
    def _bags(self) -> Encoder:
        bags: Encoder | None = getattr(self._model.encoder, "bags", None)
        if bags is None:
            raise BadInput(
                f"encoder {self._model.encoder.fingerprint} has no attribute `bags`, an encoder of bags of tokens; expected "
                "it for lens tokens and for query=bag"
            )
        return bags

    @property
    def fingerprint(self) -> str:
        """That of the tokenizer's model."""
        return self._bags.fingerprint

    def encode_docs(self, texts: Sequence[str], progress: Progress | None = None) -> Encoded:
        """Bags of tokens of passages."""
        return self._bags.encode_docs(texts, progress)

    def encode_queries(self, texts: Sequence[str]) -> Encoded:
        """Bags of tokens of queries."""
        return self._bags.encode_queries(texts)


def joint_passes(encoders: Mapping[str, Encoder]) -> list[tuple[list[str], Encoder]]:
    """The fewest passes over the texts, each with the names that use it: one serves all heads of the model, and comes last."""
    passes: list[tuple[list[str], Encoder]] = []
    for name, encoder in encoders.items():
        for number, (names, known) in enumerate(passes):
            if (both := _joined(known, encoder)) is not None:
                passes[number] = ([*names, name], both)
                break
        else:
            passes.append(([name], encoder))
    return sorted(passes, key=lambda single: isinstance(single[1], HeadEncoder))


def _joined(known: Encoder, encoder: Encoder) -> Encoder | None:
    if isinstance(known, HeadEncoder) and isinstance(encoder, HeadEncoder):
        return known.joined(encoder) if known.model is encoder.model else None
    return known if known is encoder else None

"""Verification of an exported folder: the same texts through transformers, with heads in plain numpy.

It shares no code with the graph writer, so that mistakes there are found.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trilens.encode.encoder import Encoded
from trilens.encode.folder import Head, ModelConfig
from trilens.encode.onnx import OnnxEncoder
from trilens.encode.pair_reading import Pair, PairReading
from trilens.encode.reading import ModelInputs, Reading, Side
from trilens.encode.terms import SparseMode, TermSpace
from trilens.encode.tokens import Tokens
from trilens.errors import BadModel
from trilens.export.calibration_texts import QUERY_WORDS, thin
from trilens.export.heads import HeadWeights, SparseWeights
from trilens.export.layers import TYPES
from trilens.export.source import Source
from trilens.kernels.array_types import Float32s
from trilens.represent import Sparse

TEXTS = 24
LARGEST_DIFFERENCE = 1e-3  # for float32, relative to the largest value of the head if that exceeds 1
TWO_PARTS = ("t5", "mt5")  # types whose AutoModel includes a decoder
LEAST_COSINE = 0.98  # mean, for 8 bits


@dataclass(frozen=True)
class Agreement:
    """Agreement of a head with the original: mean and worst cosine of its vectors, and the largest difference of a value."""

    head: Head
    mean: float
    worst: float
    difference: float

    def __str__(self) -> str:
        return (
            f"{self.head:<8} cosine with the original {self.mean:.5f} (mean), {self.worst:.5f} (worst); "
            f"largest difference {self.difference:.1e}"
        )


@dataclass(frozen=True)
class Origin:
    """An original tower: its source and its heads."""

    source: Source
    heads: HeadWeights


def can_check() -> bool:
    """Whether torch and transformers are installed."""
    return all(find_spec(name) is not None for name in ("torch", "transformers"))


def compare(
    folder: Path, config: ModelConfig, origins: dict[Side, Origin], texts: Sequence[str], advance: Callable[[float], None]
) -> list[Agreement]:
    """The agreement of each head, over texts as documents and their first words as queries."""
    docs = thin(list(texts), TEXTS)
    queries = [" ".join(text.split()[:QUERY_WORDS]) for text in docs]
    encoder = OnnxEncoder(folder, mode=SparseMode(top=None))
    encoded: tuple[tuple[Side, list[str], Encoded], ...] = (
        ("doc", docs, encoder.encode_docs(docs)),
        ("query", queries, encoder.encode_queries(queries)),
    )
    pairs: dict[Head, list[tuple[Float32s, Float32s]]] = {head: [] for head in config.heads}
    for side, side_texts, actual in encoded:
        expected = TorchReference(origins[side], config, side).encode(side_texts, advance)
        for head in config.heads:
            pairs[head].append((vectors_of(actual, head), expected[head]))
    return [agree(head, *(np.concatenate(parts) for parts in zip(*pairs[head], strict=True))) for head in config.heads]


def require_agreement(agreements: Sequence[Agreement], config: ModelConfig) -> None:
    """Require that the folder computes the same as its original, within tolerances."""
    for agreement in agreements:
        if config.precision == "float32" and not agreement.difference <= LARGEST_DIFFERENCE:
            raise BadModel(
                f"the {agreement.head} head differs from the original by {agreement.difference:.2g}; expected at most "
                f"{LARGEST_DIFFERENCE}: the folder was not written"
            )
    first = agreements[0]  # `dense` if the model has it
    if not first.mean >= LEAST_COSINE:
        raise BadModel(
            f"vectors of the {first.head} head have a mean cosine of {first.mean:.4f} with the original; expected at least "
            f"{LEAST_COSINE}: the folder was not written, choose another --precision or --texts closer to your data"
        )


class TorchReference:
    """The original model in torch, with heads in numpy."""

    def __init__(self, origin: Origin, config: ModelConfig, side: Side) -> None:
        import torch

        model = load_quietly(origin.source.backbone)
        self._torch, self._model = torch, model
        self._words: Float32s = model.get_input_embeddings().weight.detach().numpy()
        tokens = Tokens(origin.source.tokenizer)
        self._heads, self._config, self._terms = origin.heads, config, TermSpace(tokens, config)
        self._side, self._reading = side, Reading(tokens, config, side, fill=config.multi is not None)

    def encode(self, texts: list[str], advance: Callable[[float], None]) -> dict[Head, Float32s]:
        """The output of each head for the texts, as rows of vectors."""
        rows = self._reading.read(texts)
        states = []
        for ids, seen in zip(rows.ids, rows.attended, strict=True):
            states.append(self._states(ids, seen))
            advance(1)
        heads: dict[Head, Callable[[list[Float32s], ModelInputs], Float32s]] = {
            "dense": self._dense,
            "multi": self._multi,
            "sparse": self._sparse,
            "lexical": self._lexical,
        }
        return {head: heads[head](states, rows) for head in self._config.heads}

    def _states(self, ids: list[int], seen: int) -> Float32s:
        mask = (np.arange(len(ids)) < seen).astype(np.int64)
        with self._torch.no_grad():
            output = self._model(
                input_ids=self._torch.tensor([ids]), attention_mask=self._torch.from_numpy(mask)[None], return_dict=True
            )
        return np.asarray(output.last_hidden_state[0].numpy(), np.float32)

    def _dense(self, states: list[Float32s], rows: ModelInputs) -> Float32s:
        head = self._heads.dense
        assert head is not None
        cls = self._config.pooling == "cls"
        pooled = np.stack(
            [tokens[0] if cls else tokens[:seen].mean(axis=0) for tokens, seen in zip(states, rows.attended, strict=True)]
        )
        if head.weight is not None:
            pooled = pooled @ head.weight + (0 if head.bias is None else head.bias)
        if head.tanh:
            pooled = np.tanh(pooled)
        return unit(pooled) if head.normalised else pooled

    def _multi(self, states: list[Float32s], rows: ModelInputs) -> Float32s:
        head = self._heads.multi
        assert head is not None
        kept, vectors_of_texts = self._reading.kept(rows), []
        for text, tokens in enumerate(states):
            vectors = tokens @ head.weight + (0 if head.bias is None else head.bias)
            if head.closing_mean:
                vectors[rows.attended[text] - 1] = vectors[: rows.attended[text]].mean(axis=0)
            vectors = unit(vectors) if head.normalised else vectors
            if head.weigh is not None and self._side == "query":
                vectors = vectors * np.logaddexp(0, tokens @ head.weigh.weight + head.weigh.bias)  # softplus
            vectors_of_texts.append(vectors[kept.row(text)])
        return np.concatenate(vectors_of_texts)

    def _lexical(self, states: list[Float32s], rows: ModelInputs) -> Float32s:
        head = self._heads.lexical
        assert head is not None
        weights = np.maximum(np.concatenate(states) @ head.weight[:, 0] + head.bias, 0).astype(np.float32)
        return whole_rows(self._terms.lexical(self._reading.own(rows), weights))

    def _sparse(self, states: list[Float32s], rows: ModelInputs) -> Float32s:
        head = self._heads.sparse
        assert head is not None
        return np.stack([self._weights(tokens[:seen], head) for tokens, seen in zip(states, rows.attended, strict=True)])

    def _weights(self, tokens: Float32s, head: SparseWeights) -> Float32s:
        if head.transform is not None:
            linear = self._torch.from_numpy(tokens @ head.transform[0] + head.transform[1])
            tokens = self._torch.nn.functional.gelu(linear).numpy()
        spread = np.sqrt(tokens.var(axis=1, keepdims=True) + head.epsilon)
        x = (tokens - tokens.mean(axis=1, keepdims=True)) / spread * head.scale + head.shift
        words = self._words[head.described.shift : head.described.shift + head.described.dim]
        best = (x @ words.T).max(axis=0) + (0 if head.bias is None else head.bias)
        if head.described.activation == "log1p":
            activated = np.log1p(np.maximum(best, 0))
        else:
            activated = np.where(best > 0, best, np.expm1(np.minimum(best, 0))) + 1
        return np.asarray(unit(activated[None])[0] if head.described.normalised else activated, np.float32)


def original_scores(folder: Path, reading: PairReading, pairs: Sequence[Pair], typed: bool) -> Float32s:
    """The scores of pairs by a cross-encoder in torch, one at a time."""
    import torch
    from transformers import AutoModelForSequenceClassification

    model = load_quietly(folder, AutoModelForSequenceClassification)
    inputs = reading.read(pairs)
    scores = []
    with torch.no_grad():
        for ids, types in zip(inputs.ids, inputs.types, strict=True):
            given = {"input_ids": torch.tensor([ids])}
            if typed:
                given[TYPES] = torch.tensor([types])
            scores.append(float(model(**given).logits[0, 0]))
    return np.array(scores, np.float32)


def load_quietly(folder: Path, auto: Any = None) -> Any:
    """Load the encoder, or the model of the class `auto`, in float32, without warnings about weights of other tasks."""
    import torch
    from transformers import AutoConfig, AutoModel, AutoModelForTextEncoding
    from transformers.utils import logging

    verbosity, bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        two_parts = AutoConfig.from_pretrained(str(folder)).model_type in TWO_PARTS
        kind = auto or (AutoModelForTextEncoding if two_parts else AutoModel)
        return kind.from_pretrained(str(folder), dtype=torch.float32).eval()
    finally:
        logging.set_verbosity(verbosity)
        if bar:
            logging.enable_progress_bar()


def vectors_of(encoded: Encoded, head: Head) -> Float32s:
    """The output of a head of the exported folder, as rows of vectors."""
    if encoded.dense is not None and head == "dense":
        return encoded.dense.vectors
    if encoded.multi is not None and head == "multi":
        return encoded.multi.vectors
    terms = encoded.sparse if head == "sparse" else encoded.lexical
    assert terms is not None
    return whole_rows(terms)


def whole_rows(terms: Sparse) -> Float32s:
    """Sparse vectors as a dense matrix."""
    rows = np.zeros((len(terms.indptr) - 1, terms.dim), np.float32)
    rows[np.repeat(np.arange(len(rows)), np.diff(terms.indptr)), terms.terms] = terms.weights
    return rows


def unit(rows: NDArray[Any]) -> Float32s:
    """Rows with unit length; zero rows stay zero."""
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12), np.float32)


def agree(head: Head, actual: Float32s, expected: Float32s) -> Agreement:
    """The agreement of two sets of vectors; two zero vectors agree."""
    if actual.shape != expected.shape:
        raise BadModel(f"the {head} head gives {actual.shape[0]} vectors; expected {expected.shape[0]}, as the original does")
    cosines = (unit(actual) * unit(expected)).sum(axis=1)
    cosines[~actual.any(axis=1) & ~expected.any(axis=1)] = 1
    largest = max(1.0, float(np.abs(expected).max(initial=0)))
    difference = float(np.abs(actual - expected).max(initial=0)) / largest
    return Agreement(head, float(cosines.mean()), float(cosines.min(initial=1)), difference)

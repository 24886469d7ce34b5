"""A written folder against the model it was made from: the same texts through torch and transformers, heads in plain numpy.

Nothing of the code that writes graphs is used here, so that a mistake there shows.
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
from trilens.encode.reading import Reading, Rows, Side
from trilens.encode.terms import SparseMode, Terms
from trilens.encode.tokens import Tokens
from trilens.errors import BadModel
from trilens.export.heads import Heads, Vocabulary
from trilens.export.rounding import Floats
from trilens.export.source import Source
from trilens.export.texts import QUERY_WORDS, thin
from trilens.represent import Sparse

TEXTS = 24
LARGEST_DIFFERENCE = 1e-3  # of float32; a value above 1 is compared with the largest of its head
TWO_PARTS = ("t5", "mt5")  # types whose AutoModel has a decoder as well
LEAST_COSINE = 0.98  # of what is rounded to 8 bits, on average


@dataclass(frozen=True)
class Agreement:
    """How near a head of the folder comes to the original: cosines of its vectors, and the largest difference."""

    head: Head
    mean: float
    worst: float
    difference: float


@dataclass(frozen=True)
class Origin:
    """An original: where it lies, and its heads."""

    source: Source
    heads: Heads


def can_check() -> bool:
    """Whether torch and transformers are here."""
    return all(find_spec(name) is not None for name in ("torch", "transformers"))


def compare(
    folder: Path, config: ModelConfig, origins: dict[Side, Origin], texts: Sequence[str], advance: Callable[[float], None]
) -> list[Agreement]:
    """How near each head comes, over texts as documents and their beginnings as queries."""
    docs = thin(list(texts), TEXTS)
    queries = [" ".join(text.split()[:QUERY_WORDS]) for text in docs]
    encoder = OnnxEncoder(folder, mode=SparseMode(top=None))
    given: tuple[tuple[Side, list[str], Encoded], ...] = (
        ("doc", docs, encoder.encode_docs(docs)),
        ("query", queries, encoder.encode_queries(queries)),
    )
    pairs: dict[Head, list[tuple[Floats, Floats]]] = {head: [] for head in config.heads}
    for side, side_texts, found in given:
        expected = Original(origins[side], config, side).encode(side_texts, advance)
        for head in config.heads:
            pairs[head].append((vectors_of(found, head), expected[head]))
    return [agree(head, *(np.concatenate(parts) for parts in zip(*pairs[head], strict=True))) for head in config.heads]


def require_agreement(found: Sequence[Agreement], config: ModelConfig) -> None:
    """Refuse a folder that does not compute what its original does."""
    for one in found:
        if config.precision == "float32" and not one.difference <= LARGEST_DIFFERENCE:
            raise BadModel(
                f"the {one.head} head differs from the original by {one.difference:.2g}; expected at most "
                f"{LARGEST_DIFFERENCE}: the folder was not written"
            )
    first = found[0]  # `dense` where there is one
    if not first.mean >= LEAST_COSINE:
        raise BadModel(
            f"vectors of the {first.head} head have a cosine of {first.mean:.4f} with the original ones on average; expected "
            f"{LEAST_COSINE}: the folder was not written, choose another --precision or --texts that are more like yours"
        )


class Original:
    """The model in torch, with heads in numpy."""

    def __init__(self, origin: Origin, config: ModelConfig, side: Side) -> None:
        import torch

        model = load_quietly(origin.source.backbone)
        self._torch, self._model = torch, model
        self._words: Floats = model.get_input_embeddings().weight.detach().numpy()
        tokens = Tokens(origin.source.tokenizer)
        self._heads, self._config, self._terms = origin.heads, config, Terms(tokens, config)
        self._side, self._reading = side, Reading(tokens, config, side, fill=config.multi is not None)

    def encode(self, texts: list[str], advance: Callable[[float], None]) -> dict[Head, Floats]:
        """What each head makes of the texts, as rows of vectors."""
        rows = self._reading.read(texts)
        states = []
        for ids, seen in zip(rows.ids, rows.seen, strict=True):
            states.append(self._states(ids, seen))
            advance(1)
        makers: dict[Head, Callable[[list[Floats], Rows], Floats]] = {
            "dense": self._dense,
            "multi": self._multi,
            "sparse": self._sparse,
            "lexical": self._lexical,
        }
        return {head: makers[head](states, rows) for head in self._config.heads}

    def _states(self, ids: list[int], seen: int) -> Floats:
        mask = (np.arange(len(ids)) < seen).astype(np.int64)
        with self._torch.no_grad():
            output = self._model(
                input_ids=self._torch.tensor([ids]), attention_mask=self._torch.from_numpy(mask)[None], return_dict=True
            )
        return np.asarray(output.last_hidden_state[0].numpy(), np.float32)

    def _dense(self, states: list[Floats], rows: Rows) -> Floats:
        head = self._heads.dense
        assert head is not None
        cls = self._config.pooling == "cls"
        pooled = np.stack(
            [tokens[0] if cls else tokens[:seen].mean(axis=0) for tokens, seen in zip(states, rows.seen, strict=True)]
        )
        if head.weight is not None:
            pooled = pooled @ head.weight + (0 if head.bias is None else head.bias)
        if head.tanh:
            pooled = np.tanh(pooled)
        return unit(pooled) if head.normalised else pooled

    def _multi(self, states: list[Floats], rows: Rows) -> Floats:
        head = self._heads.multi
        assert head is not None
        kept, found = self._reading.kept(rows), []
        for at, tokens in enumerate(states):
            vectors = tokens @ head.weight + (0 if head.bias is None else head.bias)
            if head.closing_mean:
                vectors[rows.seen[at] - 1] = vectors[: rows.seen[at]].mean(axis=0)
            vectors = unit(vectors) if head.normalised else vectors
            if head.weigh is not None and self._side == "query":
                vectors = vectors * np.logaddexp(0, tokens @ head.weigh.weight + head.weigh.bias)  # softplus
            found.append(vectors[kept.row(at)])
        return np.concatenate(found)

    def _lexical(self, states: list[Floats], rows: Rows) -> Floats:
        head = self._heads.lexical
        assert head is not None
        weights = np.maximum(np.concatenate(states) @ head.weight[:, 0] + head.bias, 0).astype(np.float32)
        return whole_rows(self._terms.lexical(self._reading.own(rows), weights))

    def _sparse(self, states: list[Floats], rows: Rows) -> Floats:
        head = self._heads.sparse
        assert head is not None
        return np.stack([self._weights(tokens[:seen], head) for tokens, seen in zip(states, rows.seen, strict=True)])

    def _weights(self, tokens: Floats, head: Vocabulary) -> Floats:
        if head.transform is not None:
            linear = self._torch.from_numpy(tokens @ head.transform[0] + head.transform[1])
            tokens = self._torch.nn.functional.gelu(linear).numpy()
        spread = np.sqrt(tokens.var(axis=1, keepdims=True) + head.epsilon)
        x = (tokens - tokens.mean(axis=1, keepdims=True)) / spread * head.scale + head.shift
        words = self._words[head.described.shift : head.described.shift + head.described.dim]
        best = (x @ words.T).max(axis=0) + (0 if head.bias is None else head.bias)
        activated = np.where(best > 0, best, np.expm1(np.minimum(best, 0))) + 1
        return np.asarray(unit(activated[None])[0] if head.described.normalised else activated, np.float32)


def load_quietly(folder: Path) -> Any:
    """The encoder in float32, without a word about the weights of other tasks that lie beside it or are missing."""
    import torch
    from transformers import AutoConfig, AutoModel, AutoModelForTextEncoding
    from transformers.utils import logging

    verbosity, bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        two_parts = AutoConfig.from_pretrained(str(folder)).model_type in TWO_PARTS
        kind = AutoModelForTextEncoding if two_parts else AutoModel
        return kind.from_pretrained(str(folder), dtype=torch.float32).eval()
    finally:
        logging.set_verbosity(verbosity)
        if bar:
            logging.enable_progress_bar()


def vectors_of(found: Encoded, head: Head) -> Floats:
    """What a head of the written folder gave, as rows of vectors."""
    if found.dense is not None and head == "dense":
        return found.dense.vectors
    if found.multi is not None and head == "multi":
        return found.multi.vectors
    terms = found.sparse if head == "sparse" else found.lexical
    assert terms is not None
    return whole_rows(terms)


def whole_rows(terms: Sparse) -> Floats:
    """Weighted terms as rows with a place for every term."""
    rows = np.zeros((len(terms.indptr) - 1, terms.dim), np.float32)
    rows[np.repeat(np.arange(len(rows)), np.diff(terms.indptr)), terms.terms] = terms.weights
    return rows


def unit(rows: NDArray[Any]) -> Floats:
    """Each row at length 1; one of zeros as it is."""
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12), np.float32)


def agree(head: Head, found: Floats, expected: Floats) -> Agreement:
    """Two sets of vectors; two that are both zero agree."""
    if found.shape != expected.shape:
        raise BadModel(f"the {head} head gave {found.shape[0]} vectors; the original gives {expected.shape[0]}")
    cosines = (unit(found) * unit(expected)).sum(axis=1)
    cosines[~found.any(axis=1) & ~expected.any(axis=1)] = 1
    largest = max(1.0, float(np.abs(expected).max(initial=0)))
    return Agreement(
        head, float(cosines.mean()), float(cosines.min(initial=1)), float(np.abs(found - expected).max(initial=0)) / largest
    )

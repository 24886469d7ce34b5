"""Initialisation of heads by fitting them to texts, closer to their optimum than a generic initialisation."""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from torch import Generator, Tensor
from torch.nn import Linear

from trilens.encode.reading import Side
from trilens.errors import BadInput
from trilens.export.fit import fit_lexical, matching, principal
from trilens.export.heads import PerToken
from trilens.kernels.array_types import Float32s
from trilens.train.build import init_sparse
from trilens.train.encoder import at_rest
from trilens.train.heads import SparseHeadModule
from trilens.train.model import Stack, stacks_of
from trilens.train.state_cache import in_batches, last_states

# Words unrelated to a text get almost no weight, and related ones stand out.
SHARPNESS, BELOW = 3.0, 2.0


Pairs = Sequence[tuple[str, str]]
"""Queries, each with a relevant passage."""


def fit_heads(model: SentenceTransformer, texts: Sequence[str], seed: int = 0) -> None:
    """Fit all heads to the token states of passages.

    `multi`: principal components of the states; `lexical`: inverse document frequencies of tokens among the texts; `sparse`:
    a transform that maps states near the embeddings of their own words. Separate towers are initialised equally.
    """
    with at_rest(model):
        for stack in _stacks(model):
            encoded = _EncodedTexts(stack, "doc", texts)
            _fit(stack, encoded.states, encoded.ids, Generator().manual_seed(seed))


def fit_matches(model: SentenceTransformer, pairs: Pairs, texts: Sequence[str]) -> None:
    """Fit the `multi` heads to separate tokens that match a query from tokens of other passages; see `export.fit.matching`.

    Weighted query tokens are fitted to their inverse document frequency among the queries.
    """
    towers = stacks_of(model)
    heads = [stack.heads.multi for stack in _stacks(model)]
    with at_rest(model):
        queries = _EncodedTexts(towers["query"], "query", [query for query, _ in pairs])
        passages = _EncodedTexts(towers["document"], "doc", [*(passage for _, passage in pairs), *texts])
        states = [(queries.vectors(query), passages.vectors(passage)) for query, passage in pairs]
        rarities = fit_lexical(queries.states, queries.ids, _special(towers["query"]))
        for head in heads:
            if head is None:
                raise BadInput("the model has no multi head; expected a model with token vectors")
            matrix = matching(states, map(passages.vectors, texts), head.linear.out_features)
            head.linear.weight.copy_(torch.from_numpy(matrix.T))
            if head.weigh is not None:
                _set(head.weigh, rarities)


def _stacks(model: SentenceTransformer) -> Iterable[Stack]:
    """The distinct towers of a model."""
    return {id(stack.heads): stack for stack in stacks_of(model).values()}.values()


def _special(stack: Stack) -> set[int]:
    """Ids of special tokens."""
    tokens = stack.backbone.tokens
    return {id_ for id_ in range(tokens.size) if tokens.special[id_]}


def _set(layer: Linear, fitted: PerToken) -> None:
    """Copy fitted weights into a linear layer."""
    layer.weight.copy_(torch.from_numpy(fitted.weight.T))
    layer.bias.copy_(torch.from_numpy(fitted.bias))


def _fit(stack: Stack, states: list[Float32s], ids: list[list[int]], generator: Generator) -> None:
    heads = stack.heads
    if heads.multi is not None:
        heads.multi.linear.weight.copy_(torch.from_numpy(principal(states, heads.multi.linear.out_features).T))
    if heads.lexical is not None:
        _set(heads.lexical.linear, fit_lexical(states, ids, _special(stack)))
    if heads.sparse is not None:
        words = stack.backbone.model.get_input_embeddings().weight
        fit_sparse(heads.sparse, states, ids, words, generator)


def fit_sparse(
    head: SparseHeadModule, states: list[Float32s], ids: list[list[int]], words: Tensor, generator: Generator
) -> None:
    """Initialise the transform by `init_sparse`, and biases that put a word's mean weight where elu(x) + 1 is steep.

    Without biases, a few words are among the highest of every text.
    """
    own = torch.tensor([id_ for row in ids for id_ in row]) - head.shift
    all_states = torch.cat([torch.from_numpy(rows) for rows in states])
    init_sparse(head, all_states[own >= 0], words[head.shift :], generator, own[own >= 0])
    if head.bias is not None:
        head.norm.weight.mul_(SHARPNESS)
        head.norm.bias.mul_(SHARPNESS)
        best = [(head.ready(torch.from_numpy(rows)) @ words[head.shift :].T).amax(0) for rows in states]
        head.bias.copy_(-torch.stack(best).mean(0) - BELOW)


class _EncodedTexts:
    """Token ids and token states of the distinct texts of one tower."""

    def __init__(self, stack: Stack, side: Side, texts: Iterable[str]) -> None:
        distinct = list(dict.fromkeys(texts))
        reading = stack.backbone.reading(side, fill=True)
        rows = reading.read(distinct)
        self.ids, self._kept = rows.ids, reading.kept(rows)
        self.states: list[Float32s] = [np.empty(0, np.float32)] * len(distinct)
        for batch, computed in in_batches(stack, rows, last_states):
            padded = computed.float().cpu().numpy()
            for index, row in enumerate(batch):
                self.states[row] = padded[index, : len(rows.ids[row])]
        self._rows = {text: row for row, text in enumerate(distinct)}

    def vectors(self, text: str) -> Float32s:
        """The states of the tokens of a text that get a vector."""
        row = self._rows[text]
        return self.states[row][self._kept.row(row)]

"""Heads fitted to texts before they are trained: nearer to their goal than heads that know nothing of the texts."""

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
from trilens.export.rounding import Floats
from trilens.train.build import start_sparse
from trilens.train.encoder import at_rest
from trilens.train.heads import SparseHead
from trilens.train.model import Stack, stacks_of
from trilens.train.states import in_batches, last_states

# Words that a text is not about shall have next to no weight, and those it is about shall stand out.
SHARPNESS, BELOW = 3.0, 2.0


Pairs = Sequence[tuple[str, str]]
"""Queries, each with a passage that answers it."""


def fit_heads(model: SentenceTransformer, texts: Sequence[str], seed: int = 0) -> None:
    """Set the heads to what suits the token states of passages; they begin from there instead of from chance.

    `multi` keeps the directions in which the states differ most; `lexical` weighs tokens by their rarity among the texts;
    the transform of `sparse` brings states near the embeddings of their own words. Queries and docs that have heads of their
    own begin alike.
    """
    with at_rest(model):
        for stack in _stacks(model):
            read = _Read(stack, "doc", texts)
            _fit(stack, read.states, read.ids, Generator().manual_seed(seed))


def fit_matches(model: SentenceTransformer, pairs: Pairs, texts: Sequence[str]) -> None:
    """Set the `multi` heads to tell the tokens that answer a query from those of other passages; see `export.fit.matching`.

    Tokens of queries that have weights count by how rare they are among the queries.
    """
    towers = stacks_of(model)
    heads = [stack.heads.multi for stack in _stacks(model)]
    with at_rest(model):
        queries = _Read(towers["query"], "query", [query for query, _ in pairs])
        passages = _Read(towers["document"], "doc", [*(passage for _, passage in pairs), *texts])
        met = [(queries.vectors(query), passages.vectors(passage)) for query, passage in pairs]
        rarities = fit_lexical(queries.states, queries.ids, _special(towers["query"]))
        for head in heads:
            if head is None:
                raise BadInput("the model has no multi head; expected one to fit: give a model that makes token vectors")
            found = matching(met, map(passages.vectors, texts), head.linear.out_features)
            head.linear.weight.copy_(torch.from_numpy(found.T))
            if head.weigh is not None:
                _set(head.weigh, rarities)


def _stacks(model: SentenceTransformer) -> Iterable[Stack]:
    """The towers of a model, each once."""
    return {id(stack.heads): stack for stack in stacks_of(model).values()}.values()


def _special(stack: Stack) -> set[int]:
    """The tokens that a tower adds to texts."""
    tokens = stack.backbone.tokens
    return {id_ for id_ in range(tokens.size) if tokens.special[id_]}


def _set(layer: Linear, fitted: PerToken) -> None:
    """A linear layer as it was fitted."""
    layer.weight.copy_(torch.from_numpy(fitted.weight.T))
    layer.bias.copy_(torch.from_numpy(fitted.bias))


def _fit(stack: Stack, states: list[Floats], ids: list[list[int]], generator: Generator) -> None:
    heads = stack.heads
    if heads.multi is not None:
        heads.multi.linear.weight.copy_(torch.from_numpy(principal(states, heads.multi.linear.out_features).T))
    if heads.lexical is not None:
        _set(heads.lexical.linear, fit_lexical(states, ids, _special(stack)))
    if heads.sparse is not None:
        words = stack.backbone.model.get_input_embeddings().weight
        fit_sparse(heads.sparse, states, ids, words, generator)


def fit_sparse(head: SparseHead, states: list[Floats], ids: list[list[int]], words: Tensor, generator: Generator) -> None:
    """The transform by `start_sparse`; biases such that a word's mean weight over texts lies where elu(x) + 1 is steep.

    Without them a few words are among the highest of every text.
    """
    own = torch.tensor([id_ for row in ids for id_ in row]) - head.shift
    every = torch.cat([torch.from_numpy(rows) for rows in states])
    start_sparse(head, every[own >= 0], words[head.shift :], generator, own[own >= 0])
    if head.bias is not None:
        head.norm.weight.mul_(SHARPNESS)
        head.norm.bias.mul_(SHARPNESS)
        best = [(head.ready(torch.from_numpy(rows)) @ words[head.shift :].T).amax(0) for rows in states]
        head.bias.copy_(-torch.stack(best).mean(0) - BELOW)


class _Read:
    """Texts as a tower reads them: the tokens of each and their states, a text that is given twice once."""

    def __init__(self, stack: Stack, side: Side, texts: Iterable[str]) -> None:
        every = list(dict.fromkeys(texts))
        reading = stack.backbone.reading(side, fill=True)
        rows = reading.read(every)
        self.ids, self._kept = rows.ids, reading.kept(rows)
        self.states: list[Floats] = [np.empty(0, np.float32)] * len(every)
        for batch, computed in in_batches(stack, rows, last_states):
            found = computed.float().cpu().numpy()
            for place, at in enumerate(batch):
                self.states[at] = found[place, : len(rows.ids[at])]
        self._places = {text: place for place, text in enumerate(every)}

    def vectors(self, text: str) -> Floats:
        """The states of those tokens of a text that get a vector."""
        place = self._places[text]
        return self.states[place][self._kept.row(place)]

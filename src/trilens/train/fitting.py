"""Heads fitted to texts before they are trained: nearer to their goal than heads that know nothing of the texts."""

from collections.abc import Sequence

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from torch import Generator, Tensor

from trilens.export.fit import fit_lexical, principal
from trilens.export.rounding import Floats
from trilens.train.build import start_sparse
from trilens.train.encoder import at_rest
from trilens.train.heads import SparseHead
from trilens.train.model import Stack, stacks_of
from trilens.train.states import in_batches, last_states

# Words that a text is not about shall have next to no weight, and those it is about shall stand out.
SHARPNESS, BELOW = 3.0, 2.0


def fit_heads(model: SentenceTransformer, texts: Sequence[str], seed: int = 0) -> None:
    """Set the heads to what suits the token states of the texts; they begin from there instead of from chance.

    `multi` keeps the directions in which the states differ most; `lexical` weighs tokens by their rarity among the texts;
    the transform of `sparse` brings states near the embeddings of their own words. Queries and docs that have heads of their
    own begin alike.
    """
    stacks = {id(stack.heads): stack for stack in stacks_of(model).values()}.values()
    with at_rest(model):
        for stack in stacks:
            _fit(stack, *_states(stack, texts), Generator().manual_seed(seed))


def _fit(stack: Stack, states: list[Floats], ids: list[list[int]], generator: Generator) -> None:
    heads, tokens = stack.heads, stack.backbone.tokens
    if heads.multi is not None:
        heads.multi.linear.weight.copy_(torch.from_numpy(principal(states, heads.multi.linear.out_features).T))
    if heads.lexical is not None:
        fitted = fit_lexical(states, ids, {id_ for id_ in range(tokens.size) if tokens.special[id_]})
        heads.lexical.linear.weight.copy_(torch.from_numpy(fitted.weight.T))
        heads.lexical.linear.bias.copy_(torch.from_numpy(fitted.bias))
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


def _states(stack: Stack, texts: Sequence[str]) -> tuple[list[Floats], list[list[int]]]:
    """The states of each text, and its tokens."""
    rows = stack.backbone.reading("doc", fill=True).read(list(texts))
    states: list[Floats] = [np.empty(0, np.float32)] * len(texts)
    for batch, computed in in_batches(stack, rows, last_states):
        found = computed.float().cpu().numpy()
        for place, at in enumerate(batch):
            states[at] = found[place, : len(rows.ids[at])]
    return states, [list(ids) for ids in rows.ids]

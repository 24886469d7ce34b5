"""RetroMAE pre-training: a weak decoder reconstructs a text from its first state (Xiao et al. 2022, enhanced decoding).

The encoder reads a text with some words masked. For each position, the decoder's query is the encoder's first state plus that
position's embedding; it attends to the first state and to a random half of the other tokens, never to the token itself.
"""

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import gelu, scaled_dot_product_attention

from trilens.errors import BadInput

IGNORED = -100  # label of positions that are not predicted
DRAWS = 128  # distinct masks per text, shared by its positions: drawing one per position would take longer than the layer


class RetroDecoder(nn.Module):
    """One post-norm transformer layer, as in BERT, with different queries and memory."""

    def __init__(self, hidden: int, heads: int, inner: int, dropout: float = 0.1) -> None:
        super().__init__()
        if hidden % heads:
            raise BadInput(f"hidden is {hidden}, heads {heads}; expected hidden to be a multiple of heads")
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(hidden, hidden) for _ in range(4))
        self.grow, self.shrink = nn.Linear(hidden, inner), nn.Linear(inner, hidden)
        self.attended, self.done = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.dropout = nn.Dropout(dropout)
        self.apply(_as_bert_begins)

    def forward(self, queries: Tensor, memory: Tensor, visible: Tensor) -> Tensor:
        """Float (texts, tokens, hidden) from queries and memory of that shape; `visible`: bool (texts, tokens, tokens).

        `memory` is the encoder's first state, then the embeddings of the tokens after the first.
        """
        # A row without visible tokens (the first, or padding) has no label; it attends to the first token to avoid NaN.
        blind = ~visible.any(-1, keepdim=True)
        mask = torch.cat([visible[:, :, :1] | blind, visible[:, :, 1:]], -1)
        context = scaled_dot_product_attention(
            self._split(self.query(queries)),
            self._split(self.key(memory)),
            self._split(self.value(memory)),
            attn_mask=mask[:, None],
            dropout_p=self.dropout.p if self.training else 0.0,
        )
        states = self.attended(queries + self.dropout(self.out(context.transpose(1, 2).flatten(2))))
        return self.done(states + self.dropout(self.shrink(gelu(self.grow(states)))))

    def _split(self, states: Tensor) -> Tensor:
        return states.unflatten(-1, (self.heads, -1)).transpose(1, 2)


class WordHead(nn.Module):
    """BERT's masked-language head; the backbone's word embeddings are passed at each call."""

    def __init__(self, hidden: int, words: int) -> None:
        super().__init__()
        self.dense = nn.Linear(hidden, hidden)
        self.norm = nn.LayerNorm(hidden)
        self.apply(_as_bert_begins)
        self.bias = nn.Parameter(torch.zeros(words))

    def forward(self, states: Tensor, embeddings: Tensor) -> Tensor:
        """Logits, float (…, words)."""
        return self.norm(gelu(self.dense(states))) @ embeddings.T + self.bias


def masked_words(words: Tensor, share: float, draws: int, generator: Generator) -> Tensor:
    """Random whole-word masks of one text that cover about `share` of its tokens: bool (draws, tokens).

    `words`: the word of each token (tokens,), -1 for special tokens and padding, which are never masked. Words are taken in
    random order while they fit; the first one always is.
    """
    own = words >= 0
    hidden = torch.zeros(draws, len(words), dtype=torch.bool)
    if not own.any():
        return hidden
    lengths, of_token = _words(words[own])
    order = torch.rand(draws, len(lengths), generator=generator).argsort(1)
    fits = lengths[order].cumsum(1) <= max(1, round(share * int(own.sum())))
    fits[:, 0] = True
    hidden[:, own] = torch.zeros_like(fits).scatter(1, order, fits)[:, of_token]
    return hidden


def visible_tokens(words: Tensor, mask: Tensor, generator: Generator, hidden: float = 0.5) -> Tensor:
    """The attention mask of the decoder: bool (texts, tokens, tokens).

    `words` as for `masked_words`, but (texts, tokens); `mask` is the encoder's attention mask. For each position, a random
    selection of whole words is hidden, about `hidden` of the text, and always the token itself.
    """
    visible = mask.bool()[:, None, :].repeat(1, mask.shape[1], 1)
    for text, (own, length) in enumerate(zip(words, mask.sum(1).tolist(), strict=True)):
        masks = masked_words(own, hidden, min(max(length, 1), DRAWS), generator)
        visible[text] &= ~masks[torch.randint(len(masks), (len(own),), generator=generator)]
    return visible & ~torch.eye(mask.shape[1], dtype=torch.bool)


def hide(ids: Tensor, masked: Tensor, mask_id: int, vocabulary: int, generator: Generator) -> tuple[Tensor, Tensor]:
    """Ids with `masked` tokens replaced, and labels: 80 % become the mask token, 10 % a random token, 10 % stay."""
    dice = torch.rand(ids.shape, generator=generator)
    others = torch.randint(vocabulary, ids.shape, generator=generator)
    inputs = torch.where(masked & (dice < 0.8), mask_id, ids)
    inputs = torch.where(masked & (dice >= 0.8) & (dice < 0.9), others, inputs)
    return inputs, torch.where(masked, ids, IGNORED)


def rebuilt_labels(ids: Tensor, mask: Tensor) -> Tensor:
    """The decoder's labels: every attended token but the first and the last of each text."""
    attended = mask.bool()
    inner = attended & attended.roll(-1, 1)
    inner[:, 0] = inner[:, -1] = False
    return torch.where(inner, ids, IGNORED)


def _words(words: Tensor) -> tuple[Tensor, Tensor]:
    """The number of tokens of each word, and the index of each token's word."""
    _, of_token, lengths = words.unique(return_inverse=True, return_counts=True)
    return lengths, of_token


def _as_bert_begins(module: nn.Module) -> None:
    if isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, std=0.02)
        nn.init.zeros_(module.bias)

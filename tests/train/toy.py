"""A model small enough to check by hand: an embedding lookup, and heads that are simple functions of it."""

import torch
from torch import Tensor, nn

WORDS, HIDDEN = 12, 6


class ToyModel(nn.Module):
    """All heads; padding is token 0."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.words = nn.Embedding(WORDS, HIDDEN)
        self.mix = nn.Linear(HIDDEN, HIDDEN)
        self.weigh = nn.Linear(HIDDEN, WORDS)
        self.dropout = nn.Dropout(dropout)

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        mask = features["attention_mask"].bool()
        states = self.dropout(self.mix(self.words(features["input_ids"]))) * mask[:, :, None]
        dense = nn.functional.normalize(states.sum(1), dim=-1)
        sparse = (torch.relu(self.weigh(states)) * mask[:, :, None]).amax(1)
        bags = torch.zeros(len(mask), WORDS).scatter(1, features["input_ids"], mask.float())
        return features | {
            "sentence_embedding": dense,
            "sparse": sparse,
            "lexical": sparse * bags,
            "bags": bags,
            "multi": nn.functional.normalize(states, dim=-1) * mask[:, :, None],
            "multi_mask": mask,
        }


def texts(count: int, tokens: int, seed: int) -> dict[str, Tensor]:
    """Random texts of 2 to `tokens` tokens."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(2, tokens + 1, (count, 1), generator=generator)
    mask = torch.arange(tokens) < lengths
    ids = torch.randint(1, WORDS, (count, tokens), generator=generator) * mask
    return {"input_ids": ids, "attention_mask": mask.long(), "kept": mask}

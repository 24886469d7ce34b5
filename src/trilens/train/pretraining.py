"""RetroMAE as a run: what each step reads, and the loss that it trains."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Generator, Tensor, nn

from trilens.errors import BadInput
from trilens.train.cached import Features
from trilens.train.data.examples import Examples
from trilens.train.gather import joined
from trilens.train.losses.words import retromae
from trilens.train.recipe import RetroMae
from trilens.train.retromae import (
    IGNORED,
    RetroDecoder,
    WordHead,
    hide,
    masked_words,
    rebuilt_labels,
    visible_tokens,
)

MASKS = ("[MASK]", "<mask>")
PADDINGS = ("[PAD]", "<pad>")


class TextFeed:
    """Passages for masked-word training, keyed like examples: see `feed.py`. Masks depend on the seed and the keys alone."""

    def __init__(self, examples: Examples, tokenizer: Tokenizer, max_tokens: int, part: RetroMae, seed: int) -> None:
        """The tokenizer is cut to the length that is read, so it must be nobody else's."""
        self._examples, self._part, self._seed = examples, part, seed
        self._mask, self._words = any_of(tokenizer, MASKS), tokenizer.get_vocab_size()
        self._tokenizer = tokenizer
        self._tokenizer.enable_truncation(max_tokens)
        self._tokenizer.enable_padding(pad_id=any_of(tokenizer, PADDINGS))

    def sides(self, keys: Tensor) -> tuple[list[Features], None]:
        """One side: texts with words hidden, what was hidden, and what the decoder may look at."""
        numbers = [int(key) % self._examples.passage_count for key in keys]
        found = self._tokenizer.encode_batch([self._examples.passage(number) for number in numbers])
        generator = Generator().manual_seed(hash((self._seed, *keys.tolist())) % 2**63)
        ids = torch.tensor([encoding.ids for encoding in found])
        mask = torch.tensor([encoding.attention_mask for encoding in found])
        words = torch.tensor([[-1 if word is None else word for word in encoding.word_ids] for encoding in found])
        chosen = torch.cat([masked_words(row, self._part.encoder_mask, 1, generator) for row in words])
        hidden, labels = hide(ids, chosen, self._mask, self._words, generator)
        side = {
            "input_ids": hidden,
            "attention_mask": mask,
            "labels": labels,
            "original": ids,
            "visible": visible_tokens(words, mask, generator, self._part.decoder_mask),
        }
        return [{name: value.to(keys.device) for name, value in side.items()}], None

    def save(self, folder: Path) -> None:
        """Nothing: it is made of the texts alone."""

    def load(self, folder: Path) -> None:
        """Nothing was kept."""


def any_of(tokenizer: Tokenizer, names: Sequence[str]) -> int:
    """The id of the first of the tokens that there is."""
    found = next((id_ for name in names if (id_ := tokenizer.token_to_id(name)) is not None), None)
    if found is None:
        raise BadInput(f"the vocabulary has none of {', '.join(names)}; expected one of them, which RetroMAE needs")
    return int(found)


class RetroMaeLoss(nn.Module):
    """The loss that the trainer calls: the encoder's hidden words, and the decoder's whole text."""

    def __init__(self, model: nn.Module, backbone: Any) -> None:
        super().__init__()
        config = backbone.config
        if not hasattr(backbone, "embeddings"):
            raise BadInput(f"the backbone is of the type {config.model_type!r}; expected one of BERT's family for RetroMAE")
        self.model = model
        self.decoder = RetroDecoder(config.hidden_size, config.num_attention_heads, config.intermediate_size)
        self.words = WordHead(config.hidden_size, config.vocab_size)
        self._backbone = [backbone]  # in a list, so that it is not a part of this module: it is one of the model
        self.step = 0

    def forward(self, sides: Sequence[Features], teacher: None = None) -> dict[str, Tensor]:
        """The loss by its name."""
        side = sides[0]
        mask = side["attention_mask"]
        given = {"input_ids": side["input_ids"], "attention_mask": mask, "kept": mask.bool(), "own": mask.bool()}
        states = self.model(given)["token_embeddings"]
        embeddings = self._backbone[0].get_input_embeddings().weight
        embed = self._backbone[0].embeddings
        queries = embed(inputs_embeds=states[:, :1].expand_as(states))  # adds the positions
        memory = torch.cat([states[:, :1], embed(input_ids=side["original"])[:, 1:]], 1)
        decoded = self.decoder(queries, memory, side["visible"])
        rebuilt = rebuilt_labels(side["original"], mask)
        if not (side["labels"] != IGNORED).any():
            raise BadInput("no word of the batch could be hidden; expected texts of at least one word")
        found = retromae(
            states, side["labels"], decoded, rebuilt, lambda positions: self.words(positions, embeddings), gather=joined
        )
        return {"retromae": found}

"""The RetroMAE pre-training task: masked passages as inputs, and the reconstruction loss."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer
from torch import Generator, Tensor, nn

from trilens.errors import BadInput
from trilens.train.data.examples import Examples
from trilens.train.data.mixture import Mixture
from trilens.train.freezing import train_only
from trilens.train.gather import joined
from trilens.train.grad_cache import Features
from trilens.train.losses.masked_words import retromae
from trilens.train.model import description_of, stacks_of
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
from trilens.train.trainer import TrainingTask

MASKS = ("[MASK]", "<mask>")
PADDINGS = ("[PAD]", "<pad>")


def retromae_task(section: RetroMae, model: SentenceTransformer, data: Mixture, seed: int) -> TrainingTask:
    """The task of a recipe with `retromae`: every passage is an example, and no head is trained."""
    backbone = stacks_of(model)["document"].backbone
    train_only(model, (), ())
    loss = RetroMaeLoss(model, backbone.model)
    longest, count = description_of(model).max_doc_tokens, data.examples.passage_count
    inputs = RetroMaeInputs(data.examples, Tokenizer.from_str(backbone.tokenizer_json), longest, section, seed)
    return TrainingTask(loss, inputs, lambda epoch: np.arange(count), np.full(count, longest), None, [])


class RetroMaeInputs:
    """Masked passages by key; the masks depend only on the seed and the keys of a batch."""

    def __init__(self, examples: Examples, tokenizer: Tokenizer, max_tokens: int, section: RetroMae, seed: int) -> None:
        """Sets truncation and padding of `tokenizer`, which must not be shared."""
        self._examples, self._section, self._seed = examples, section, seed
        self._mask, self._words = any_of(tokenizer, MASKS), tokenizer.get_vocab_size()
        self._tokenizer = tokenizer
        self._tokenizer.enable_truncation(max_tokens)
        self._tokenizer.enable_padding(pad_id=any_of(tokenizer, PADDINGS))

    def sides(self, keys: Tensor) -> tuple[list[Features], None]:
        """A single side: masked texts, their labels, and the attention mask of the decoder."""
        numbers = [int(key) % self._examples.passage_count for key in keys]
        encodings = self._tokenizer.encode_batch([self._examples.passage(number) for number in numbers])
        generator = Generator().manual_seed(hash((self._seed, *keys.tolist())) % 2**63)
        ids = torch.tensor([encoding.ids for encoding in encodings])
        mask = torch.tensor([encoding.attention_mask for encoding in encodings])
        words = torch.tensor([[-1 if word is None else word for word in encoding.word_ids] for encoding in encodings])
        masked = torch.cat([masked_words(row, self._section.encoder_mask, 1, generator) for row in words])
        hidden, labels = hide(ids, masked, self._mask, self._words, generator)
        side = {
            "input_ids": hidden,
            "attention_mask": mask,
            "labels": labels,
            "original": ids,
            "visible": visible_tokens(words, mask, generator, self._section.decoder_mask),
        }
        return [{name: value.to(keys.device) for name, value in side.items()}], None

    def save(self, folder: Path) -> None:
        """Nothing to save: the inputs depend on the texts only."""

    def load(self, folder: Path) -> None:
        """Nothing to load."""


def any_of(tokenizer: Tokenizer, names: Sequence[str]) -> int:
    """The id of the first of these tokens that the vocabulary contains."""
    token = next((id_ for name in names if (id_ := tokenizer.token_to_id(name)) is not None), None)
    if token is None:
        raise BadInput(f"the vocabulary has none of {', '.join(names)}; expected one of them, which RetroMAE needs")
    return int(token)


class RetroMaeLoss(nn.Module):
    """The loss module of the trainer: masked words from the encoder, and the whole text from the decoder."""

    def __init__(self, model: nn.Module, backbone: Any) -> None:
        super().__init__()
        config = backbone.config
        if not hasattr(backbone, "embeddings"):
            raise BadInput(f"the backbone has type {config.model_type!r}; expected one of the BERT family for RetroMAE")
        self.model = model
        self.decoder = RetroDecoder(config.hidden_size, config.num_attention_heads, config.intermediate_size)
        self.words = WordHead(config.hidden_size, config.vocab_size)
        self._backbone = [backbone]  # in a list, so that its parameters are not registered twice
        self.step = 0
        self.accuracies: dict[str, Tensor] = {}  # nothing is searched

    def forward(self, sides: Sequence[Features], teacher: None = None) -> dict[str, Tensor]:
        """The loss by name."""
        side = sides[0]
        mask = side["attention_mask"]
        inputs = {"input_ids": side["input_ids"], "attention_mask": mask, "kept": mask.bool(), "own": mask.bool()}
        states = self.model(inputs)["token_embeddings"]
        embeddings = self._backbone[0].get_input_embeddings().weight
        embed = self._backbone[0].embeddings
        queries = embed(inputs_embeds=states[:, :1].expand_as(states))  # adds position embeddings
        memory = torch.cat([states[:, :1], embed(input_ids=side["original"])[:, 1:]], 1)
        decoded = self.decoder(queries, memory, side["visible"])
        rebuilt = rebuilt_labels(side["original"], mask)
        if not (side["labels"] != IGNORED).any():
            raise BadInput("no word of the batch could be masked; expected texts of at least one word")
        value = retromae(
            states, side["labels"], decoded, rebuilt, lambda positions: self.words(positions, embeddings), gather=joined
        )
        return {"retromae": value}

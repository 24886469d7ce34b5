"""The cross-encoder of a run: a sequence classifier with one output, whose inputs are those of model folders."""

from pathlib import Path
from typing import Any

import torch
from sentence_transformers import CrossEncoder
from torch import Tensor

from trilens.encode.cross_encoder import TYPES
from trilens.encode.folder import TOKENIZER_FILE
from trilens.encode.pair_reading import PairInputs, PairReading
from trilens.encode.tokens import Tokens
from trilens.errors import BadInput, BadModel
from trilens.kernels.array_types import Int64s
from trilens.train.backbone import quietly
from trilens.train.freezing import freeze_encoder
from trilens.train.layers import keep_layers
from trilens.train.recipe import CrossSection, ModelSection

OUTPUT_LAYERS = r"\.(pooler|pre_classifier|classifier)\."
LONGEST = 512  # tokens of a pair, if neither recipe nor model sets a limit


def cross_model(section: ModelSection, cross: CrossSection) -> CrossEncoder:
    """A cross-encoder from an encoder, with a new output, or from a trained one; of an encoder, the first `layers` layers."""
    if section.start.startswith(("/", ".", "~")) and not Path(section.start).is_dir():
        raise BadModel(f"{section.start} is not a folder; expected a Hugging Face model: check the path, or give a hub id")
    try:
        with quietly():
            model = CrossEncoder(section.start, num_labels=1, model_kwargs={"dtype": torch.float32})
    except (OSError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise BadModel(f"{section.start} cannot be loaded as a cross-encoder ({reason}); expected an encoder") from error
    encoder = encoder_of(model)
    if section.layers is not None:
        keep_layers(encoder, section.layers)
    model.requires_grad_(True)
    freeze_encoder(encoder, section.freeze_embeddings, section.freeze_layers)
    if section.gradient_checkpointing:
        encoder.activation_checkpointing_enable({"use_reentrant": False})
    # Saved with the model, and read by `trilens export` and sentence-transformers.
    model.tokenizer.model_max_length = max_tokens(model, cross)
    if has_types(model):
        names = ["input_ids", TYPES, "attention_mask"]
        model.tokenizer.model_input_names = names
        model.tokenizer.init_kwargs["model_input_names"] = names
    return model


def encoder_of(model: CrossEncoder) -> Any:
    """The encoder below the classifier."""
    classifier: Any = model.model
    return classifier.base_model


def has_types(model: CrossEncoder) -> bool:
    """Whether the encoder distinguishes query and passage by token types."""
    return bool(getattr(encoder_of(model).config, "type_vocab_size", 1) > 1)


def max_tokens(model: CrossEncoder, cross: CrossSection) -> int:
    """The longest pair in tokens: as the recipe says, which the encoder must be able to read, or as much as it can."""
    config = encoder_of(model).config
    positions = getattr(config, "max_position_embeddings", LONGEST)
    # RoBERTa's positions begin after the padding token.
    longest = positions - (config.pad_token_id + 1 if config.model_type in ("roberta", "xlm-roberta", "camembert") else 0)
    if cross.max_tokens is not None and cross.max_tokens > longest:
        raise BadInput(f"cross.max_tokens is {cross.max_tokens}; expected at most {longest}, the encoder's positions")
    return cross.max_tokens or min(longest, LONGEST)


class PairReader:
    """Tokenises pairs for a model in training, exactly as its model folder will."""

    def __init__(self, model: CrossEncoder, cross: CrossSection) -> None:
        processor: Any = model.tokenizer
        tokens = Tokens(Path("the backbone") / TOKENIZER_FILE, processor.backend_tokenizer.to_str())
        longest = max_tokens(model, cross)
        self._reading = PairReading(tokens, longest, cross.max_query_tokens or longest // 2)
        self._typed = has_types(model)

    def read(self, pairs: list[tuple[str, str]]) -> PairInputs:
        """The token ids and types of pairs."""
        return self._reading.read(pairs)

    def padded(self, inputs: PairInputs, batch: Int64s) -> dict[str, Tensor]:
        """The inputs of the model for a batch."""
        arrays = inputs.padded(batch)
        if not self._typed:
            del arrays[TYPES]
        return {name: torch.from_numpy(array) for name, array in arrays.items()}

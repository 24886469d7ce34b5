"""`Backbone`: the encoder of a trainable model, which tokenises texts with the code that serves model folders."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers.base.modules import Transformer
from sentence_transformers.util import load_file_path
from torch import Tensor
from transformers.utils import logging

from trilens.encode.folder import TOKENIZER_FILE, ModelDescription
from trilens.encode.reading import ModelInputs, Reading, Side, require_texts
from trilens.encode.tokens import Tokens
from trilens.errors import BadInput, BadModel
from trilens.train.layers import upper_states

SIDES: dict[str, Side] = {"query": "query", "document": "doc"}
"""Tasks of sentence-transformers and the corresponding sides."""

PLACES = ("subfolder", "token", "cache_dir", "revision", "local_files_only")
"""Arguments of Hugging Face that locate a file."""


class Backbone(Transformer):
    """Token states of a Hugging Face encoder; of encoder–decoder models (T5), only the encoder is used.

    Weights are loaded as float32, whatever their stored type: lower precision in training is up to the trainer. The pooler of
    some encoders is removed, because no head uses it.
    """

    def __init__(self, model_name_or_path: str, **options: Any) -> None:
        """`do_lower_case` adds lower-casing to the tokenizer."""
        options["model_kwargs"] = {"dtype": torch.float32, **(options.get("model_kwargs") or {})}
        super().__init__(model_name_or_path, **options)
        if not isinstance(getattr(self.model, "get_input_embeddings", lambda: None)(), torch.nn.Embedding):
            raise BadModel(f"{model_name_or_path} has no word embeddings; expected a text encoder")
        if getattr(self.model, "pooler", None) is not None:
            self.model.pooler = None
        where = {name: value for name, value in (options.get("processor_kwargs") or {}).items() if name in PLACES}
        self.tokenizer_json = read_tokenizer(model_name_or_path, self.tokenizer, self.do_lower_case, where)
        self.tokens = Tokens(Path(model_name_or_path) / TOKENIZER_FILE, self.tokenizer_json)
        self.description: ModelDescription | None = None
        self._readings: dict[tuple[Side, bool, int | None], Reading] = {}

    def _load_model(self, model_name_or_path: str, *arguments: Any, **options: Any) -> Any:
        """As in the base class, but a tensor that is missing from the checkpoint is an error, not initialised randomly."""
        info: dict[str, Any]
        try:
            with quietly():
                model, info = super()._load_model(
                    model_name_or_path, *arguments, output_loading_info=True, ignore_mismatched_sizes=True, **options
                )
        except (RuntimeError, ValueError, OSError) as error:
            raise BadModel(f"{model_name_or_path} cannot be loaded: {' '.join(str(error).split())}") from error
        faults = [f"{name} {tuple(actual)} for {tuple(wanted)}" for name, actual, wanted in sorted(info["mismatched_keys"])]
        faults += [f"no {name}" for name in sorted(info["missing_keys"]) if "pooler." not in name]
        if faults:
            more = f" and {len(faults) - 5} more" if len(faults) > 5 else ""
            raise BadModel(
                f"{model_name_or_path} has {', '.join(faults[:5])}{more}; expected all tensors of {type(model).__name__}: "
                "restore the checkpoint"
            )
        return model

    def read_as(self, description: ModelDescription) -> None:
        """Tokenise texts according to this description from now on."""
        self.description = description
        self._readings.clear()

    def reading(self, side: Side, fill: bool, max_tokens: int | None = None) -> Reading:
        """The tokenisation of a side; `max_tokens` truncates more than the description does."""
        if self.description is None:
            raise BadInput("the backbone has no description; expected it to be part of a model with heads")
        if (side, fill, max_tokens) not in self._readings:
            described = self.description if max_tokens is None else truncated(self.description, side, max_tokens)
            self._readings[side, fill, max_tokens] = Reading(self.tokens, described, side, fill)
        return self._readings[side, fill, max_tokens]

    def preprocess(  # the base class accepts other inputs than texts
        self,
        inputs: Sequence[str],
        prompt: str | None = None,
        task: str | None = None,
        max_length: int | None = None,
        **_: Any,
    ) -> dict[str, Any]:
        """`input_ids`, `attention_mask`, and masks of the tokens `kept` by the multi head and of the text's `own` tokens.

        All are (texts, tokens), padded to the longest text. `task` is passed on, because heads may treat queries differently.
        """
        require_texts(inputs)
        if task not in SIDES:
            raise BadInput(
                f"task is {task!r}; expected 'query' or 'document': encode with encode_query or encode_document, and for "
                "training map each column to its task in router_mapping"
            )
        if prompt:
            raise BadInput(f"prompt is {prompt!r}; expected none: the prefixes of a model are part of its description")
        reading = self.reading(SIDES[task], fill=True, max_tokens=max_length)
        return {**self.features(reading, reading.read(list(inputs))), "task": task}

    def features(self, reading: Reading, rows: ModelInputs) -> dict[str, Tensor]:
        """The result of `preprocess` for tokenised texts."""
        features, kept, own = self.padded(rows, range(len(rows.ids))), reading.kept(rows), reading.own(rows)
        ids = features["input_ids"].numpy()
        is_kept, is_own = np.zeros(ids.shape, bool), np.zeros(ids.shape, bool)
        for text, row in enumerate(rows.ids):
            is_kept[text, : len(row)] = kept.row(text)
            is_own[text, own.begins[text] - own.starts[text] : own.ends[text] - own.starts[text]] = True
        is_own &= ~self.tokens.special[np.minimum(ids, self.tokens.size - 1)]  # the padding id may exceed the vocabulary
        return features | {"kept": torch.from_numpy(is_kept), "own": torch.from_numpy(is_own)}

    def padded(self, rows: ModelInputs, batch: Iterable[int]) -> dict[str, Tensor]:
        """`input_ids` and `attention_mask` of a batch of tokenised texts."""
        texts = [(rows.ids[row], rows.attended[row]) for row in batch]
        # At least one column, because there is no maximum over zero positions.
        shape = (len(texts), max([1, *(len(ids) for ids, _ in texts)]))
        ids, mask = torch.full(shape, self._padding), torch.zeros(shape, dtype=torch.int64)
        for index, (token_ids, attended) in enumerate(texts):
            ids[index, : len(token_ids)] = torch.tensor(token_ids)
            mask[index, :attended] = 1
        return {"input_ids": ids, "attention_mask": mask}

    @property
    def _padding(self) -> int:
        pad_id = getattr(self.tokenizer, "pad_token_id", None)
        return 0 if pad_id is None else int(pad_id)

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Add `token_embeddings` (texts, tokens, hidden), unless given, and `word_embeddings` for heads tied to them.

        If `lower_states` are given, the states after the first `lower_layers` layers, only the layers above are computed.
        """
        inputs = {name: features[name] for name in ("input_ids", "attention_mask")}
        if "lower_states" in features:
            states = upper_states(self.model, inputs, features["lower_states"], features["lower_layers"])
            features["token_embeddings"] = states
        elif "token_embeddings" not in features:
            features["token_embeddings"] = self.model(**inputs).last_hidden_state
        features["word_embeddings"] = self.model.get_input_embeddings().weight
        return features

    @property
    def longest(self) -> int | None:
        """The maximum number of positions; None if there is no limit, as in T5."""
        positions = getattr(self.config, "max_position_embeddings", None)
        return None if positions is None or positions < 0 else int(positions) - self._infer_flatten_position_offset()

    def save(self, output_path: str, *arguments: Any, **options: Any) -> None:
        """As in the base class, but the original `tokenizer.json` is written unchanged."""
        super().save(output_path, *arguments, **options)
        (Path(output_path) / TOKENIZER_FILE).write_text(self.tokenizer_json, encoding="utf-8")


@contextmanager
def quietly() -> Iterator[None]:
    """Suppress progress bars and warnings of transformers; problems are reported by our own errors."""
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def truncated(description: ModelDescription, side: Side, max_tokens: int) -> ModelDescription:
    """The description with a lower maximum length on one side."""
    multi = description.multi
    if side == "doc":
        return description.model_copy(update={"max_doc_tokens": min(max_tokens, description.max_doc_tokens)})
    if multi is not None and multi.query_tokens is not None:
        multi = multi.model_copy(update={"query_tokens": min(max_tokens, multi.query_tokens)})
    return description.model_copy(update={"max_query_tokens": min(max_tokens, description.max_query_tokens), "multi": multi})


def read_tokenizer(model: str, processor: Any, lower_case: bool, where: dict[str, Any]) -> str:
    """The content of a checkpoint's `tokenizer.json`, without stored truncation and padding.

    The file is preferred to the tokenizer loaded by transformers, which may differ from it. Checkpoints that have only a
    vocabulary use the latter.
    """
    location = {"cache_folder" if name == "cache_dir" else name: value for name, value in where.items()}
    file = load_file_path(model, TOKENIZER_FILE, **location)
    backend: Any = getattr(processor, "backend_tokenizer", None)
    if file is None and backend is None:
        raise BadModel(
            f"{model} has no {TOKENIZER_FILE}, and its tokenizer is a slow one; expected a fast tokenizer: convert it with "
            "transformers.convert_slow_tokenizer and save it beside the model"
        )
    content = json.loads(Path(file).read_text(encoding="utf-8") if file is not None else backend.to_str())
    content |= {"truncation": None, "padding": None}
    if lower_case:
        content["normalizer"] = lower_cased(content.get("normalizer"))
    return json.dumps(content, ensure_ascii=False)


def lower_cased(normaliser: dict[str, Any] | None) -> dict[str, Any]:
    """A normaliser that lower-cases first."""
    if normaliser is None:
        return {"type": "Lowercase"}
    parts = normaliser["normalizers"] if normaliser["type"] == "Sequence" else [normaliser]
    if any(part["type"] == "Lowercase" or part.get("lowercase") for part in parts):
        return normaliser
    return {"type": "Sequence", "normalizers": [{"type": "Lowercase"}, *parts]}

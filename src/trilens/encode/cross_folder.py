"""Model folders of cross-encoders: `trilens.json` of kind "cross-encoder", a tokenizer and an ONNX graph.

The graph takes `input_ids` and `attention_mask` (int64, pairs × tokens), and `token_type_ids` if `token_types` is set. Its
float32 output `score` (pairs) is the relevance of the passage to the query: a logit, comparable for one query only.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from trilens.encode.folder import (
    CONFIG_FILE,
    TOKENIZER_FILE,
    Precision,
    clear_errors,
    is_cross_encoder,
    name_with_digest,
    require_files,
    weights_in,
)
from trilens.errors import BadModel

SCORE = "score"


class CrossConfig(BaseModel):
    """The content of `trilens.json`. Lengths are in tokens; `max_tokens` is that of a pair and includes special tokens.

    A query is cut to `max_query_tokens`, and its passage to what remains of `max_tokens`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    kind: Literal["cross-encoder"]
    name: str = Field(min_length=1)
    max_tokens: int = Field(gt=8)
    max_query_tokens: int = Field(gt=0)
    token_types: bool  # the graph distinguishes query and passage by token types
    precision: Precision
    licence: str
    source: str


@dataclass(frozen=True)
class CrossFolder:
    """The configuration and file paths of one cross-encoder."""

    path: Path
    config: CrossConfig

    @staticmethod
    def open(path: Path) -> "CrossFolder":
        """Read the configuration and check that all files exist."""
        folder = CrossFolder(path, read_cross_config(path / CONFIG_FILE))
        require_files(folder.files)
        return folder

    @property
    def tokenizer(self) -> Path:
        """The tokenizer, in the format of the tokenizers library."""
        return self.path / TOKENIZER_FILE

    @property
    def weights(self) -> Path:
        """The ONNX graph with its weights."""
        return weights_in(self.path)

    @property
    def files(self) -> list[Path]:
        """The tokenizer and the graph."""
        return [self.tokenizer, self.weights]

    @cached_property
    def fingerprint(self) -> str:
        """Name and digest of everything that determines the scores."""
        return name_with_digest(self.config.name, (file.read_bytes() for file in (self.path / CONFIG_FILE, *self.files)))


def read_cross_config(file: Path) -> CrossConfig:
    """Read and validate the `trilens.json` of a cross-encoder."""
    with clear_errors(file):
        content = file.read_bytes()
        if not is_cross_encoder(content):
            raise BadModel(f"{file.parent} is no cross-encoder; expected a folder that `trilens export` made of one")
        return CrossConfig.model_validate_json(content)

"""A model folder: `trilens.json` beside a tokenizer and an ONNX graph, all that is needed to run a model.

The graph takes `input_ids` and `attention_mask` (int64, texts × tokens) and has one output per head, named after it:
`dense` is pooled float32 (texts × dim), of length 1 unless its description says otherwise, `multi` has a vector per token
(texts × tokens × dim), `lexical` a weight ≥ 0 per token (texts × tokens). A multi head that is weighted has a further output,
`multi_weights` (texts × tokens), by which the vectors of queries are multiplied and those of documents are not.

The head `sparse` has a graph of its own, `sparse.onnx`, since it costs as much as a small model and most passes do not need
it. From `states`, a further output of the first graph (texts × tokens × hidden), and `attention_mask` it makes `sparse`: a
weight ≥ 0 for each word of the vocabulary (texts × dim). Positions that are not attended to have no part in it.

A model that has other weights for queries holds the graphs that queries run through in the folder `query`.
"""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from trilens.errors import BadModel
from trilens.text.analysis import known_language

CONFIG_FILE = "trilens.json"
TOKENIZER_FILE = "tokenizer.json"
WEIGHT_FILES = ("model.int8.onnx", "model.onnx")
SPARSE_FILE = "sparse.onnx"
STATES = "states"
QUERY_WEIGHTS = "multi_weights"
QUERY_FOLDER = "query"

Head = Literal["dense", "multi", "sparse", "lexical"]


class MultiHead(BaseModel):
    """How texts become token vectors: what is put around a text, and which of its tokens get a vector.

    What is put around a text is read by all heads: a model has one way to read.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    dim: int = Field(gt=0)
    normalised: bool  # the graph does it; said here for the reader
    query_tokens: int | None = Field(default=None, gt=2)  # shorter queries are filled up with the mask token
    mask_token: str | None = Field(default=None, validate_default=True)
    attend_to_mask: bool = False
    query_marker: str | None = None  # a token put after the opening special ones; it counts towards the length
    doc_marker: str | None = None
    skip_punctuation: bool  # of documents; markers and mask tokens are neither punctuation nor special
    skip_special: bool
    skip_first: bool = False  # of the special tokens only the opening ones, as BGE-M3 does
    # The last attended token, which closes the text, has the mean of all attended ones for its vector, as ColXTR does.
    closing_mean: bool = Field(default=False, validate_default=True)
    weighted: bool = False  # a query's vectors are as long as their tokens are important; the graph says how long

    @field_validator("closing_mean")
    @classmethod
    def _closed_by_the_text(cls, closing_mean: bool, info: ValidationInfo) -> bool:
        if closing_mean and info.data.get("query_tokens") and info.data.get("attend_to_mask"):
            raise ValueError("is given with attend_to_mask; expected texts whose last attended token is the closing one")
        return closing_mean

    @field_validator("mask_token")
    @classmethod
    def _something_to_fill_with(cls, token: str | None, info: ValidationInfo) -> str | None:
        filled = info.data.get("query_tokens")
        if filled is not None and token is None:
            raise ValueError(f"is missing, but query_tokens is {filled}; expected the token that queries are filled with")
        return token


class DenseHead(BaseModel):
    """What becomes of the pooled state of a text; a model without this description only gives it length 1."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    normalised: bool = True
    projection: Literal["linear", "tanh"] | None = None  # a linear layer, and what is applied to its products


class SparseHead(BaseModel):
    """A weight for every word of the vocabulary, whether it stands in the text or not; term t is the token t + `shift`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    dim: int = Field(gt=0)  # size of the vocabulary less the shift
    shift: int = Field(ge=0)  # ids below it (special and unused tokens) are no dimensions
    top: int = Field(default=768, gt=0)  # how many of the highest weights are kept by default
    normalised: bool  # the graph gives the whole vector length 1, before any weight is left out
    transform: bool = False  # a linear layer and GELU before the states meet the words; the graph does it
    biased: bool = False  # a number of its own is added to each word's best product; the graph does it


class LexicalHead(BaseModel):
    """A weight for each of the text's own tokens; term t is the token t."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    dim: int = Field(gt=0)  # size of the vocabulary
    stems: str | None = None  # a Snowball language: tokens of one stem are one term, the first of them; None: each is its own
    repeats: float = Field(default=0, ge=0)  # how much more a repeated term counts: `represent.saturated`

    @field_validator("stems")
    @classmethod
    def _known_language(cls, language: str | None) -> str | None:
        return None if language is None else known_language(language)


class Weighing(BaseModel):
    """How weighted terms are meant to be compared; as it stands, by the inner product of what the heads give.

    The words that a model adds to a text are less certain than the text's own, a word that is repeated says more of what a
    text is about, a long text shares more terms with any query, and no model knows which terms are common in a collection:
    these say how much of that is taken into account.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    rarity: bool = False  # terms of queries count by how rare they are in the collection, as in BM25
    own_query: float = Field(default=1, gt=0)  # by which the weights of a query's own words in `sparse` are multiplied
    repeats: float = Field(default=0, ge=0)  # how much more a repeated token of a document's bag counts: `represent.saturated`
    # The weights of a document are divided by the length of its vector to this power; 1 brings all to length 1.
    sparse_length: float = Field(default=0, ge=0, le=1)
    lexical_length: float = Field(default=0, ge=0, le=1)
    bag_length: float = Field(default=0, ge=0, le=1)
    bag_added: float = Field(default=0, ge=0)  # the part of a document's bag, so weighed, that is added to its `sparse`


Described = MultiHead | SparseHead | LexicalHead


class ModelDescription(BaseModel):
    """How a model reads texts and what its heads give, in training and in use. Lengths are in tokens with the special ones.

    A model without a dense head has the size of its token states for `dim`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: str = Field(min_length=1)
    heads: list[Head] = Field(min_length=1)
    dim: int = Field(gt=0)
    pooling: Literal["mean", "cls"]  # the graph does it; said here for the reader
    query_prefix: str
    doc_prefix: str
    max_query_tokens: int = Field(gt=2)
    max_doc_tokens: int = Field(gt=2)
    dense: DenseHead | None = None
    multi: MultiHead | None = Field(default=None, validate_default=True)
    sparse: SparseHead | None = Field(default=None, validate_default=True)
    lexical: LexicalHead | None = Field(default=None, validate_default=True)
    weighing: Weighing = Weighing()
    licence: str
    source: str

    @field_validator("multi", "sparse", "lexical")
    @classmethod
    def _described_iff_present(cls, described: Described | None, info: ValidationInfo) -> Described | None:
        heads, head = info.data.get("heads"), info.field_name
        if heads is not None and (head in heads) != (described is not None):
            given = "missing" if described is None else "given"
            raise ValueError(f"is {given}, but heads is {heads}; expected it exactly when {head!r} is one of the heads")
        return described

    @field_validator("multi")
    @classmethod
    def _filled_within_the_length(cls, multi: MultiHead | None, info: ValidationInfo) -> MultiHead | None:
        longest = info.data.get("max_query_tokens")
        if longest and multi and multi.query_tokens and multi.query_tokens > longest:
            raise ValueError(f"query_tokens is {multi.query_tokens}; expected at most max_query_tokens, {longest}")
        return multi

    @property
    def dims(self) -> dict[Head, int]:
        """The dimensions of what each head gives; those of `lexical` are what its weights become."""
        described = {"multi": self.multi, "sparse": self.sparse, "lexical": self.lexical}
        return {head: found.dim if (found := described.get(head)) else self.dim for head in self.heads}


class ModelConfig(ModelDescription):
    """What `trilens.json` says."""

    precision: Literal["float32", "int8-weights", "int8"]
    query_tower: bool = False  # queries have graphs of their own


@dataclass(frozen=True)
class ModelFolder:
    """The files of one model; reading them costs nothing until they are used."""

    path: Path
    config: ModelConfig

    @staticmethod
    def open(path: Path) -> "ModelFolder":
        """Read the configuration, and refuse a folder that is not complete."""
        config = read_config(path / CONFIG_FILE)
        folder = ModelFolder(path, config)
        for file in folder.files:
            if not file.is_file():
                raise BadModel(f"{file} is missing from the model folder; restore it or make the folder again")
        return folder

    @property
    def tokenizer(self) -> Path:
        """The tokenizer as the tokenizers library writes it."""
        return self.path / TOKENIZER_FILE

    @property
    def weights(self) -> Path:
        """The ONNX graph with its weights: the 8-bit one when the folder has both."""
        present = (self.path / name for name in WEIGHT_FILES if (self.path / name).is_file())
        return next(present, self.path / WEIGHT_FILES[-1])

    @property
    def sparse(self) -> Path:
        """The ONNX graph of the sparse head."""
        return self.path / SPARSE_FILE

    @property
    def files(self) -> list[Path]:
        """All that the configuration describes."""
        graphs = [*self.graphs, *(self.query.graphs if self.config.query_tower else [])]
        return [self.tokenizer, *graphs]

    @property
    def graphs(self) -> list[Path]:
        """The graphs that documents run through."""
        return [self.weights, *([self.sparse] if self.config.sparse else [])]

    @property
    def query(self) -> "ModelFolder":
        """Where the graphs that queries run through are: mostly here as well."""
        return ModelFolder(self.path / QUERY_FOLDER, self.config) if self.config.query_tower else self

    @cached_property
    def fingerprint(self) -> str:
        """The name and a digest of all that decides a representation: two folders that differ never share it."""
        digest = hashlib.blake2b(digest_size=8)
        for file in (self.path / CONFIG_FILE, *self.files):
            content = file.read_bytes()
            digest.update(len(content).to_bytes(8, "little"))
            digest.update(content)
        return f"{self.config.name}-{digest.hexdigest()}"


def read_config(file: Path) -> ModelConfig:
    """The validated content of a `trilens.json`."""
    try:
        return ModelConfig.model_validate_json(file.read_bytes())
    except (FileNotFoundError, NotADirectoryError) as error:
        raise BadModel(
            f"{file} is missing, so {file.parent} is not a model folder; expected {CONFIG_FILE}, {TOKENIZER_FILE} "
            f"and {' or '.join(WEIGHT_FILES)} in it"
        ) from error
    except ValidationError as error:
        raise BadModel(f"{file}: {first_fault(error)}; correct it or make the folder again") from error


def first_fault(error: ValidationError) -> str:
    """The field that a configuration has wrong, and what is wrong with it, in one line."""
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "the file"
    return f"{where}: {first['msg'].removeprefix('Value error, ')}"


def fingerprint_model(path: Path) -> str:
    """The fingerprint of the model in a folder; see `ModelFolder.fingerprint`."""
    return ModelFolder.open(path).fingerprint

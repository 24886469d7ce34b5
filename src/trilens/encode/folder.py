"""Model folders: `trilens.json`, a tokenizer and ONNX graphs.

The main graph takes `input_ids` and `attention_mask` (int64, texts × tokens). It has one float32 output per head, named after
the head: `dense` is the pooled vector (texts × dim), L2-normalised unless the description says otherwise; `multi` has a vector
per token (texts × tokens × dim); `lexical` has a weight ≥ 0 per token (texts × tokens). A weighted multi head adds the output
`multi_weights` (texts × tokens), which multiplies the token vectors of queries but not those of documents.

The `sparse` head is a separate graph, `sparse.onnx`, because it costs as much as a small model and most passes do not need it.
It takes `attention_mask` and `states`, another output of the main graph (texts × tokens × hidden), and returns `sparse`: a
weight ≥ 0 per vocabulary term (texts × dim). Masked positions do not contribute.

A model with a separate query tower keeps the graphs of that tower in the subfolder `query`.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from trilens.errors import BadModel, first_error
from trilens.text.analysis import known_language

CONFIG_FILE = "trilens.json"
TOKENIZER_FILE = "tokenizer.json"
WEIGHT_FILES = ("model.int8.onnx", "model.onnx")
SPARSE_FILE = "sparse.onnx"
STATES = "states"
QUERY_WEIGHTS = "multi_weights"
QUERY_FOLDER = "query"
CROSS_ENCODER: Literal["cross-encoder"] = "cross-encoder"

Head = Literal["dense", "multi", "sparse", "lexical"]
Precision = Literal["float32", "int8-weights", "int8"]


class MultiHead(BaseModel):
    """Configuration of the multi head: markers and [MASK] augmentation, and which tokens keep a vector.

    Markers and augmentation are part of the model input, so they affect every head.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    dim: int = Field(gt=0)
    normalised: bool  # informative: the graph normalises
    query_tokens: int | None = Field(default=None, gt=2)  # shorter queries are padded with the mask token to this length
    mask_token: str | None = Field(default=None, validate_default=True)
    attend_to_mask: bool = False
    query_marker: str | None = None  # token inserted after the opening special tokens; it counts towards the length
    doc_marker: str | None = None
    skip_punctuation: bool  # documents only; markers and mask tokens count as neither punctuation nor special
    skip_special: bool
    skip_first: bool = False  # skip only the opening special tokens, as BGE-M3 does
    # The vector of the last attended token is the mean over all attended tokens, as in ColXTR.
    closing_mean: bool = Field(default=False, validate_default=True)
    weighted: bool = False  # query token vectors are scaled by the importance that the graph assigns to each token

    @field_validator("closing_mean")
    @classmethod
    def _last_token_closes_the_text(cls, closing_mean: bool, info: ValidationInfo) -> bool:
        if closing_mean and info.data.get("query_tokens") and info.data.get("attend_to_mask"):
            raise ValueError("is given with attend_to_mask; expected the closing token to be the last attended one")
        return closing_mean

    @field_validator("mask_token")
    @classmethod
    def _mask_token_is_set(cls, token: str | None, info: ValidationInfo) -> str | None:
        query_tokens = info.data.get("query_tokens")
        if query_tokens is not None and token is None:
            raise ValueError(f"is missing, but query_tokens is {query_tokens}; expected the token that queries are padded with")
        return token


class DenseHead(BaseModel):
    """Configuration of the dense head. Without it, the pooled state is only normalised."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    normalised: bool = True
    projection: Literal["linear", "tanh"] | None = None  # linear layer after pooling, and its activation


class SparseHead(BaseModel):
    """Configuration of the sparse head, which weights every vocabulary term. Term t is token t + `shift`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    dim: int = Field(gt=0)  # vocabulary size minus the shift
    shift: int = Field(ge=0)  # token ids below it (special and unused tokens) are not terms
    top: int = Field(default=768, gt=0)  # number of highest weights kept by default
    normalised: bool  # the graph normalises the full vector, before pruning
    transform: bool = False  # the graph applies a linear layer and GELU before the vocabulary projection
    biased: bool = False  # the graph adds a bias per term after max pooling
    activation: Literal["elu1p", "log1p"] = "elu1p"  # elu(x) + 1 as in VDR, or log(1 + ReLU(x)) as in SPLADE
    epsilon: float = Field(default=1e-5, gt=0)  # of the layer normalisation; informative: the graph normalises


class LexicalHead(BaseModel):
    """Configuration of the lexical head, which weights the tokens of the text. Term t is token t."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    dim: int = Field(gt=0)  # vocabulary size
    stems: str | None = None  # Snowball language: tokens with the same stem share the term of the first one; None: no stemming
    repeats: float = Field(default=0, ge=0)  # term frequency saturation, see `represent.saturated`; 0 ignores frequency

    @field_validator("stems")
    @classmethod
    def _known_language(cls, language: str | None) -> str | None:
        return None if language is None else known_language(language)


class TermWeighting(BaseModel):
    """Weighting of sparse and lexical terms on top of the model's weights. The defaults give the plain inner product.

    The parameters control inverse document frequency, the weight of the text's own terms relative to expansion terms, term
    frequency, and document length normalisation.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)

    # Query terms are multiplied by their inverse document frequency in the collection, as in BM25.
    idf: bool = Field(default=False, validation_alias="rarity", serialization_alias="rarity")
    own_query: float = Field(default=1, gt=0)  # factor for `sparse` weights of terms that occur in the query
    repeats: float = Field(default=0, ge=0)  # term frequency saturation of document bags, see `represent.saturated`
    # Document weights are divided by the L2 norm of the vector to this power; 1 normalises fully.
    sparse_length: float = Field(default=0, ge=0, le=1)
    lexical_length: float = Field(default=0, ge=0, le=1)
    bag_length: float = Field(default=0, ge=0, le=1)
    bag_added: float = Field(default=0, ge=0)  # factor with which a document's weighted bag is added to its `sparse` vector


HeadDescription = MultiHead | SparseHead | LexicalHead


class ModelDescription(BaseModel):
    """Inputs and heads of a model, in training and inference. Lengths are in tokens and include special tokens.

    Without a dense head, `dim` is the hidden size.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)

    name: str = Field(min_length=1)
    heads: list[Head] = Field(min_length=1)
    dim: int = Field(gt=0)
    pooling: Literal["mean", "cls"]  # informative: the graph pools
    query_prefix: str
    doc_prefix: str
    max_query_tokens: int = Field(gt=2)
    max_doc_tokens: int = Field(gt=2)
    dense: DenseHead | None = None
    multi: MultiHead | None = Field(default=None, validate_default=True)
    sparse: SparseHead | None = Field(default=None, validate_default=True)
    lexical: LexicalHead | None = Field(default=None, validate_default=True)
    term_weighting: TermWeighting = Field(default=TermWeighting(), validation_alias="weighing", serialization_alias="weighing")
    licence: str
    source: str

    @field_validator("multi", "sparse", "lexical")
    @classmethod
    def _described_iff_present(cls, description: HeadDescription | None, info: ValidationInfo) -> HeadDescription | None:
        heads, head = info.data.get("heads"), info.field_name
        if heads is not None and (head in heads) != (description is not None):
            state = "missing" if description is None else "given"
            raise ValueError(f"is {state}, but heads is {heads}; expected it exactly when {head!r} is one of the heads")
        return description

    @field_validator("multi")
    @classmethod
    def _query_tokens_within_max(cls, multi: MultiHead | None, info: ValidationInfo) -> MultiHead | None:
        max_tokens = info.data.get("max_query_tokens")
        if max_tokens and multi and multi.query_tokens and multi.query_tokens > max_tokens:
            raise ValueError(f"query_tokens is {multi.query_tokens}; expected at most max_query_tokens, {max_tokens}")
        return multi

    @property
    def dims(self) -> dict[Head, int]:
        """Dimensions of the representation of each head."""
        descriptions = {"multi": self.multi, "sparse": self.sparse, "lexical": self.lexical}
        return {head: found.dim if (found := descriptions.get(head)) else self.dim for head in self.heads}


class ModelConfig(ModelDescription):
    """The content of `trilens.json`."""

    precision: Precision
    query_tower: bool = False  # queries have separate graphs, in `query/`
    # The default fusion by lenses, such as {"bm25+dense": "zscore:bm25=0.3,dense=0.7"}; the names are sorted.
    fusion: dict[str, str] = Field(default_factory=dict)

    @field_validator("fusion")
    @classmethod
    def _lenses_are_sorted(cls, fusion: dict[str, str]) -> dict[str, str]:
        for lenses in fusion:
            names = lenses.split("+")
            if len(names) < 2 or names != sorted(set(names)):
                raise ValueError(f"is given for {lenses!r}; expected lenses in alphabetical order, such as bm25+dense")
        return fusion


@dataclass(frozen=True)
class ModelFolder:
    """The configuration and file paths of one model."""

    path: Path
    config: ModelConfig

    @staticmethod
    def open(path: Path) -> "ModelFolder":
        """Read the configuration and check that all files exist."""
        config = read_config(path / CONFIG_FILE)
        folder = ModelFolder(path, config)
        require_files(folder.files)
        return folder

    @property
    def tokenizer(self) -> Path:
        """The tokenizer, in the format of the tokenizers library."""
        return self.path / TOKENIZER_FILE

    @property
    def weights(self) -> Path:
        """The main ONNX graph with its weights; the 8-bit one if the folder has both."""
        return weights_in(self.path)

    @property
    def sparse(self) -> Path:
        """The ONNX graph of the sparse head."""
        return self.path / SPARSE_FILE

    @property
    def files(self) -> list[Path]:
        """The tokenizer and all graphs that the configuration implies."""
        graphs = [*self.graphs, *(self.query.graphs if self.config.query_tower else [])]
        return [self.tokenizer, *graphs]

    @property
    def graphs(self) -> list[Path]:
        """The graphs of the document tower."""
        return [self.weights, *([self.sparse] if self.config.sparse else [])]

    @property
    def query(self) -> "ModelFolder":
        """The folder of the query tower; this folder if the towers share their weights."""
        return ModelFolder(self.path / QUERY_FOLDER, self.config) if self.config.query_tower else self

    @cached_property
    def fingerprint(self) -> str:
        """Name and digest of everything that determines the representations."""
        contents = (file.read_bytes() for file in self.files)
        return name_with_digest(self.config.name, (_without_fusion((self.path / CONFIG_FILE).read_bytes()), *contents))


def require_files(files: Iterable[Path]) -> None:
    """Refuse a model folder without one of its files."""
    for file in files:
        if not file.is_file():
            raise BadModel(f"{file} is missing from the model folder; restore it or export the model again")


def weights_in(path: Path) -> Path:
    """The main ONNX graph of a folder, whether it exists or not; the 8-bit one if there are both."""
    candidates = (path / name for name in WEIGHT_FILES if (path / name).is_file())
    return next(candidates, path / WEIGHT_FILES[-1])


def name_with_digest(name: str, contents: Iterable[bytes]) -> str:
    """The fingerprint of a model with this name and these file contents."""
    digest = hashlib.blake2b(digest_size=8)
    for content in contents:
        digest.update(len(content).to_bytes(8, "little"))
        digest.update(content)
    return f"{name}-{digest.hexdigest()}"


def _without_fusion(description: bytes) -> bytes:
    """A `trilens.json` as exported without fusions, so that other weights of a fusion do not make another model of it."""
    fields = json.loads(description)
    if "fusion" not in fields:
        return description
    del fields["fusion"]
    return (json.dumps(fields, indent=2, ensure_ascii=False) + "\n").encode()


def read_config(file: Path) -> ModelConfig:
    """Read and validate a `trilens.json` of an encoder."""
    with clear_errors(file):
        content = file.read_bytes()
        if is_cross_encoder(content):
            raise BadModel(
                f"{file.parent} is a cross-encoder, which scores pairs of texts; expected an encoder: a cross-encoder re-ranks "
                "(--rerank cross --cross-encoder FOLDER)"
            )
        return ModelConfig.model_validate_json(content)


@contextmanager
def clear_errors(file: Path) -> Iterator[None]:
    """Name a `trilens.json` that is missing or invalid in one line."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        raise BadModel(
            f"{file} is missing, so {file.parent} is not a model folder; expected {CONFIG_FILE}, {TOKENIZER_FILE} "
            f"and {' or '.join(WEIGHT_FILES)} in it"
        ) from error
    except ValidationError as error:
        raise BadModel(f"{file}: {first_error(error)}; correct the file or export the model again") from error


def is_cross_encoder(description: bytes) -> bool:
    """Whether the content of a `trilens.json` describes a cross-encoder (`CrossConfig`)."""
    try:
        fields = json.loads(description)
    except ValueError:
        return False
    return isinstance(fields, dict) and fields.get("kind") == CROSS_ENCODER


def fingerprint_model(path: Path) -> str:
    """The fingerprint of the model in a folder; see `ModelFolder.fingerprint`."""
    return ModelFolder.open(path).fingerprint

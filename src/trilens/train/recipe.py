"""`Recipe`: the complete specification of a training run, read from YAML. Unknown keys are errors; all defaults are here."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from trilens.encode.folder import Head, LexicalHead, MultiHead, SparseHead, TermWeighting
from trilens.errors import BadInput, first_error
from trilens.train.cross_objectives import AnyCrossObjective
from trilens.train.data.sources import Source
from trilens.train.dev import by_name
from trilens.train.negatives.sources import Given, NegativeSources
from trilens.train.objectives import AnyObjective

Rate = Annotated[float, Field(gt=0)]


class RecipeSection(BaseModel):
    """A section of a recipe."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class ModelSection(RecipeSection):
    """The encoder, its heads, and which parameters are trained. Omitted fields have the defaults of the model family.

    `backbone` is an encoder, whose heads are untrained; `checkpoint` is a model of an earlier run, of sentence-transformers,
    BGE-M3, ColBERT, XTR, VDR or DPR: its heads are trained further, others are untrained. Both are folders or hub ids.
    """

    backbone: str | None = None
    checkpoint: str | None = None
    layers: int | None = Field(default=None, ge=1)  # keep only the first layers of a backbone, for a smaller model; None: all
    heads: list[Head] = Field(default_factory=list)  # none of a cross-encoder, else at least one
    towers: Literal["shared", "separate"] = "shared"
    pooling: Literal["cls", "mean"] | None = None
    query_prefix: str | None = None
    doc_prefix: str | None = None
    max_query_tokens: int | None = Field(default=None, gt=2)
    max_doc_tokens: int | None = Field(default=None, gt=2)
    multi: MultiHead | None = None
    sparse: SparseHead | None = None
    lexical: LexicalHead | None = None
    term_weighting: TermWeighting | None = Field(default=None, validation_alias="weighing", serialization_alias="weighing")
    fit_to: int = Field(default=0, ge=0)  # number of passages that untrained heads are fitted to; 0: no fitting
    freeze_embeddings: bool = False
    freeze_layers: int = Field(default=0, ge=0)  # the first layers
    freeze: bool = False  # the whole backbone: only heads are trained, on token states computed once
    cache_states: bool = False  # compute the states after the frozen layers only once
    gradient_checkpointing: bool = False
    licence: str | None = None
    source: str | None = None

    @model_validator(mode="after")
    def _one_start(self) -> "ModelSection":
        if (self.backbone is None) == (self.checkpoint is None):
            raise ValueError("expected either backbone or checkpoint; give one of them")
        return self

    @model_validator(mode="after")
    def _states_stay(self) -> "ModelSection":
        if self.cache_states and not (self.freeze_embeddings and self.freeze_layers):
            raise ValueError(
                "cache_states caches the output of frozen layers; give freeze_embeddings and freeze_layers as well"
            )
        return self

    @model_validator(mode="after")
    def _trained_heads_stay(self) -> "ModelSection":
        if self.fit_to and self.checkpoint is not None:
            raise ValueError("fit_to would overwrite the heads of a checkpoint; give it with a backbone only")
        if self.layers and self.checkpoint is not None:
            raise ValueError("layers would remove trained layers of a checkpoint; give it with a backbone only")
        return self

    @property
    def start(self) -> str:
        """The backbone or checkpoint."""
        return self.backbone or self.checkpoint or ""


class DevSection(RecipeSection):
    """The dev set: a judged collection, or questions held out of the training data."""

    source: Source | None = None  # None: held-out questions
    hold_out: int = Field(default=300, ge=1)  # number of questions
    passages: int = Field(default=3000, ge=1)  # passages to search: the positives, their negatives, and random ones
    every: int | None = Field(default=None, ge=1)  # evaluate every so many steps; None: only at start and end
    measure: str = "nDCG@10"  # selects the best checkpoint: a measure of ir-measures, or Hit@k
    head: Head | Literal["tokens", "retrieved"] | None = None  # that it measures; None: the model's first head
    retrieved: int | None = Field(default=None, ge=1)  # also evaluate `multi` with XTR's score, with this k'
    patience: int | None = Field(default=None, ge=1)  # stop after this many evaluations without improvement

    @model_validator(mode="after")
    def _measured(self) -> "DevSection":
        by_name([self.measure])
        if self.patience and not self.every:
            raise ValueError(f"patience is {self.patience}, but nothing is evaluated before the end; expected every as well")
        return self


class DataSection(RecipeSection):
    """Sources of the training examples."""

    sources: list[Source] = Field(min_length=1)
    limit: int | None = Field(default=None, ge=1)  # number of random examples, with the passages they refer to


class TeacherSection(RecipeSection):
    """Teacher model for distillation; not needed if the data has teacher scores.

    A cross-encoder is a folder or hub id for torch, or a model folder, which is faster. An ensemble is a model folder, whose
    heads score: its scores are weighted sums of their standard scores in each group.
    """

    model: str
    kind: Literal["cross-encoder", "bi-encoder", "ensemble"] = "cross-encoder"
    head: Head = "dense"  # of a bi-encoder
    weights: dict[Head, Rate] = Field(default_factory=dict)  # of an ensemble, by head

    @model_validator(mode="after")
    def _an_ensemble_has_weights(self) -> "TeacherSection":
        if bool(self.weights) != (self.kind == "ensemble"):
            given = f"are {self.weights}" if self.weights else "are missing"
            raise ValueError(f"weights {given}, but kind is {self.kind!r}; expected weights by head of an ensemble only")
        return self


class BatchSection(RecipeSection):
    """Batching: examples of similar length share a batch, and batches of long texts can be smaller."""

    size: int = Field(default=32, ge=1)
    sub_batch: int | None = Field(default=None, ge=1)  # texts encoded at a time (GradCache)
    buckets: list[int] = Field(default_factory=lambda: [64, 128, 256, 512])  # upper bounds, in tokens of the longest text
    sizes: dict[int, int] = Field(default_factory=dict)  # batch size by bucket; overrides `size` and `buckets`


class RunSection(RecipeSection):
    """Optimisation: duration, learning rates, precision and checkpoints."""

    steps: int | None = Field(default=None, ge=1)
    epochs: int | None = Field(default=None, ge=1)  # instead of steps: read every example so many times
    learning_rate: float = Field(default=2e-5, gt=0)
    # For all heads but dense, or per head; of a cross-encoder, for the layers above the encoder.
    head_learning_rate: Rate | dict[Head, Rate] | None = None
    warm_up: float = Field(default=0.1, ge=0, lt=1)  # share of the steps
    weight_decay: float = Field(default=0.01, ge=0)
    clip: float = Field(default=1.0, gt=0)
    accumulate: int = Field(default=1, ge=1)  # batches per step; each is contrasted by itself
    precision: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    save_every: int = Field(default=100, ge=1)
    log_every: int = Field(default=10, ge=1)
    seed: int = 1

    @model_validator(mode="after")
    def _one_duration(self) -> "RunSection":
        if (self.steps is None) == (self.epochs is None):
            raise ValueError("expected either steps or epochs; give one of them")
        return self


class RetroMae(RecipeSection):
    """RetroMAE pre-training, which replaces the objectives: see `retromae.py`."""

    encoder_mask: float = Field(default=0.3, gt=0, lt=1)
    decoder_mask: float = Field(default=0.5, gt=0, lt=1)


class CrossSection(RecipeSection):
    """A cross-encoder, which reads query and passage together; it replaces heads and objectives."""

    objectives: list[AnyCrossObjective] = Field(min_length=1)
    max_tokens: int | None = Field(default=None, gt=8)  # of a pair; None: as many as the encoder reads, at most 512
    max_query_tokens: int | None = Field(default=None, ge=1)  # None: half of them

    @model_validator(mode="after")
    def _each_kind_once(self) -> "CrossSection":
        kinds = [objective.kind for objective in self.objectives]
        if len(set(kinds)) < len(kinds):
            raise ValueError(f"objectives are {kinds}; expected each kind once")
        return self


CROSS_MODEL = {"backbone", "checkpoint", "layers", "freeze_embeddings", "freeze_layers", "gradient_checkpointing"}
"""The keys of `model` that apply to a cross-encoder, with those of its origin."""


class Recipe(RecipeSection):
    """A complete training run."""

    name: str = Field(min_length=1)
    about: str = ""
    model: ModelSection
    data: DataSection
    dev: DevSection = DevSection()
    objectives: list[AnyObjective] = Field(default_factory=list)
    retromae: RetroMae | None = None
    cross: CrossSection | None = None
    negatives: NegativeSources = [Given(source="given")]  # in addition to in-batch negatives
    teacher: TeacherSection | None = None
    batch: BatchSection = BatchSection()
    run: RunSection

    @model_validator(mode="after")
    def _fits_together(self) -> "Recipe":
        if sum(map(bool, (self.objectives, self.retromae, self.cross))) != 1:
            raise ValueError("expected objectives, retromae or cross; give one of them")
        if self.cross is not None:
            self._require_cross()
        elif not self.model.heads:
            raise ValueError("model.heads is missing; expected some of dense, multi, sparse, lexical")
        if self.retromae is not None and self.model.cache_states:
            raise ValueError("retromae masks different words in every epoch, so states cannot be cached; remove cache_states")
        for objective in self.objectives:
            if lacking := sorted(objective.heads - set(self.model.heads)):
                raise ValueError(f"the objective {objective.kind!r} needs {lacking}; expected them among model.heads")
        if self.dev.retrieved and "multi" not in self.model.heads:
            raise ValueError(f"dev.retrieved is {self.dev.retrieved}, which evaluates multi; expected multi among model.heads")
        if self.dev.head == "retrieved" and not self.dev.retrieved:
            raise ValueError("dev.head is 'retrieved'; expected dev.retrieved, the number of tokens each query token retrieves")
        if self.dev.every and self.run.save_every % self.dev.every:
            raise ValueError(f"run.save_every is {self.run.save_every}; expected a multiple of dev.every, {self.dev.every}")
        return self

    def _require_cross(self) -> None:
        """Refuse what does not apply to a cross-encoder."""
        model, plain = self.model, ModelSection(backbone="any")
        for name in set(ModelSection.model_fields) - CROSS_MODEL - {"licence", "source"}:
            if (value := getattr(model, name)) != getattr(plain, name):
                raise ValueError(f"model.{name} is {value}, which does not apply to a cross-encoder; leave it out")
        if found := next((one.source for one in self.negatives if one.source in ("bag", "refresh")), None):
            raise ValueError(f"negatives has {found!r}, a search with the model in training; a cross-encoder cannot search")
        if self.batch.sub_batch is not None:
            raise ValueError("batch.sub_batch splits in-batch negatives, which a cross-encoder has not; use run.accumulate")
        if self.dev.head is not None:
            raise ValueError(f"dev.head is {self.dev.head!r}, but a cross-encoder has no heads; leave it out")
        if isinstance(self.run.head_learning_rate, dict):
            raise ValueError(
                "run.head_learning_rate is by head, but a cross-encoder has none; expected one rate, of its output"
            )


def read_recipe(file: Path, changes: Sequence[str] = ()) -> Recipe:
    """Read a recipe, with overrides such as `run.steps=10`; its paths are relative to the working directory."""
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise BadInput(f"{file} cannot be read as a recipe ({_one_line(error)}); expected a YAML file") from error
    if not isinstance(content, dict):
        raise BadInput(f"{file} holds {type(content).__name__}; expected keys like name, model, data, objectives and run")
    for change in changes:
        _set(content, change)
    try:
        return Recipe.model_validate(content)
    except ValidationError as error:
        raise BadInput(f"{file} is not a valid recipe: {first_error(error)}") from error


def _set(content: dict[str, Any], change: str) -> None:
    path, equals, text = change.partition("=")
    keys = path.split(".")
    if not equals or not all(keys):
        raise BadInput(f"--set {change!r} is not an assignment; expected key=value, like run.steps=100")
    node: Any = content
    for key in keys[:-1]:
        node = _inside(node, key, change)
    last = keys[-1]
    value = yaml.safe_load(text)
    if isinstance(node, list):
        node[_place(node, last, change)] = value
    elif isinstance(node, dict):
        node[last] = value
    else:
        raise BadInput(
            f"--set {change!r}: {'.'.join(keys[:-1])} is {node!r}, which has no keys; expected a section of the recipe"
        )


def _inside(node: Any, key: str, change: str) -> Any:
    if isinstance(node, list):
        return node[_place(node, key, change)]
    if not isinstance(node, dict):
        raise BadInput(f"--set {change!r}: there is no section {key!r} in {node!r}; expected a key of the recipe")
    return node.setdefault(key, {})


def _place(node: Sequence[Any], key: str, change: str) -> int:
    if not key.isdigit() or int(key) >= len(node):
        raise BadInput(f"--set {change!r}: {key!r} is not an index of a list of {len(node)}; expected 0 to {len(node) - 1}")
    return int(key)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def as_yaml(recipe: Recipe) -> str:
    """The recipe with all defaults, stored with the results of a run."""
    content: Mapping[str, Any] = recipe.model_dump(mode="json", by_alias=True)
    return str(yaml.safe_dump(content, sort_keys=False, allow_unicode=True))

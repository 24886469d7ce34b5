"""`Recipe`: the complete specification of a training run, read from YAML. Unknown keys are errors; all defaults are here."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from trilens.encode.folder import Head, LexicalHead, MultiHead, SparseHead, TermWeighting
from trilens.errors import BadInput, first_error
from trilens.train.data.sources import Source
from trilens.train.dev import by_name
from trilens.train.negatives.sources import Given, NegativeSources
from trilens.train.objectives import AnyObjective


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
    heads: list[Head] = Field(min_length=1)
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
    """Teacher model for distillation; not needed if the data has teacher scores."""

    model: str
    kind: Literal["cross-encoder", "bi-encoder"] = "cross-encoder"
    head: Head = "dense"  # of a bi-encoder


class BatchSection(RecipeSection):
    """Batching: examples of similar length share a batch, and batches of long texts can be smaller."""

    size: int = Field(default=32, ge=1)
    sub_batch: int | None = Field(default=None, ge=1)  # texts encoded at a time (GradCache)
    buckets: list[int] = Field(default_factory=lambda: [64, 128, 256, 512])  # upper bounds, in tokens of the longest text
    sizes: dict[int, int] = Field(default_factory=dict)  # batch size by bucket; overrides `size` and `buckets`


Rate = Annotated[float, Field(gt=0)]


class RunSection(RecipeSection):
    """Optimisation: duration, learning rates, precision and checkpoints."""

    steps: int | None = Field(default=None, ge=1)
    epochs: int | None = Field(default=None, ge=1)  # instead of steps: read every example so many times
    learning_rate: float = Field(default=2e-5, gt=0)
    head_learning_rate: Rate | dict[Head, Rate] | None = None  # for all heads but dense, or per head
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


class Recipe(RecipeSection):
    """A complete training run."""

    name: str = Field(min_length=1)
    about: str = ""
    model: ModelSection
    data: DataSection
    dev: DevSection = DevSection()
    objectives: list[AnyObjective] = Field(default_factory=list)
    retromae: RetroMae | None = None
    negatives: NegativeSources = [Given(source="given")]  # in addition to in-batch negatives
    teacher: TeacherSection | None = None
    batch: BatchSection = BatchSection()
    run: RunSection

    @model_validator(mode="after")
    def _fits_together(self) -> "Recipe":
        if bool(self.objectives) == (self.retromae is not None):
            raise ValueError("expected either objectives or retromae; give one of them")
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

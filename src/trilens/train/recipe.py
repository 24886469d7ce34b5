"""A recipe: one YAML file that says everything about a training run. Unknown keys fail, and every default is written here."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from trilens.encode.folder import Head, LexicalHead, MultiHead, SparseHead, Weighing, first_fault
from trilens.errors import BadInput
from trilens.train.data.sources import Source
from trilens.train.objectives import AnyObjective


class Part(BaseModel):
    """A section of a recipe."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ModelPart(Part):
    """An encoder and its heads, and what of it is trained. What is not given is as the model family has it.

    `backbone` is an encoder, whose heads begin untrained; `checkpoint` a model of a run, of sentence-transformers, BGE-M3,
    ColBERT, XTR, VDR or DPR: heads that it has are trained on, others begin untrained. Both are folders or ids of the hub.
    """

    backbone: str | None = None
    checkpoint: str | None = None
    layers: int | None = Field(default=None, ge=1)  # of a backbone, from the first on: a smaller, faster model; None: all
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
    weighing: Weighing | None = None
    fit_to: int = Field(default=0, ge=0)  # passages of the data that untrained heads are fitted to; 0: none
    freeze_embeddings: bool = False
    freeze_layers: int = Field(default=0, ge=0)  # from the first on
    freeze: bool = False  # the whole backbone: only heads are trained, from states that are computed once
    cache_states: bool = False  # compute the states after the frozen layers once, and train only what is above them
    gradient_checkpointing: bool = False
    licence: str | None = None
    source: str | None = None

    @model_validator(mode="after")
    def _one_start(self) -> "ModelPart":
        if (self.backbone is None) == (self.checkpoint is None):
            raise ValueError("give either backbone or checkpoint")
        return self

    @model_validator(mode="after")
    def _states_stay(self) -> "ModelPart":
        if self.cache_states and not (self.freeze_embeddings and self.freeze_layers):
            raise ValueError(
                "cache_states keeps states that training must not change; give freeze_embeddings and freeze_layers"
            )
        return self

    @model_validator(mode="after")
    def _trained_heads_stay(self) -> "ModelPart":
        if self.fit_to and self.checkpoint is not None:
            raise ValueError("fit_to would write over the heads of a checkpoint; give it with a backbone only")
        if self.layers and self.checkpoint is not None:
            raise ValueError("layers would leave away what a checkpoint was trained with; give it with a backbone only")
        return self

    @property
    def start(self) -> str:
        """What the model begins as."""
        return self.backbone or self.checkpoint or ""


class DevPart(Part):
    """What a run is measured on: a judged collection, or questions held out of the training data."""

    source: Source | None = None  # None: held out
    hold_out: int = Field(default=300, ge=1)  # questions
    passages: int = Field(default=3000, ge=1)  # searched: the right ones, their negatives, and others at random
    every: int | None = Field(default=None, ge=1)  # steps; None: only at start and end
    measure: str = "nDCG@10"
    head: Head | Literal["tokens", "retrieved"] | None = None  # whose measure decides; None: the first of the model
    retrieved: int | None = Field(default=None, ge=1)  # measure `multi` by so many tokens for each query token, too: XTR's k'
    patience: int | None = Field(default=None, ge=1)  # stop after so many measurements without a better one


class DataPart(Part):
    """Where training examples come from."""

    sources: list[Source] = Field(min_length=1)
    limit: int | None = Field(default=None, ge=1)  # examples, drawn at random, over the passages that they name


class NegativesPart(Part):
    """Hard negatives of each query, beside the docs of the other queries of its batch.

    `given` draws from those that the data has; `bag` searches the training passages for each batch, by the query's weights as
    the model sees them and the passages' bare tokens, which never go stale; `refresh` searches them with the model itself every
    so many steps.
    """

    source: Literal["given", "bag", "refresh"] = "given"
    count: int = Field(default=1, ge=0)
    depth: int = Field(default=50, ge=1)  # how many of the best found ones are drawn from
    skip: int = Field(default=0, ge=0)  # of the best, as they are often right answers that nobody marked
    every: int = Field(default=200, ge=1)  # steps between refreshes
    lens: Literal["dense", "multi", "sparse", "lexical"] = "dense"  # that a refresh searches with
    answers: bool = True  # leave out passages that contain an answer


class TeacherPart(Part):
    """A model whose scores are learned from; scores that the data brings need none."""

    model: str
    kind: Literal["cross-encoder", "bi-encoder"] = "cross-encoder"
    head: Head = "dense"  # of a bi-encoder


class BatchPart(Part):
    """How examples make batches: those of like length together, at most so many per batch, fewer where texts are long."""

    size: int = Field(default=32, ge=1)
    sub_batch: int | None = Field(default=None, ge=1)  # texts encoded at a time (GradCache)
    buckets: list[int] = Field(default_factory=lambda: [64, 128, 256, 512])  # borders in tokens of the longest text
    sizes: dict[int, int] = Field(default_factory=dict)  # batch size by bucket border, where it is not `size`


Rate = Annotated[float, Field(gt=0)]


class RunPart(Part):
    """How long and how fast."""

    steps: int = Field(ge=1)
    learning_rate: float = Field(default=2e-5, gt=0)
    head_learning_rate: Rate | dict[Head, Rate] | None = None  # for all heads but dense, or for each
    warm_up: float = Field(default=0.1, ge=0, lt=1)  # share of the steps
    weight_decay: float = Field(default=0.01, ge=0)
    clip: float = Field(default=1.0, gt=0)
    accumulate: int = Field(default=1, ge=1)
    precision: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    save_every: int = Field(default=100, ge=1)
    log_every: int = Field(default=10, ge=1)
    seed: int = 1


class RetroMae(Part):
    """Pre-training instead of objectives: see `retromae.py`."""

    encoder_mask: float = Field(default=0.3, gt=0, lt=1)
    decoder_mask: float = Field(default=0.5, gt=0, lt=1)


class Recipe(Part):
    """Everything about a run."""

    name: str = Field(min_length=1)
    about: str = ""
    model: ModelPart
    data: DataPart
    dev: DevPart = DevPart()
    objectives: list[AnyObjective] = Field(default_factory=list)
    retromae: RetroMae | None = None
    negatives: NegativesPart = NegativesPart()
    teacher: TeacherPart | None = None
    batch: BatchPart = BatchPart()
    run: RunPart

    @model_validator(mode="after")
    def _fits_together(self) -> "Recipe":
        if bool(self.objectives) == (self.retromae is not None):
            raise ValueError("give either objectives or retromae")
        if self.retromae is not None and self.model.cache_states:
            raise ValueError("retromae hides other words in every round; expected no model.cache_states")
        for objective in self.objectives:
            if lacking := sorted(objective.heads - set(self.model.heads)):
                raise ValueError(f"the objective {objective.kind!r} needs {lacking}; expected them among model.heads")
        if self.dev.retrieved and "multi" not in self.model.heads:
            raise ValueError(f"dev.retrieved is {self.dev.retrieved}; expected multi among model.heads, whose tokens these are")
        if self.dev.head == "retrieved" and not self.dev.retrieved:
            raise ValueError("dev.head is 'retrieved'; expected dev.retrieved, how many tokens each query token retrieves")
        if self.dev.every and self.run.save_every % self.dev.every:
            raise ValueError(f"run.save_every is {self.run.save_every}; expected a multiple of dev.every, {self.dev.every}")
        return self


def read_recipe(file: Path, changes: Sequence[str] = ()) -> Recipe:
    """The recipe in a file, with changes like `run.steps=10`; paths in it are relative to the current folder."""
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
        raise BadInput(f"{file} is not a recipe: {first_fault(error)}") from error


def _set(content: dict[str, Any], change: str) -> None:
    path, equals, text = change.partition("=")
    keys = path.split(".")
    if not equals or not all(keys):
        raise BadInput(f"--set {change!r} is not understood; expected key=value, like run.steps=100")
    at: Any = content
    for key in keys[:-1]:
        at = _inside(at, key, change)
    last = keys[-1]
    value = yaml.safe_load(text)
    if isinstance(at, list):
        at[_place(at, last, change)] = value
    elif isinstance(at, dict):
        at[last] = value
    else:
        raise BadInput(
            f"--set {change!r}: {'.'.join(keys[:-1])} is {at!r}, which has no keys; expected a section of the recipe"
        )


def _inside(at: Any, key: str, change: str) -> Any:
    if isinstance(at, list):
        return at[_place(at, key, change)]
    if not isinstance(at, dict):
        raise BadInput(f"--set {change!r}: there is no section {key!r} in {at!r}; expected a key of the recipe")
    return at.setdefault(key, {})


def _place(at: Sequence[Any], key: str, change: str) -> int:
    if not key.isdigit() or int(key) >= len(at):
        raise BadInput(f"--set {change!r}: {key!r} is no place in a list of {len(at)}; expected 0 to {len(at) - 1}")
    return int(key)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def as_yaml(recipe: Recipe) -> str:
    """The whole recipe with all defaults, to be kept beside its results."""
    content: Mapping[str, Any] = recipe.model_dump(mode="json")
    return str(yaml.safe_dump(content, sort_keys=False, allow_unicode=True))

"""`CollectionConfig`: the lenses, model and passages of a collection, fixed when it is created and stored in its catalog."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from trilens.encode.folder import CONFIG_FILE, Head, ModelFolder, TermWeighting
from trilens.encode.hub import is_from, is_hub_id
from trilens.encode.model import HeadsEncoder, LengthReader
from trilens.encode.models import bundled_models, resolve_model
from trilens.errors import BadInput, UnknownFormat, first_error, nested_error
from trilens.lenses.registry import lens_type, lens_types, list_of_names, needed_heads, stored_names

DEFAULT_LENSES = ("bm25", "dense", "multi")  # those of a model without one of the heads are the others
DEFAULT_MODEL = "trilens-mini"
FROM_MODEL = ("model_fingerprint", "term_weighting")  # fields that users do not set


class PassageConfig(BaseModel):
    """Documents are split into overlapping passages of at most `words` words; 0 keeps documents whole.

    A passage with its title has at most `tokens` tokens of the collection's model as well, special tokens included, so that
    nothing of it is truncated; 0 disables this limit. None, the default, becomes the maximum length of the model when a
    collection is created, and 0 if there is no model or documents stay whole.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    words: int = Field(default=150, ge=0)
    overlap: int = Field(default=30, ge=0)
    tokens: int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _overlap_is_smaller(self) -> "PassageConfig":
        if self.words and self.overlap >= self.words:
            raise ValueError(f"overlap is {self.overlap}; expected fewer than the {self.words} words of a passage")
        if self.tokens and not self.words:
            raise ValueError(f"tokens is {self.tokens} with passages of 0 words, which are whole documents; expected 0")
        return self

    def within(self, max_tokens: int) -> "PassageConfig":
        """The same passages with a definite limit of tokens: by default `max_tokens`, which is 0 without a model."""
        if self.tokens is None:
            return self.model_copy(update={"tokens": max_tokens if self.words else 0})
        if self.tokens > max_tokens:
            expected = f"at most {max_tokens}, which the model reads" if max_tokens else "0: the collection has no tokenizer"
            raise BadInput(f"passages.tokens is {self.tokens}; expected {expected}")
        return self


WORD_PASSAGES = PassageConfig(tokens=0)
"""Passages by words alone, which a model may truncate: those of collections that were created without a limit of tokens."""


class CollectionConfig(BaseModel):
    """Everything that determines the content of the segments. The configuration of each lens is an extra field.

    `model` is the name or path of a model folder; "" if the collection was created with an encoder object. `model_fingerprint`
    ties the vectors to the weights that computed them.
    """

    model_config = ConfigDict(frozen=True, extra="allow", protected_namespaces=(), populate_by_name=True)

    lenses: Annotated[tuple[str, ...], BeforeValidator(list_of_names)] = DEFAULT_LENSES
    model: str = DEFAULT_MODEL
    model_fingerprint: str = ""
    term_weighting: TermWeighting = Field(default=TermWeighting(), validation_alias="weighing", serialization_alias="weighing")
    passages: PassageConfig = PassageConfig()

    @field_validator("lenses")
    @classmethod
    def _known_lenses(cls, lenses: tuple[str, ...]) -> tuple[str, ...]:
        known = lens_types()
        if not lenses or len(set(lenses)) != len(lenses) or not set(lenses) <= set(known):
            raise ValueError(f"lenses are {', '.join(lenses) or 'none'}; expected one or more of {', '.join(known)}, each once")
        return lenses

    @model_validator(mode="after")
    def _lens_configs(self) -> "CollectionConfig":
        """Validate the extra fields: one for each configuration key of the lenses, by default with its default values."""
        used = {lens_type(name).config_key: lens_type(name).config for name in self.lenses}
        extra = self.__pydantic_extra__
        assert extra is not None  # extra fields are allowed
        for key in extra:
            if key not in used:
                names = [known.name for known in lens_types().values() if known.config_key == key]
                if not names:
                    known_names = [*(name for name in CollectionConfig.model_fields if name not in FROM_MODEL), *used]
                    raise ValueError(f"option {key!r} is not known; expected one of {', '.join(known_names)}")
                raise ValueError(f"option {key!r} configures {' or '.join(names)}, but the lenses are {', '.join(self.lenses)}")
        for key, config in used.items():
            try:
                extra[key] = config.model_validate(extra.get(key, {}))
            except BadInput as error:
                raise ValueError(nested_error(key, error)) from error
        return self

    @model_validator(mode="after")
    def _vectors_stand_alone(self) -> "CollectionConfig":
        vectors = [name for name in self.lenses if lens_type(name).reads == "vector"]
        if vectors and (len(self.lenses) > 1 or self.passages.words):
            raise ValueError(
                f"lenses are {', '.join(self.lenses)} with passages of {self.passages.words} words; the documents of lens "
                f"{vectors[0]} are vectors, not texts: expected it alone, with passages of 0 words"
            )
        return self

    @property
    def heads(self) -> tuple[Head, ...]:
        """The model heads that the lenses need; none if no lens uses the model."""
        return needed_heads(self.lenses)

    def of_lens(self, name: str) -> BaseModel:
        """The configuration of a lens; that of a lens which is not in the collection has default values."""
        known = lens_type(name)
        config: BaseModel | None = (self.__pydantic_extra__ or {}).get(known.config_key)
        return known.config() if config is None else config

    @staticmethod
    def of(**options: Any) -> "CollectionConfig":
        """A validated configuration; errors are one line."""
        try:
            return CollectionConfig(**options)
        except ValidationError as error:
            raise BadInput(first_error(error)) from error

    def with_model(self, encoder: HeadsEncoder | None) -> "CollectionConfig":
        """The configuration tied to its model, which must have the heads that the lenses need, if they need any."""
        if not self.heads:
            return self.model_copy(update={"passages": self.passages.within(0)})
        folder = None if encoder else ModelFolder.open(resolve_model(self.model))
        heads: list[Head] = list(encoder.heads if encoder else folder.config.heads if folder else ())
        model = encoder.fingerprint if encoder else self.model
        served = default_lenses(heads)
        if "lenses" not in self.model_fields_set and self.lenses != served and needed_heads(served):
            given = {name: getattr(self, name) for name in self.model_fields_set}
            return CollectionConfig.of(**given, lenses=served).with_model(encoder)
        if missing := [head for head in self.heads if head not in heads]:
            raise BadInput(
                f"model {model} has the heads {', '.join(heads)}; the lenses {', '.join(self.lenses)} need "
                f"{', '.join(missing)} as well: choose another model, or leave a lens out"
            )
        weighting = folder.config.term_weighting if folder else getattr(encoder, "term_weighting", TermWeighting())
        if self.term_weighting not in (TermWeighting(), weighting):
            raise BadInput(
                f"weighing is {self.term_weighting.model_dump(by_alias=True, exclude_defaults=True)}; expected none: "
                f"a collection uses the term weighting of its model ({CONFIG_FILE} of {self.model})"
            )
        name = self.model if self.model in bundled_models() else str(folder.path.resolve()) if folder else ""
        fingerprint = encoder.fingerprint if encoder else folder.fingerprint if folder else ""
        limited = encoder.max_doc_tokens if isinstance(encoder, LengthReader) else folder.config.max_doc_tokens if folder else 0
        return self.model_copy(
            update={
                "model": "" if encoder else name,
                "model_fingerprint": fingerprint,
                "term_weighting": weighting,
                "passages": self.passages.within(limited),
            }
        )

    def require_same(self, path: Path, options: Mapping[str, Any]) -> None:
        """Refuse options other than those that the collection at this path was created with."""
        wanted = CollectionConfig.of(**{"lenses": self.lenses, **options}).model_dump(mode="json", exclude_unset=True)
        made_with = self.model_dump(mode="json")
        for name, value in wanted.items():
            if not _agrees(made_with.get(name), value):
                raise BadInput(
                    f"{path} was created with {name} {made_with.get(name)}, not {value}; leave the option out, or index into a "
                    "new folder"
                )

    def to_stored(self) -> str:
        """The configuration as catalogs store it."""
        stored = self.model_dump(mode="json", by_alias=True)
        if stored["passages"]["tokens"] == 0:  # as earlier versions wrote it
            del stored["passages"]["tokens"]
        return json.dumps(stored | {"lenses": [lens_type(name).stored_as for name in self.lenses]})

    @staticmethod
    def from_stored(text: str) -> "CollectionConfig":
        """The configuration in a catalog. Catalogs may also hold the configuration of lenses that are not in the collection."""
        stored = json.loads(text)
        if not isinstance(stored, dict) or not isinstance(stored.get("lenses"), list):
            raise BadInput("it has no list of lenses; expected an object with one")
        names = stored_names()
        if unknown := [name for name in stored["lenses"] if name not in names]:
            raise UnknownFormat(f"the collection has the lens {unknown[0]!r}, which is not installed; install its plug-in")
        lenses = tuple(names[name] for name in stored["lenses"])
        used = {lens_type(name).config_key for name in lenses}
        unused = {known.config_key for known in lens_types().values()} - used
        fields = {key: value for key, value in stored.items() if key not in unused} | {"lenses": lenses}
        if isinstance(passages := fields.setdefault("passages", {}), dict):
            fields["passages"] = {"tokens": 0} | passages
        try:
            return CollectionConfig(**fields)
        except ValidationError as error:
            raise BadInput(first_error(error)) from error


def default_lenses(heads: Sequence[Head]) -> tuple[str, ...]:
    """The lenses of a new collection whose model has these heads."""
    return tuple(name for name in DEFAULT_LENSES if set(lens_type(name).heads) <= set(heads))


def _agrees(made_with: Any, wanted: Any) -> bool:
    """Whether a stored option has the wanted value; only the given fields of an object are compared."""
    if isinstance(wanted, Mapping):
        return isinstance(made_with, Mapping) and all(_agrees(made_with.get(name), value) for name, value in wanted.items())
    if isinstance(wanted, str) and is_hub_id(wanted):
        return isinstance(made_with, str) and is_from(Path(made_with), wanted)
    if isinstance(wanted, str) and Path(wanted).is_dir():
        return bool(made_with == str(Path(wanted).resolve()))
    return bool(made_with == wanted)

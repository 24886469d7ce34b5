"""`SearchOptions`: one search request, the same for Python, the command line, HTTP, explanations and evaluation."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, BeforeValidator, Field, InstanceOf, PlainSerializer, WithJsonSchema, field_validator

from trilens.encode.folder import CONFIG_FILE
from trilens.errors import BadInput, BadModel, BadOptions, nested_error
from trilens.frozen import Frozen
from trilens.lenses.feedback import Expansion, parse_expansion
from trilens.lenses.registry import lens_type, lens_types, lenses_with, list_of_names
from trilens.search.fusion import Fusion
from trilens.search.fusion_presets import choose_lenses, fit_preset, parse_fusion
from trilens.search.hyde import Hyde
from trilens.search.rerank import Rerank
from trilens.store.filters import to_sql

MOST_HITS = 1_000_000


def _read_filter(filter: Any) -> Any:
    if filter is not None:
        to_sql(filter)
    return filter or None


def _read_fusion(fusion: Any) -> Any:
    return fusion if fusion is None or isinstance(fusion, Fusion) else parse_fusion(fusion)


def _read_rerank(rerank: Any) -> Any:
    if rerank is None or isinstance(rerank, Rerank):
        return rerank
    settings = rerank
    if isinstance(rerank, str):
        by, colon, text = (part.strip() for part in rerank.partition(":"))
        settings = {"by": by or rerank, **(parse_settings(rerank, text, "BY:NAME=VALUE,…") if colon else {})}
    if not isinstance(settings, Mapping) or not settings.get("by"):
        raise ValueError(
            f"is {rerank!r}; expected a lens or cross, with settings such as cross:depth=50, or an object with `by`"
        )
    try:
        return Rerank(**settings)
    except BadInput as error:
        raise BadOptions(nested_error("rerank", error)) from error


def _read_expand(expand: Any) -> Any:
    if expand is None or isinstance(expand, Expansion):
        return expand
    settings = parse_expansion(expand)
    if not isinstance(settings, Mapping):
        raise ValueError(f'is {expand!r}; expected "on", or settings such as "docs=10,terms=20"')
    try:
        return Expansion(**settings)
    except BadInput as error:
        raise BadOptions(nested_error("expand", error)) from error


def _read_hyde(hyde: Any) -> Any:
    if hyde is None or isinstance(hyde, Hyde):
        return hyde
    settings = {"url": hyde} if isinstance(hyde, str) else hyde
    if not isinstance(settings, Mapping):
        raise ValueError(f"is {hyde!r}; expected the address of a language model, or an object with its url and model")
    try:
        return Hyde(**settings)
    except BadInput as error:
        raise BadOptions(nested_error("hyde", error)) from error


def _read_count(count: Any) -> Any:
    return int(count) if isinstance(count, np.integer) else count


def _read_params(params: Any) -> Any:
    if not isinstance(params, Mapping):
        raise ValueError(f"is {params!r}; expected an object of lenses and their search parameters")
    return {name: params_of(name, given) for name, given in params.items()}


def params_of(name: str, given: Any) -> BaseModel:
    """The search parameters of a lens from an object or from another model with the same fields."""
    if name not in lens_types():
        raise BadOptions(f"params has {name!r}, which is no lens; expected one of {', '.join(lens_types())}")
    kind = lens_type(name).params
    if isinstance(given, BaseModel) and type(given) is not kind:
        given = given.model_dump(exclude_unset=True)
    if not isinstance(given, kind | Mapping):
        raise BadOptions(f"params.{name} is {given!r}; expected an object of search parameters")
    if isinstance(given, Mapping) and given and not kind.model_fields:
        raise BadOptions(f"params.{name} has {next(iter(given))!r}; lens {name} has no search parameters: leave it out")
    try:
        return kind.model_validate(given)
    except BadInput as error:
        raise BadOptions(nested_error(f"params.{name}", error)) from error


class _ParamsSchema:
    """The JSON schema of `params`, made when it is asked for: it has the parameters of every installed lens."""

    def __get_pydantic_json_schema__(self, _core_schema: Any, _handler: Any) -> dict[str, Any]:
        kinds = {name: known.params for name, known in lens_types().items() if known.params.model_fields}
        properties = {name: kind.model_json_schema() for name, kind in kinds.items()}
        return {"type": "object", "properties": properties, "additionalProperties": False, "default": {}}


TEXT = {"type": "string"}
FusionOption = Annotated[
    InstanceOf[Fusion] | None,
    BeforeValidator(_read_fusion),
    PlainSerializer(lambda fusion: fusion and str(fusion)),
    WithJsonSchema({"anyOf": [TEXT, {"type": "object"}, {"type": "null"}], "default": None}),
]
RerankOption = Annotated[
    Rerank | None,
    BeforeValidator(_read_rerank),
    WithJsonSchema({"anyOf": [TEXT, Rerank.model_json_schema(), {"type": "null"}], "default": None}),
]
ExpandOption = Annotated[Expansion | None, BeforeValidator(_read_expand)]
HydeOption = Annotated[Hyde | None, BeforeValidator(_read_hyde)]
ParamsOption = Annotated[
    dict[str, Any],
    BeforeValidator(_read_params),
    PlainSerializer(lambda params: {name: model.model_dump(exclude_defaults=True) for name, model in params.items()}),
    _ParamsSchema(),
]


class SearchOptions(Frozen):
    """How queries are answered.

    k        number of documents
    offset   number of documents to leave out before them: k=10 with offset=20 is the third page
    lenses   lenses to search (None: those that the fusion weights, else all of the collection); several are fused
    filter   metadata filter, such as {"year": {"$gte": 2020}, "lang": "en"}
    exact    disable every approximation, even where that is slower
    rerank   orders the candidates again: a lens by its own exact score, or `cross` by a cross-encoder, such as
             "cross:depth=50,model=models/cross" (see `Rerank`); `sparse` can also re-rank a collection of `tokens`, whose
             candidates are encoded at query time
    params   search parameters by lens, such as {"multi": {"probes": 64}}
    fusion   how several lenses are fused, such as "zscore:bm25=1,dense=2" or "all" (None: as tuned for these lenses, else
             that of the model for them, else rrf); only its depth applies if all candidates are re-ranked
    expand   pseudo-relevance feedback: "on", or settings such as "docs=10,terms=20"
    hyde     the address of a language model that writes a passage to search for (HyDE, query2doc)
    details  add to each hit a snippet with its matches, and how strongly each lens finds that it matches
    """

    k: Annotated[int, Field(strict=True, ge=1, le=MOST_HITS), BeforeValidator(_read_count)] = 10
    offset: Annotated[int, Field(strict=True, ge=0, le=MOST_HITS), BeforeValidator(_read_count)] = 0
    lenses: Annotated[Sequence[str] | None, BeforeValidator(list_of_names)] = None
    filter: Annotated[dict[str, Any] | None, BeforeValidator(_read_filter)] = None
    exact: Annotated[bool, Field(strict=True)] = False
    rerank: RerankOption = None
    params: ParamsOption = Field(default_factory=dict)
    fusion: FusionOption = None
    expand: ExpandOption = None
    hyde: HydeOption = None
    details: Annotated[bool, Field(strict=True)] = False

    def __init__(self, **options: Any) -> None:
        """Read the options: fusion, expand and hyde may be text, params plain objects."""
        super().__init__(**options)

    @field_validator("lenses")
    @classmethod
    def _each_once(cls, names: Sequence[str] | None) -> Sequence[str] | None:
        if names is not None and (not names or len(set(names)) != len(names)):
            raise ValueError(f"lenses are {', '.join(names) or 'none'}; expected one or more, each once")
        return None if names is None else tuple(names)

    def updated(self, **changes: Any) -> "SearchOptions":
        """A copy with some options changed."""
        given = {name: getattr(self, name) for name in self.model_fields_set}
        return SearchOptions(**given | changes)

    @property
    def last_rank(self) -> int:
        """The rank of the last document: documents up to it are ranked, those before the offset are left out."""
        return self.offset + self.k

    @property
    def depth(self) -> int:
        """Number of documents that each of several lenses returns."""
        reranked = (self.rerank.most if self.rerank else None) or 0
        return max(self.last_rank, (self.fusion or Fusion()).depth, reranked)

    @property
    def used_lenses(self) -> list[str]:
        """The lenses that take part, with the re-ranking one."""
        return list(dict.fromkeys([*(self.lenses or ()), *(self.rerank.lenses if self.rerank else ())]))

    @property
    def fuses(self) -> bool:
        """Whether several lenses are fused, to answer or to choose what is re-ranked."""
        return len(self.lenses or ()) > 1 and (self.rerank is None or self.rerank.needs_order)

    def resolve(
        self, present: Sequence[str], tuned: Mapping[str, Any], of_model: Callable[[], Mapping[str, str]] = dict
    ) -> "SearchOptions":
        """The options with lenses and fusion filled in for a collection that has these lenses, tuned fusions and model.

        `of_model` returns the default fusions of the model; it is called only if they matter. Options that do not apply to the
        resulting search are refused.
        """
        fusion = fit_preset(self.fusion, present) if self.fusion else None
        lenses = tuple(self.lenses or choose_lenses(fusion, present))
        resolved = self.model_copy(update={"lenses": lenses})
        if fusion is None and resolved.fuses:
            record = tuned.get(fused_name(lenses))
            fusion = parse_fusion(record["fusion"]) if record else _of_model(of_model(), lenses)
        resolved = resolved.model_copy(update={"fusion": fusion or Fusion()})
        resolved._require_applicable(fusion)
        return resolved

    def _require_applicable(self, fusion: Fusion | None) -> None:
        lenses, reranking = self.lenses or (), self.rerank.lenses if self.rerank else ()
        searched = f"the lenses searched are {', '.join(lenses)}"
        if unused := [name for name in self.params if name not in self.used_lenses]:
            raise BadInput(f"params are given for {unused[0]}, but {searched}; leave them out, or search that lens as well")
        if fusion and self.rerank and not self.fuses and fusion != Fusion(depth=fusion.depth):
            raise BadInput(
                f"fusion is {fusion}, but {self.rerank.by} re-ranks the candidates; expected only a depth, such as "
                "rrf:depth=200"
            )
        if fusion and len(lenses) == 1 and not self.rerank and fusion != Fusion():
            raise BadInput(f"fusion is {fusion}, but {searched}; leave it out, or search more lenses")
        if len(lenses) > 1 and fusion:
            fusion.require_lenses(lenses)
        for name in reranking:
            if name in self.params and name not in lenses and not lens_type(name).score_params:
                raise BadInput(f"params are given for {name}, which re-ranks by exact scores; leave them out")
        expandable = self.hyde.applies_to(lens_types()) if self.hyde else []
        for option, able, used in (
            ("expand", lenses_with("expansion"), lenses),
            ("hyde", expandable, self.used_lenses),
        ):
            if getattr(self, option) and not set(used) & set(able):
                raise BadInput(
                    f"{option} is given, but {searched}; it applies to {', '.join(able)}: search one of them as well"
                )


def _of_model(fusions: Mapping[str, str], lenses: Sequence[str]) -> Fusion | None:
    """The default fusion of a model for these lenses."""
    text = fusions.get(fused_name(lenses))
    if text is None:
        return None
    try:
        fusion = parse_fusion(text)
        fusion.require_lenses(lenses)
    except BadInput as error:
        raise BadModel(f"the model has a bad fusion for {fused_name(lenses)}: {error}; correct it in {CONFIG_FILE}") from error
    return fusion


def read_options(options: SearchOptions | None, k: int | None, settings: Mapping[str, Any]) -> SearchOptions:
    """The options with some fields given beside them, which override theirs."""
    if options is not None and not isinstance(options, SearchOptions):
        raise BadInput(f"options is {type(options).__name__}; expected SearchOptions: pass its fields as keyword arguments")
    changes = settings if k is None else {"k": k, **settings}
    return options.updated(**changes) if options else SearchOptions(**changes)


def fused_name(lenses: Iterable[str]) -> str:
    """The key of a fusion of a collection or a model: the lenses that it is for, in any order."""
    return "+".join(sorted(lenses))


def parse_params(text: str) -> dict[str, Any]:
    """Search parameters from text: `LENS:NAME=VALUE,NAME=VALUE`, or a JSON object by lens."""
    if text.lstrip().startswith("{"):
        try:
            params: dict[str, Any] = json.loads(text)
        except json.JSONDecodeError as error:
            raise BadInput(f"params are {text!r}, which is not JSON ({error}); expected an object by lens") from error
        return params
    lens, colon, settings = (part.strip() for part in text.partition(":"))
    if not lens or not colon:
        raise BadInput(f"params are {text!r}; expected LENS:NAME=VALUE,NAME=VALUE, or a JSON object by lens")
    return {lens: parse_settings(text, settings)}


def parse_settings(text: str, settings: str, form: str = "LENS:NAME=VALUE,NAME=VALUE") -> dict[str, Any]:
    """`NAME=VALUE,NAME=VALUE` as an object: values are read as JSON if possible, `A.B=C` nests.

    `text` is quoted in errors, with the expected `form`.
    """
    values: dict[str, Any] = {}
    for piece in settings.split(","):
        name, equals, value = (part.strip() for part in piece.partition("="))
        *outer, last = name.split(".")
        target: Any = values
        for key in outer:
            target = target.setdefault(key, {}) if isinstance(target, dict) else None
        if not name or not equals or not value or not isinstance(target, dict) or last in target:
            raise BadInput(f"{text!r} has {piece.strip()!r}; expected {form}, each name once")
        try:
            target[last] = json.loads(value)
        except json.JSONDecodeError:
            target[last] = value
    return values

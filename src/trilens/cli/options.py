"""Arguments and options that commands share, including the search options."""

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from trilens.encode.folder import Head
from trilens.errors import BadInput
from trilens.lenses.registry import lens_types
from trilens.search.fusion import POLICIES
from trilens.search.fusion_presets import PRESETS
from trilens.search.options import SearchOptions, parse_params
from trilens.store.config import DEFAULT_LENSES
from trilens.store.filters import parse_filter

CollectionPath = Annotated[Path, typer.Argument(metavar="COLLECTION", help="Folder of the collection.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]
Threads = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Number of encoder threads.", show_default="all cores"),
]
Verify = Annotated[bool, typer.Option("--verify", help="Verify all checksums of the collection first.")]
Lens = Annotated[
    str | None,
    typer.Option("--lens", metavar="NAME[,NAME]", help="Comma-separated lenses.", show_default="all"),
]
LensToMake = Annotated[
    str | None,
    typer.Option(
        "--lens",
        metavar="NAME[,NAME]",
        help="Lenses, separated by commas; an unknown name lists all.",
        show_default=",".join(DEFAULT_LENSES),
    ),
]
JUDGED_QUERIES = "Judged queries: a dataset folder, beir/NAME or irds/ID."
JudgedQueries = Annotated[str, typer.Argument(metavar="DATASET", help=JUDGED_QUERIES, show_default=False)]
Model = Annotated[
    str | None,
    typer.Option(metavar="MODEL", help="Name of a bundled or cached model, a model folder, or a hub id.", show_default=False),
]
Language = Annotated[
    str | None,
    typer.Option(metavar="LANGUAGE", help="Language of stemming and stop words, or none.", show_default="english"),
]
To = Annotated[
    Path,
    typer.Option(
        "--to", metavar="COLLECTION", help="Folder of the collection; created if it does not exist.", show_default=False
    ),
]
LensConfig = Annotated[
    list[str] | None,
    typer.Option(
        "--config",
        metavar="LENS:NAME=VALUE,…",
        help="Configuration of a lens, such as bm25:k1=1.2,b=0.75 or multi:bits=2,pool=2. Can be repeated.",
        show_default=False,
    ),
]
PassageWords = Annotated[
    int | None, typer.Option(metavar="N", help="Maximum of words per passage; 0 disables splitting.", show_default="150")
]
OverlapWords = Annotated[
    int | None, typer.Option(metavar="N", help="Overlap of adjacent passages, in words.", show_default="30")
]

_SEARCH_OPTIONS: dict[str, tuple[Any, Any]] = {
    "lens": (Lens, None),
    "k": (Annotated[int, typer.Option("-k", metavar="N", help="Number of documents.")], 10),
    "offset": (
        Annotated[int, typer.Option("--offset", metavar="N", help="Number of documents to leave out before them.")],
        0,
    ),
    "filter": (
        Annotated[
            str | None,
            typer.Option("--filter", metavar="JSON", help="Metadata filter.", show_default=False),
        ],
        None,
    ),
    "rerank": (
        Annotated[
            str | None,
            typer.Option(
                "--rerank",
                metavar="TEXT",
                help="Re-rank the candidates: a lens, or cross for a cross-encoder; with settings such as "
                "cross:depth=50,first=0.5 (number of documents, weight of the first stage).",
                show_default=False,
            ),
        ],
        None,
    ),
    "cross_encoder": (
        Annotated[
            str | None,
            typer.Option(
                "--cross-encoder",
                metavar="MODEL",
                help="Cross-encoder of --rerank cross: a model folder, the name of a cached one, or a hub id.",
                show_default=False,
            ),
        ],
        None,
    ),
    "fusion": (
        Annotated[
            str | None,
            typer.Option(
                "--fusion",
                metavar="TEXT",
                help=f"Fusion of several lenses: a policy ({', '.join(POLICIES)}) with options and weights, such as "
                f"zscore:bm25=1,dense=2; a BGE-M3 preset ({', '.join(PRESETS)}); or none, for plain rrf.",
                show_default=False,
            ),
        ],
        None,
    ),
    "params": (
        Annotated[
            list[str] | None,
            typer.Option(
                "--params",
                metavar="LENS:NAME=VALUE,…",
                help="Search parameters of a lens, such as multi:method=xtr,probes=64. Can be repeated.",
                show_default=False,
            ),
        ],
        None,
    ),
    "expand": (
        Annotated[
            str | None,
            typer.Option(
                "--expand",
                metavar="TEXT",
                help="Pseudo-relevance feedback: on, or settings such as docs=10,terms=10,weight=0.5.",
                show_default=False,
            ),
        ],
        None,
    ),
    "hyde": (
        Annotated[
            str | None,
            typer.Option(
                "--hyde",
                metavar="URL",
                help="Query expansion (HyDE, query2doc): URL of an OpenAI-compatible API that writes a passage to search for, "
                "such as http://localhost:8080/v1, or local:PATH. The API key is read from TRILENS_LLM_KEY or OPENAI_API_KEY.",
                show_default=False,
            ),
        ],
        None,
    ),
    "hyde_model": (
        Annotated[
            str | None, typer.Option("--hyde-model", metavar="NAME", help="Model name for --hyde.", show_default="default")
        ],
        None,
    ),
    "hyde_lens": (
        Annotated[
            str | None,
            typer.Option("--hyde-lens", metavar="NAMES", help="Lenses that --hyde applies to.", show_default="all that can"),
        ],
        None,
    ),
    "exact": (Annotated[bool, typer.Option("--exact", help="Disable all approximations.")], False),
    "details": (
        Annotated[
            bool, typer.Option("--details/--no-details", help="Show snippets with their matches, and mark weak matches.")
        ],
        True,
    ),
}


def with_search_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the search options to a command, which receives them as its argument `options`."""
    signature = inspect.signature(command)

    def wrapped(**values: Any) -> None:
        search_values = {name: values.pop(name) for name in _SEARCH_OPTIONS}
        command(**values, options=_search_options(**search_values))

    parameters = [parameter for name, parameter in signature.parameters.items() if name != "options"]
    required = [parameter for parameter in parameters if parameter.default is inspect.Parameter.empty]
    optional = [parameter for parameter in parameters if parameter.default is not inspect.Parameter.empty]
    searching = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in _SEARCH_OPTIONS.items()
    ]
    own = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in optional]
    wrapped.__signature__ = signature.replace(parameters=[*required, *searching, *own])  # type: ignore[attr-defined]
    wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in [*required, *searching, *own]}
    wrapped.__doc__, wrapped.__name__, wrapped.__module__ = command.__doc__, command.__name__, command.__module__
    return wrapped


def _search_options(
    lens: str | None,
    filter: str | None,
    params: list[str] | None,
    hyde: str | None,
    hyde_model: str | None,
    rerank: str | None,
    cross_encoder: str | None,
    hyde_lens: str | None,
    **others: Any,
) -> SearchOptions:
    """The search options from command line values."""
    hyde_options = {"model": hyde_model, "lenses": comma_list("--hyde-lens", hyde_lens, "such as bm25,dense")}
    given = {name: value for name, value in hyde_options.items() if value is not None}
    if given and hyde is None:
        raise BadInput(f"--hyde-{'model' if 'model' in given else 'lens'} requires --hyde")
    return SearchOptions(
        rerank=with_cross_encoder(rerank, cross_encoder),
        lenses=lens_names(lens),
        filter=parse_filter(filter) if filter is not None else None,
        params=settings_by_lens(params),
        hyde=None if hyde is None else {"url": hyde} | given,
        **others,
    )


def with_cross_encoder(rerank: str | None, model: str | None) -> Any:
    """--rerank with the model of --cross-encoder."""
    if model is None:
        return rerank
    given = SearchOptions(rerank=rerank).rerank
    if given is None or not given.is_cross or given.model is not None:
        raise BadInput(
            f"--cross-encoder is {model!r}, and --rerank {rerank or 'is not given'}; expected --rerank cross with it"
        )
    return given.model_dump(exclude_unset=True) | {"model": model}


def settings_by_lens(texts: list[str] | None) -> dict[str, Any]:
    """The settings of each lens from `LENS:NAME=VALUE,…` options; several for one lens are joined."""
    by_lens: dict[str, Any] = {}
    for text in texts or []:
        for name, values in parse_params(text).items():
            known = by_lens.setdefault(name, {})
            if not isinstance(values, dict):
                raise BadInput(f"{text!r} gives {name} the settings {values!r}; expected an object")
            if repeated := known.keys() & values.keys():
                raise BadInput(f"{text!r} sets {min(repeated)} of {name} again; expected each setting once")
            known |= values
    return by_lens


def lens_names(text: str | None) -> list[str] | None:
    """Parse --lens, a comma-separated list."""
    return comma_list("--lens", text, "such as bm25,dense")


def comma_list(option: str, text: str | None, example: str = "without gaps") -> list[str] | None:
    """Parse a comma-separated list; `option` and `example` are used in the error message."""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise BadInput(f"{option} is {text!r}; expected names separated by commas, {example}")
    return names


def collection_options(
    lens: str | None,
    model: str | None,
    language: str | None,
    config: list[str] | None = None,
    present: Sequence[str] = DEFAULT_LENSES,
) -> dict[str, Any]:
    """The keyword arguments of `Collection.create`, without options that were not passed."""
    names = lens_names(lens)
    options = settings_by_lens(config)
    keys = {known.config_key for known in lens_types().values()}
    if unknown := [key for key in options if key not in keys]:
        raise BadInput(f"--config has {unknown[0]!r}; expected one of {', '.join(sorted(keys))}")
    if language is not None:
        analysing = [
            lens_types()[name]
            for name in names or present
            if name in lens_types() and "analysis" in lens_types()[name].config.model_fields
        ]
        if not analysing:
            raise BadInput(f"--language is {language}, but no lens of {', '.join(names or present)} uses it; leave it out")
        for known in analysing:
            config_of_lens = options.setdefault(known.config_key, {})
            config_of_lens["analysis"] = {**config_of_lens.get("analysis", {}), "language": language}
    common = {"lenses": names, "model": model}
    return options | {name: value for name, value in common.items() if value is not None}


def parse_heads(names: str | None) -> tuple[Head, ...]:
    """The heads of a list such as dense,lexical; none if the option is not given."""
    known = get_args(Head)
    heads = comma_list("--heads", names, "such as dense,lexical") or []
    if unknown := [head for head in heads if head not in known]:
        raise BadInput(f"--heads names {', '.join(unknown)}; expected some of {', '.join(known)}")
    return tuple(head for head in known if head in heads)

"""Arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated, Any

import typer

from trilens.errors import BadInput
from trilens.index import multi_params, sparse_params
from trilens.search.hyde import Hyde
from trilens.store.config import DEFAULT_LENSES

SPARSE_LENSES = ("sparse", "tokens", "lexical")

CollectionPath = Annotated[Path, typer.Argument(metavar="COLLECTION", help="Folder of the collection.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]
Threads = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Threads of the encoder.", show_default="all cores"),
]
Lens = Annotated[
    str | None,
    typer.Option("--lens", metavar="NAME[,NAME]", help="Lenses, separated by commas.", show_default="all"),
]
LensToMake = Annotated[
    str | None,
    typer.Option("--lens", metavar="NAME[,NAME]", help="Lenses, separated by commas.", show_default=",".join(DEFAULT_LENSES)),
]

FilterText = Annotated[
    str | None,
    typer.Option("--filter", metavar="JSON", help="Only documents whose metadata match.", show_default=False),
]

Rerank = Annotated[
    str | None,
    typer.Option("--rerank", metavar="LENS", help="Let this lens order what the others find.", show_default=False),
]

FusionText = Annotated[
    str | None,
    typer.Option(
        "--fusion",
        metavar="TEXT",
        help="How lenses are fused: rrf, weighted, minmax, zscore or convex with options and weights, such as "
        "zscore:bm25=1,dense=2; a recipe of BGE-M3: dense+sparse, dense+sparse-long, rerank-multi, all, "
        "all-long; none: forget what was tuned.",
        show_default=False,
    ),
]
Expand = Annotated[
    str | None,
    typer.Option(
        "--expand",
        metavar="TEXT",
        help="Add terms of the best passages to the query: on, or some of docs=10,terms=10,weight=0.5.",
        show_default=False,
    ),
]
HydeUrl = Annotated[
    str | None,
    typer.Option(
        "--hyde",
        metavar="URL",
        help="Let a language model write a passage to search for (dense): an OpenAI-compatible address, such as "
        "http://localhost:8080/v1. A key is read from TRILENS_HYDE_KEY or OPENAI_API_KEY.",
        show_default=False,
    ),
]
HydeModel = Annotated[str, typer.Option("--hyde-model", metavar="NAME", help="The model that writes it.")]
MultiSettings = Annotated[
    str | None,
    typer.Option("--multi", metavar="JSON", help="Settings of the multi lens for this search.", show_default=False),
]
SparseSettings = Annotated[
    str | None,
    typer.Option("--sparse", metavar="JSON", help="Settings of the sparse, tokens and lexical lenses.", show_default=False),
]


def lens_names(text: str | None) -> list[str] | None:
    """The lenses in a comma-separated list."""
    return comma_list("--lens", text, "such as bm25,dense")


def comma_list(option: str, text: str | None, example: str = "without gaps") -> list[str] | None:
    """The names in a comma-separated list."""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise BadInput(f"{option} is {text!r}; expected names separated by commas, {example}")
    return names


def lens_params(sparse: str | None, multi: str | None) -> dict[str, Any]:
    """The settings of lenses for one search, by lens."""
    params: dict[str, Any] = {}
    if multi is not None:
        params["multi"] = multi_params.parse_params(multi)
    if sparse is not None:
        params |= dict.fromkeys(SPARSE_LENSES, sparse_params.parse_params(sparse))
    return params


def hyde_of(url: str | None, model: str) -> Hyde | None:
    """Who writes passages, if anyone."""
    return Hyde(url, model) if url is not None else None

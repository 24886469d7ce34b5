"""The search command."""

import sys
from typing import Annotated, Any

import typer

from trilens.collection import Collection
from trilens.errors import BadInput
from trilens.serve.options import (
    CollectionPath,
    Expand,
    FilterText,
    FusionText,
    HydeModel,
    HydeUrl,
    Json,
    Lens,
    MultiSettings,
    Rerank,
    SparseSettings,
    Threads,
    hyde_of,
    lens_names,
    lens_params,
)
from trilens.serve.render import hit_to_json, out, print_hits, print_json
from trilens.store.filters import parse_filter


def search(
    path: CollectionPath,
    query: Annotated[
        str, typer.Argument(help="The query, or - to read one query a line from standard input.", show_default=False)
    ],
    lens: Lens = None,
    k: Annotated[int, typer.Option("-k", metavar="N", help="How many documents.")] = 10,
    filter: FilterText = None,
    rerank: Rerank = None,
    fusion: FusionText = None,
    expand: Expand = None,
    hyde: HydeUrl = None,
    hyde_model: HydeModel = "default",
    sparse: SparseSettings = None,
    multi: MultiSettings = None,
    exact: Annotated[bool, typer.Option("--exact", help="No approximation anywhere, even where it is slower.")] = False,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Find the documents that answer a query best.

    One lens ranks by its own score. Several are fused: by --fusion, else as `trilens tune --save` found best for them, else by
    reciprocal rank. With several queries, --json prints one line each.

    Examples:

      trilens search my.trilens "how do I undo a commit"

      trilens search my.trilens "invoice 2024-117" --lens bm25 -k 3

      trilens search my.trilens "heat transfer" --filter '{"year": {"$gte": 2020}, "lang": "en"}'

      trilens search my.trilens "heat transfer" --lens bm25 --rerank multi

      trilens search my.trilens "heat transfer" --fusion zscore:bm25=1,dense=2

      trilens search my.trilens "heat transfer" --fusion convex:alpha=0.7 --lens bm25,dense

      trilens search my.trilens "heat transfer" --fusion all

      trilens search my.trilens "heat transfer" --lens bm25 --expand docs=5,terms=20

      trilens search my.trilens "heat transfer" --lens dense --hyde http://localhost:8080/v1 --hyde-model tiny

      trilens search my.trilens "heat transfer" --lens tokens --rerank sparse

      trilens search my.trilens "heat transfer" --lens sparse --sparse '{"query": "bag"}'

      trilens search my.trilens "heat transfer" --lens multi --multi '{"method": "xtr", "probes": 64}'
    """
    queries = [line.strip() for line in sys.stdin if line.strip()] if query == "-" else [query]
    if not queries:
        raise BadInput("standard input holds no query; expected one a line")
    where: dict[str, Any] | None = parse_filter(filter) if filter is not None else None
    with Collection.open(path, threads=threads) as collection:
        params = lens_params(sparse, multi)
        names = lens_names(lens)
        answers = collection.search(
            queries,
            k,
            lenses=names,
            where=where,
            exact=exact,
            rerank=rerank,
            params=params,
            fusion=fusion,
            expand=expand,
            hyde=hyde_of(hyde, hyde_model),
        )
    console = out()
    for text, hits in zip(queries, answers, strict=True):
        if json:
            print_json({"query": text, "hits": [hit_to_json(hit) for hit in hits]})
            continue
        if len(queries) > 1:
            console.rule(text)
        print_hits(hits, console)

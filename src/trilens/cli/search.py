"""The command `search`."""

import sys
from typing import Annotated

import typer

from trilens.cli.hits import print_hits
from trilens.cli.options import CollectionPath, Json, Threads, Verify, with_search_options
from trilens.cli.render import out, print_json
from trilens.collection import Collection
from trilens.errors import BadInput
from trilens.search.hits import HITS
from trilens.search.options import SearchOptions


@with_search_options
def search(
    path: CollectionPath,
    query: Annotated[
        str,
        typer.Argument(
            metavar="QUERY", help="The query, or - to read one query per line from standard input.", show_default=False
        ),
    ],
    options: SearchOptions,
    threads: Threads = None,
    verify: Verify = False,
    json: Json = False,
) -> None:
    """Search a collection.

    A single lens ranks by its score. Several lenses are fused by --fusion, else as `trilens tune --save` stored for them, else
    as the model says, else by reciprocal rank fusion. With --json, each query prints one line.

    Examples:

      trilens search my.trilens "how do I undo a commit"

      trilens search my.trilens "invoice 2024-117" --lens bm25 -k 3

      trilens search my.trilens "heat transfer" --filter '{"year": {"$gte": 2020}, "lang": "en"}'

      trilens search my.trilens "heat transfer" --lens bm25 --rerank multi

      trilens search my.trilens "heat transfer" --fusion zscore:bm25=1,dense=2

      trilens search my.trilens "heat transfer" --fusion all

      trilens search my.trilens "heat transfer" --lens bm25 --expand docs=5,terms=20

      trilens search my.trilens "heat transfer" --lens dense --hyde http://localhost:8080/v1 --hyde-model tiny

      trilens search my.trilens "heat transfer" --lens tokens --rerank sparse

      trilens search my.trilens "heat transfer" --lens sparse --params sparse:query=bag

      trilens search my.trilens "heat transfer" --lens multi --params multi:method=xtr,probes=64
    """
    queries = [line.strip() for line in sys.stdin if line.strip()] if query == "-" else [query]
    if not queries:
        raise BadInput("standard input contains no query; expected one per line")
    with Collection.open(path, threads=threads, verify=verify) as collection:
        answers = collection.search(queries, options=options)
        for line in collection.snapshot.mistyped(options.filter) if options.filter else ():
            sys.stderr.write(f"note: {line}\n")
    console = out()
    for text, hits in zip(queries, answers, strict=True):
        if json:
            print_json({"query": text, "hits": HITS.dump_python(hits, mode="json")})
            continue
        if len(queries) > 1:
            console.rule(text)
        print_hits(hits, console, options.offset)

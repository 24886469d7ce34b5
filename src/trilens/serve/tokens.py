"""Commands that look into the multi lens: align and analyse."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from trilens.collection import Collection
from trilens.errors import BadInput
from trilens.evaluate.token_retrieval import analyse
from trilens.explain.alignment import Alignment
from trilens.index.multi_params import parse_params
from trilens.serve.judged_corpus import opened
from trilens.serve.options import CollectionPath, Json, MultiSettings, Threads
from trilens.serve.progress import counting
from trilens.serve.render import out, print_json, printable
from trilens.text.dataset import judged_queries


def align_command(
    path: CollectionPath,
    query: Annotated[str, typer.Argument(help="The query.", show_default=False)],
    doc_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the document.", show_default=False)],
    multi: MultiSettings = None,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Show which token of a document each query token was matched with: the parts of its score in the multi lens.

    Examples:

      trilens align my.trilens "undo a commit" guide/reset.md

      trilens align my.trilens "undo a commit" guide/reset.md --multi '{"method": "xtr", "candidates": 0}' --json
    """
    params = parse_params(multi) if multi is not None else None
    with Collection.open(path, threads=threads) as collection:
        found = collection.align(query, doc_id, params)
    if found is None:
        raise BadInput(f"document {doc_id!r} or the query has no token that counts; expected some words")
    if json:
        print_json(_to_json(query, doc_id, found))
    else:
        _print(found)


def analyse_command(
    path: CollectionPath,
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="Queries and judgements: a folder, or beir/NAME.", show_default=False)
    ],
    split: Annotated[str, typer.Option(help="Which judged queries.")] = "test",
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Tell what tokens the multi lens retrieves for judged queries, and what scoring them costs (the analyses of XTR).

    Example:

      trilens analyse runs/scifact/multi.trilens data/scifact
    """
    dataset = opened(data)
    queries, qrels = judged_queries(dataset, split)
    with (
        Collection.open(path, threads=threads) as collection,
        counting("analysing", len(queries), "queries") as advance,
    ):
        results = [asdict(result) for result in analyse(collection, queries, qrels, report=advance)]
    if json:
        print_json({"dataset": dataset.name, "results": results})
        return
    table = Table(title=f"{dataset.name}, {split}: tokens that a query token retrieves", title_justify="left")
    for name in results[0]:
        table.add_column(name.replace("_", " "), justify="right")
    for row in results:
        table.add_row(*(f"{value:,.3g}" if isinstance(value, float) else f"{value:,}" for value in row.values()))
    out().print(table)


def _to_json(query: str, doc_id: str, found: Alignment) -> dict[str, Any]:
    return {
        "query": query,
        "doc_id": doc_id,
        "score": found.score,
        "parts": [
            {
                "query_token": token,
                "doc_token": None if winner < 0 else found.doc_tokens[winner],
                "place": winner,
                "query_weight": weight,
                "score": part,
            }
            for token, winner, weight, part in _parts(found)
        ],
        "query_tokens": found.query_tokens,
        "doc_tokens": found.doc_tokens,
        "similarities": found.similarities.round(4).tolist(),
    }


def _print(found: Alignment) -> None:
    table = Table("query token", "document token", show_footer=True)
    table.add_column("weight", justify="right")
    table.add_column("score", justify="right", footer=f"{found.score:.4f}")
    for token, winner, weight, part in _parts(found):
        matched = Text("imputed", style="dim") if winner < 0 else Text(printable(found.doc_tokens[winner]))
        table.add_row(Text(printable(token)), matched, f"{weight:.2f}", f"{part:.4f}")
    out().print(table)


def _parts(found: Alignment) -> Iterator[tuple[str, int, float, float]]:
    """Each token of the query, the place of the document's token that it was matched with, its weight and what it gives."""
    return zip(found.query_tokens, found.winners.tolist(), found.weights.tolist(), found.parts.tolist(), strict=True)

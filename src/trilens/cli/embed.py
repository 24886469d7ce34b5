"""The command `embed`: queries as vectors, for the engines that `send` writes to."""

from typing import Annotated, Any

import numpy as np
import typer

from trilens.cli.options import CollectionPath, Lens, Threads, lens_names
from trilens.cli.render import print_json
from trilens.collection import Collection
from trilens.represent import Dense, Multi, Representation, Sparse
from trilens.send.queries import encode_queries


def embed(
    path: CollectionPath,
    queries: Annotated[list[str], typer.Argument(metavar="QUERY…", help="The queries.", show_default=False)],
    lens: Lens = None,
    threads: Threads = None,
) -> None:
    """Print queries as vectors, for engines that hold the collection's documents (`trilens send`).

    One line of JSON for each query, with its vector by lens. Inner products with the vectors that are sent, or their MaxSim,
    are the scores of `trilens search`.

    Examples:

      trilens embed my.trilens "moving water"

      trilens embed my.trilens "moving water" "heat transfer" --lens dense
    """
    with Collection.open(path, threads=threads) as collection:
        vectors = encode_queries(collection, queries, lens_names(lens))
    for number, query in enumerate(queries):
        own = {lens: _plain(vector.take(np.array([number]))) for lens, vector in vectors.items()}
        print_json({"query": query, **own})


def _plain(vector: Representation) -> Any:
    match vector:
        case Dense():
            return vector.vectors[0].tolist()
        case Sparse():
            return {"terms": vector.terms.tolist(), "weights": vector.weights.tolist()}
        case Multi():
            return vector.vectors.tolist()

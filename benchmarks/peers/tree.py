"""A source tree of trilens as a contender: times searches of a collection on request.

    PYTHONPATH=TREE/src python -m benchmarks.peers.tree COLLECTION QUERIES.json

Each line on standard input is a request {"kind": "searcher" or "search", "lenses": [...]}; the response is a JSON line with
the milliseconds per query and the results. Times are processor time: what other processes do meanwhile is not in it. Passes
over the queries are repeated for SECONDS and the fastest counts. Only interfaces that old and new trees share are used.
Nothing else of the benchmarks is imported, because it may not work with the API of the tree.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import trilens
from trilens.collection import Collection

K = 10
SECONDS = 0.5


def main() -> None:
    """Open the collection, then answer requests until standard input ends."""
    queries = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    with Collection.open(sys.argv[1], threads=1) as collection:
        encoded: dict[str, list[Any]] = {}
        _respond({"source": trilens.__file__})
        for line in sys.stdin:
            request = json.loads(line)
            lenses = request["lenses"]
            if request["kind"] == "search":
                _respond(time_search(collection, lenses, queries))
            else:
                lens = lenses[0]
                if lens not in encoded:
                    encoded[lens] = [collection._lenses.encode_queries([lens], [query], {})[lens] for query in queries]
                _respond(time_searcher(collection, lens, encoded[lens]))


def time_search(collection: Collection, lenses: list[str], queries: list[str]) -> dict[str, Any]:
    """`Collection.search` of the queries, with encoding; one query per call."""
    ms, answers = _fastest(lambda query: collection.search([query], K, lenses=lenses)[0], queries)
    return {"ms": ms, "results": [[hit.doc_id for hit in hits] for hits in answers]}


def time_searcher(collection: Collection, lens: str, encoded: list[Any]) -> dict[str, Any]:
    """A lens searcher for the encoded queries; one query per call."""
    searcher = collection.snapshot.searcher(lens)
    ms, tops = _fastest(lambda query: searcher.search(query, K), encoded)
    return {"ms": ms, "results": [top.rows[0].tolist() for top in tops]}


def _fastest(search: Callable[[Any], Any], queries: list[Any]) -> tuple[float, list[Any]]:
    """The milliseconds per query of the fastest pass over the queries, and the results."""
    fastest, begin = float("inf"), process_time()
    while True:
        start = process_time()
        results = [search(query) for query in queries]
        end = process_time()
        fastest = min(fastest, end - start)
        if end + fastest > begin + SECONDS:
            return 1000 * fastest / len(queries), results


def _respond(response: dict[str, Any]) -> None:
    print(json.dumps(response), flush=True)


if __name__ == "__main__":
    main()

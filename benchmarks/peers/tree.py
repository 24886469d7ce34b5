"""A source tree of trilens as a contender: times searches of a collection on request.

    PYTHONPATH=TREE/src python -m benchmarks.peers.tree COLLECTION QUERIES.json

Each line on standard input is a request {"kind": "searcher" or "search", "lenses": [...]}; the response is a JSON line with the
milliseconds per query and the results. Only interfaces that old and new trees share are used. Nothing else of the benchmarks is
imported, because it may not work with the API of the tree.
"""

import json
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import trilens
from trilens.collection import Collection

K = 10


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
    """One pass of `Collection.search` over the queries, with encoding; one query per call."""
    start = perf_counter()
    answers = [collection.search([query], K, lenses=lenses)[0] for query in queries]
    seconds = perf_counter() - start
    return {"ms": 1000 * seconds / len(queries), "results": [[hit.doc_id for hit in hits] for hits in answers]}


def time_searcher(collection: Collection, lens: str, encoded: list[Any]) -> dict[str, Any]:
    """One pass of a lens searcher over the encoded queries; one query per call."""
    searcher = collection.snapshot.searcher(lens)
    start = perf_counter()
    tops = [searcher.search(query, K) for query in encoded]
    seconds = perf_counter() - start
    return {"ms": 1000 * seconds / len(encoded), "results": [top.rows[0].tolist() for top in tops]}


def _respond(response: dict[str, Any]) -> None:
    print(json.dumps(response), flush=True)


if __name__ == "__main__":
    main()

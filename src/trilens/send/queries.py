"""Queries as vectors whose inner products (token vectors: MaxSim) with those that are sent are the scores of a search."""

from collections.abc import Sequence

from trilens.collection import Collection
from trilens.represent import Representation
from trilens.search.search import require_queries
from trilens.send.layout import layout_of


def encode_queries(
    collection: Collection, queries: Sequence[str], lenses: Sequence[str] | None = None
) -> dict[str, Representation]:
    """The vectors of queries by lens; None takes all lenses that have vectors.

    They include what depends on the collection, such as the IDF of terms, so encode again when its documents have changed.
    """
    require_queries(queries)
    names = [field.lens for field in layout_of(collection, lenses).fields]
    vectors = collection.snapshot.query_vectors(names, queries)
    return {lens: given for lens, given in vectors.items() if given is not None}

"""`JoinedCollection`: collections that are the parts of one, searched together as the one."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from types import TracebackType
from typing import Any, Self

from trilens.cluster.joined_search import JoinedCommit, JoinedSearch
from trilens.cluster.shard import Shard
from trilens.collection import Collection
from trilens.errors import BadInput
from trilens.explain.explanation import Explanation
from trilens.search.hits import Hit
from trilens.search.options import SearchOptions, read_options
from trilens.search.search import require_query
from trilens.text.document import Document


class JoinedCollection:
    """Searches the commits that the parts see when they are joined; the parts stay open as long.

    The parts are the shards of one published commit, or collections whose documents have keys from one ascending sequence
    (`Collection.add` with `keys`).
    """

    def __init__(self, parts: Sequence[Collection]) -> None:
        _require_parts(parts)
        self.parts = list(parts)
        self._snapshots = [part.snapshot for part in parts]
        self._shards = [Shard(snapshot, part.lens_set) for snapshot, part in zip(self._snapshots, parts, strict=True)]

    @property
    def lenses(self) -> list[str]:
        """Names of the lenses."""
        return self.parts[0].lenses

    def __len__(self) -> int:
        return sum(snapshot.documents_count for snapshot in self._snapshots)

    def get(self, doc_id: str) -> Document | None:
        """A document by its id."""
        shard = self._shard_of(doc_id)
        return None if shard is None else self._snapshots[shard].document(doc_id)

    def search(
        self, queries: Sequence[str], k: int | None = None, *, options: SearchOptions | None = None, **settings: Any
    ) -> list[list[Hit]]:
        """The best k documents of each query, as `Collection.search` of the whole collection finds them."""
        return self._search(queries, read_options(options, k, settings)).hits()

    def explain(self, query: str, doc_id: str, *, options: SearchOptions | None = None, **settings: Any) -> Explanation:
        """Why a search with these options gives a document its score, as `Collection.explain` of the whole explains it."""
        require_query("the query", query)
        shard = self._shard_of(doc_id)
        if shard is None:
            raise BadInput(f"there is no document {doc_id!r} in the collection; expected the id of a document")
        key = self._snapshots[shard].key(doc_id)
        assert key is not None
        detailed = read_options(options, None, settings).updated(details=True)  # explanations always have strengths
        return self._search([query], detailed).explain(doc_id, key, shard)

    def close(self) -> None:
        """Close the parts."""
        for part in self.parts:
            part.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @cached_property
    def _commit(self) -> JoinedCommit:
        return JoinedCommit(self._snapshots[0].tuned, [snapshot.rows for snapshot in self._snapshots])

    def _search(self, queries: Sequence[str], options: SearchOptions) -> JoinedSearch:
        return JoinedSearch(self._commit, self._ask, self.parts[0].lens_set, queries, options)

    def _ask(self, method: str, calls: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        return {shard: getattr(self._shards[shard], method)(*arguments) for shard, arguments in calls.items()}

    def _shard_of(self, doc_id: str) -> int | None:
        return next((shard for shard, snapshot in enumerate(self._snapshots) if snapshot.key(doc_id) is not None), None)


def _shared(part: Collection) -> set[str]:
    return {shared.record.id for shared in part.snapshot.shared.every}


def _require_parts(parts: Sequence[Collection]) -> None:
    """Refuse collections that cannot be parts of one."""
    if not parts:
        raise BadInput("there are no parts; expected at least one collection")
    first = parts[0]
    for part in parts[1:]:
        if part.config != first.config:
            raise BadInput(f"{part.path} has other lenses or another configuration than {first.path}; expected parts of one")
        if _shared(part) != _shared(first) and len(part) and len(first):
            raise BadInput(f"{part.path} has other codebooks than {first.path}; expected the shards of one published commit")
    named = [(segment.record.id, part) for part in parts for segment in part.snapshot.segments]
    if repeated := {folder_id for folder_id, _ in named if [name for name, _ in named].count(folder_id) > 1}:
        one, other = [part.path for folder_id, part in named if folder_id in repeated][:2]
        raise BadInput(f"{one} and {other} hold the same segment; expected each shard once, all of one commit")

"""`FilterMasks`: which rows of a commit pass a filter.

A filter is computed on a connection of its own while the commit is the last one of the collection. SQLite cannot open an older
commit again; then the filter shares the connection of the snapshot: it takes its lock for one range of keys at a time, so that
other searches read in between.
"""

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from hashlib import blake2b
from itertools import pairwise
from threading import Lock
from typing import Any

import numpy as np

from trilens.cancellation import require_wanted
from trilens.errors import BadFilter
from trilens.kernels.array_types import Int64s, Mask
from trilens.store.catalog import Catalog, KeyRange
from trilens.store.fair_lock import FairLock
from trilens.store.filters import Sql, to_sql
from trilens.store.segment import Segment

MASKS_KEPT = 16
# A condition takes as long as parsing the metadata of a document, plus a constant that corresponds to this many bytes of it.
BYTES_PER_CONDITION = 200
BYTES_PER_RANGE = 1 << 18  # about 5 ms
SECONDS_PER_CHECK = 0.1


class FilterMasks:
    """The masks of filters over the rows of one commit; the last ones are kept. Threads may share it."""

    def __init__(self, catalog: Catalog, segments: Sequence[Segment], lock: FairLock) -> None:
        """`lock` is held while the catalog is read."""
        self._catalog, self._segments, self._lock = catalog, segments, lock
        self._commit = catalog.stored_digest()
        self._masks: OrderedDict[bytes, Mask] = OrderedDict()
        self._running: dict[bytes, Lock] = {}  # by filter: held by the thread that computes its mask
        self._state = Lock()  # guards both; not the lock of the catalog, so that a kept mask is had at once

    def mask(self, filter: Mapping[str, Any]) -> Mask:
        """Mask of the live rows whose documents pass a filter. Threads that need the same mask wait for one computation."""
        name = _digest(filter)
        with self._state:
            running = self._running.setdefault(name, Lock())
        while not running.acquire(timeout=SECONDS_PER_CHECK):
            require_wanted()
        try:
            if (mask := self._kept(name)) is None:
                mask = self._compute(to_sql(filter))
                self._keep(name, mask)
            return mask
        finally:
            with self._state:
                self._running.pop(name, None)
            running.release()

    def _kept(self, name: bytes) -> Mask | None:
        with self._state:
            if name in self._masks:
                self._masks.move_to_end(name)
            return self._masks.get(name)

    def _keep(self, name: bytes, mask: Mask) -> None:
        with self._state:
            self._masks[name] = mask
            if len(self._masks) > MASKS_KEPT:
                self._masks.popitem(last=False)

    def _compute(self, sql: Sql) -> Mask:
        twin = self._catalog.twin(self._commit)
        if twin is None:
            keys = self._keys(self._catalog, self._lock, sql)
        else:
            with closing(twin):
                keys = self._keys(twin, nullcontext(), sql)
        return np.concatenate([np.zeros(0, np.bool_), *(segment.mask(keys) for segment in self._segments)])

    def _keys(self, catalog: Catalog, lock: AbstractContextManager[None], sql: Sql) -> Int64s:
        """The keys of the documents that satisfy a condition, ascending."""
        found = catalog.keys_where(sql.text, sql.values, self._ranges(sql.conditions))
        part: Int64s | None = np.empty(0, np.int64)
        parts = []
        while part is not None:
            parts.append(part)
            with lock:
                part = next(found, None)
        return np.sort(np.concatenate(parts))

    def _ranges(self, conditions: int) -> list[KeyRange]:
        """Ranges of keys that take about the same time."""
        parts = [segment.documents for segment in self._segments]
        if not parts:
            return []
        keys = np.concatenate([part.keys for part in parts])
        work = (np.concatenate([part.metadata_bytes for part in parts]) + BYTES_PER_CONDITION) * conditions
        starts = np.flatnonzero(np.diff(np.cumsum(work) // BYTES_PER_RANGE, prepend=-1))
        return [(int(keys[start]), int(keys[end - 1])) for start, end in pairwise([*starts.tolist(), len(keys)])]


def _digest(filter: Mapping[str, Any]) -> bytes:
    """A short name of a filter; equal filters have equal names."""
    try:
        text = json.dumps(filter, sort_keys=True, ensure_ascii=False).encode()
    except RecursionError as error:
        raise BadFilter("filter is nested too deeply; expected a simpler one") from error
    except (TypeError, ValueError) as error:
        raise BadFilter(f"filter {filter!r} cannot be written as JSON ({error}); expected a JSON object") from error
    return blake2b(text, digest_size=16).digest()

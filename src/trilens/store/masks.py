"""`FilterMasks`: which rows of a commit pass a filter.

A filter is computed over ranges of keys. The lock of the catalog is held for one range at a time, so that other searches read
in between, and a search that is no longer wanted stops after its range at the latest.
"""

import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
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
        found = self._catalog.keys_where(sql.text, sql.values, self._ranges(sql.conditions))
        keys = [np.empty(0, np.int64)]
        while (part := self._read(found)) is not None:
            keys.append(part)
        every = np.sort(np.concatenate(keys))
        return np.concatenate([np.zeros(0, np.bool_), *(segment.mask(every) for segment in self._segments)])

    def _read(self, found: Iterator[Int64s]) -> Int64s | None:
        with self._lock:
            return next(found, None)

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

"""Counters and histograms in the text format of Prometheus."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from threading import Lock

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
SIZES = (1, 2, 4, 8, 16, 32, 64)

Labels = tuple[str, ...]


class Counter:
    """How often something happened, by labels."""

    def __init__(self, name: str, says: str, labels: Sequence[str]) -> None:
        self.name, self.says, self.labels = name, says, tuple(labels)
        self._lock = Lock()
        self._values: dict[Labels, float] = {}

    def add(self, *labels: str) -> None:
        """Once more."""
        with self._lock:
            self._values[labels] = self._values.get(labels, 0) + 1

    def lines(self) -> Iterable[str]:
        """In the text format."""
        yield from _head(self.name, self.says, "counter")
        with self._lock:
            values = dict(self._values)
        for labels, value in sorted(values.items()):
            yield f"{self.name}{_label(self.labels, labels)} {value:g}"


class Histogram:
    """How values are spread over buckets, by labels."""

    def __init__(self, name: str, says: str, labels: Sequence[str], buckets: Sequence[float]) -> None:
        self.name, self.says, self.labels, self.buckets = name, says, tuple(labels), tuple(buckets)
        self._lock = Lock()
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}

    def observe(self, value: float, *labels: str) -> None:
        """One value."""
        with self._lock:
            counts = self._counts.setdefault(labels, [0] * (len(self.buckets) + 1))
            counts[bisect_left(self.buckets, value)] += 1
            self._sums[labels] = self._sums.get(labels, 0.0) + value

    def lines(self) -> Iterable[str]:
        """In the text format: counts of all values up to each bound."""
        yield from _head(self.name, self.says, "histogram")
        with self._lock:
            found = [(labels, list(counts), self._sums[labels]) for labels, counts in sorted(self._counts.items())]
        for labels, counts, total in found:
            below = 0
            for bound, count in zip([*(f"{bound:g}" for bound in self.buckets), "+Inf"], counts, strict=True):
                below += count
                yield f"{self.name}_bucket{_label((*self.labels, 'le'), (*labels, bound))} {below}"
            yield f"{self.name}_sum{_label(self.labels, labels)} {total:.9g}"
            yield f"{self.name}_count{_label(self.labels, labels)} {below}"


class Metrics:
    """All that the service counts."""

    def __init__(self) -> None:
        self.requests = Counter("trilens_requests_total", "Requests answered.", ["method", "route", "status"])
        self.seconds = Histogram("trilens_request_seconds", "Time to answer a request.", ["method", "route"], SECONDS)
        self.batches = Histogram("trilens_batch_queries", "Queries searched together.", ["collection"], SIZES)

    def text(self, documents: Iterable[tuple[str, int]]) -> str:
        """Everything, with the documents that each collection holds at the moment."""
        lines = [*self.requests.lines(), *self.seconds.lines(), *self.batches.lines()]
        lines += _head("trilens_documents", "Documents in a collection.", "gauge")
        lines += [f"trilens_documents{_label(('collection',), (name,))} {count}" for name, count in documents]
        return "\n".join(lines) + "\n"


def _head(name: str, says: str, kind: str) -> list[str]:
    return [f"# HELP {name} {says}", f"# TYPE {name} {kind}"]


def _label(names: Sequence[str], values: Sequence[str]) -> str:
    pairs = (f'{name}="{_escape(value)}"' for name, value in zip(names, values, strict=True))
    return "{" + ",".join(pairs) + "}"


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

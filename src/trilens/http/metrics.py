"""Prometheus metrics of the service."""

from collections.abc import Iterable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)

disable_created_metrics()  # type: ignore[no-untyped-call]  # no _created series

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
SIZES = (1, 2, 4, 8, 16, 32, 64)


class Metrics:
    """Requests, latencies, batch sizes, cut connections and documents, in a separate registry."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self.requests = Counter("trilens_requests", "Requests answered.", ["method", "route", "status"], registry=registry)
        self.seconds = Histogram(
            "trilens_request_seconds", "Time to answer a request.", ["method", "route"], buckets=SECONDS, registry=registry
        )
        self.batches = Histogram(
            "trilens_batch_queries", "Queries searched together.", ["collection"], buckets=SIZES, registry=registry
        )
        self.cut = Counter(
            "trilens_connections_cut", "Connections refused, or closed before the client did.", ["reason"], registry=registry
        )
        self._documents = Gauge("trilens_documents", "Documents in a collection.", ["collection"], registry=registry)

    def text(self, documents: Iterable[tuple[str, int]]) -> str:
        """All metrics in the Prometheus text format; `documents` are (collection, count) pairs."""
        for name, count in documents:
            self._documents.labels(name).set(count)
        return generate_latest(self._registry).decode()

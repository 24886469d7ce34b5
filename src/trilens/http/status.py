"""Routes that describe the service: collections, health, readiness, metrics."""

import asyncio
from datetime import UTC, datetime

from fastapi import APIRouter, Depends
from fastapi.responses import PlainTextResponse

from trilens import __version__
from trilens.http import messages
from trilens.http.served import ServedCollection
from trilens.http.service import Credentials, Named, Served, may_read
from trilens.lenses.registry import lens_types
from trilens.store.filters import OPERATORS
from trilens.store.last_commit import COMMIT_FILE
from trilens.store.schema import FILE_NAME

router = APIRouter(tags=["status"])
reads = [Depends(may_read)]


@router.get("/collections", dependencies=reads)
async def list_collections(service: Served, credentials: Credentials) -> messages.CollectionList:
    """All collections, lens types and filter operators."""
    facts = await asyncio.to_thread(lambda: [_facts(served) for served in service.collections.values()])
    lenses = [
        messages.LensFacts(
            name=known.name, description=known.description, colour=known.colour.light, dark_colour=known.colour.dark
        )
        for known in lens_types().values()
    ]
    operators = [
        messages.FilterOperator(name=name, label=operator.label, operand=operator.operand)
        for name, operator in OPERATORS.items()
    ]
    return messages.CollectionList(
        collections=facts,
        lenses=lenses,
        operators=operators,
        writable=service.writable,
        may_write=service.writable and service.keys.may("write", credentials.credentials if credentials else None),
        max_body_bytes=service.limits.body_bytes,
        version=__version__,
    )


@router.get("/collections/{name}", dependencies=reads)
async def get_collection(served: Named) -> messages.CollectionFacts:
    """One collection."""
    return await asyncio.to_thread(_facts, served)


@router.get("/health")
async def health() -> messages.Health:
    """Health check: the service answers; needs no key."""
    return messages.Health(status="ok", version=__version__)


@router.get("/ready")
async def ready(service: Served) -> messages.Ready:
    """Readiness check: 503 while the service starts or ends, or if a collection cannot be searched; needs no key."""
    await asyncio.to_thread(service.require_ready)
    return messages.Ready(status="ready", version=__version__)


@router.get("/metrics", dependencies=reads, response_class=PlainTextResponse)
async def metrics(service: Served) -> PlainTextResponse:
    """Requests, latencies, batch sizes and documents in the Prometheus text format."""
    counts = await asyncio.to_thread(
        lambda: [(name, served.latest().documents_count) for name, served in service.collections.items()]
    )
    return PlainTextResponse(service.metrics.text(counts))


def _facts(served: ServedCollection) -> messages.CollectionFacts:
    problem, path = served.problem(), served.collection.path
    snapshot, config, heads = served.latest(), served.collection.config, served.heads
    try:
        catalog_bytes = (path / FILE_NAME).stat().st_size
        committed = datetime.fromtimestamp((path / COMMIT_FILE).stat().st_mtime, UTC)
    except OSError as error:  # one collection that is gone does not hide the others
        problem = problem or f"{error.filename} cannot be read ({error.strerror}); restore it from a backup"
        catalog_bytes, committed = 0, None
    return messages.CollectionFacts(
        name=served.name,
        documents=snapshot.documents_count,
        passages=snapshot.live_rows,
        bytes=catalog_bytes + sum(file.bytes for file in snapshot.files),
        lenses=served.collection.lenses,
        model=config.model if config.heads else None,
        heads=heads,
        disentangle="sparse" in heads,
        commit=snapshot.commit,
        committed=committed,
        problem=problem,
    )

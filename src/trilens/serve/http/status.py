"""Routes that tell how the service is: collections, health, metrics."""

import asyncio

from fastapi import APIRouter, Depends
from fastapi.responses import PlainTextResponse

from trilens import __version__
from trilens.errors import BadModel
from trilens.serve.http import messages
from trilens.serve.http.served import ServedCollection
from trilens.serve.http.service import Named, Served, may_read

router = APIRouter(tags=["status"])
reads = [Depends(may_read)]


@router.get("/collections", dependencies=reads)
async def list_collections(service: Served) -> messages.CollectionList:
    """What is served."""
    facts = await asyncio.to_thread(lambda: [_facts(served) for served in service.collections.values()])
    return messages.CollectionList(collections=facts, writable=service.writable, version=__version__)


@router.get("/collections/{name}", dependencies=reads)
async def get_collection(served: Named) -> messages.CollectionFacts:
    """One collection."""
    return await asyncio.to_thread(_facts, served)


@router.get("/health")
async def health() -> messages.Health:
    """That the service answers; needs no key."""
    return messages.Health(status="ok", version=__version__)


@router.get("/metrics", dependencies=reads, response_class=PlainTextResponse)
async def metrics(service: Served) -> PlainTextResponse:
    """Requests, latencies, batch sizes and documents in the text format of Prometheus."""
    counts = await asyncio.to_thread(
        lambda: [(name, served.current().documents_count) for name, served in service.collections.items()]
    )
    return PlainTextResponse(service.metrics.text(counts))


def _heads(served: ServedCollection) -> list[str]:
    """None where the model is missing: words can be searched all the same."""
    try:
        return list(served.encoder.heads) if served.has_model else []
    except BadModel:
        return []


def _facts(served: ServedCollection) -> messages.CollectionFacts:
    snapshot, config = served.current(), served.collection.config
    return messages.CollectionFacts(
        name=served.name,
        documents=snapshot.documents_count,
        lenses=served.collection.lenses,
        model=config.model if config.heads else None,
        heads=_heads(served),
        commit=snapshot.commit,
    )

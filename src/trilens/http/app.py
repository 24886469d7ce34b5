"""The FastAPI application: API routes, middleware and the web page."""

from collections.abc import AsyncIterator
from collections.abc import Collection as Container
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path

from fastapi import APIRouter, FastAPI
from fastapi.responses import FileResponse
from starlette.middleware.cors import CORSMiddleware

from trilens import __version__
from trilens.http import documents, embeddings, encoding, searching, status
from trilens.http.access_log import AccessLog
from trilens.http.failures import OPENAI_PREFIX, POSSIBLE, PREFIX, add_handlers
from trilens.http.guard import Guard, Measured
from trilens.http.rate import Buckets, Rated
from trilens.http.service import Service

MEDIA_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


def make_app(
    service: Service, hosts: Container[str] = (), origins: list[str] | None = None, access_log: AccessLog | None = None
) -> FastAPI:
    """The application of a service. `hosts` are the accepted Host headers (empty: any); `origins` are allowed by CORS."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    app = FastAPI(
        title="trilens",
        version=__version__,
        description="Search collections through several lenses, and see how each score is made up.",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        generate_unique_id_function=lambda route: route.name,  # operation ids of generated clients
    )
    app.state.service = service
    add_handlers(app)
    for module in (status, searching, documents, encoding):
        app.include_router(module.router, prefix=PREFIX, responses=POSSIBLE)
    app.include_router(embeddings.router, prefix=OPENAI_PREFIX, responses=embeddings.POSSIBLE)
    app.include_router(_pages())
    if origins:
        app.add_middleware(CORSMiddleware, allow_origins=origins, allow_methods=["*"], allow_headers=["*"])
    if service.limits.rate:
        app.add_middleware(Rated, buckets=Buckets(service.limits.rate, service.limits.burst), keys=service.keys)
    app.add_middleware(Guard, limits=service.limits, hosts=hosts)
    app.add_middleware(Measured, metrics=service.metrics, keys=service.keys, log=access_log)
    return app


def _pages() -> APIRouter:
    """Routes of the web page. Only files that exist at start-up are served."""
    home = Path(str(files("trilens.http") / "web"))
    router = APIRouter(include_in_schema=False)
    addresses = {"/": home / "index.html", "/docs": home / "docs.html", "/collections": home / "collections.html"}
    addresses |= {f"/web/{file.name}": file for file in sorted(home.iterdir()) if file.suffix in MEDIA_TYPES}

    def serve(address: str, file: Path) -> None:
        @router.api_route(address, methods=["GET", "HEAD"])
        async def page() -> FileResponse:
            return FileResponse(file, media_type=MEDIA_TYPES[file.suffix], headers={"Cache-Control": "no-cache"})

    for address, file in addresses.items():
        serve(address, file)
    return router

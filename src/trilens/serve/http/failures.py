"""What goes wrong, as answers: a status and one line, always of the shape {"error": "…"}."""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from trilens.errors import (
    BadInput,
    BadModel,
    CollectionLocked,
    CollectionReadOnly,
    TrilensError,
)
from trilens.serve.http.messages import Failure

STATUSES: dict[type[TrilensError], int] = {
    BadInput: 400,
    BadModel: 400,
    CollectionLocked: 409,
    CollectionReadOnly: 503,
}
POSSIBLE: dict[int | str, dict[str, Any]] = {
    status: {"model": Failure, "description": description}
    for status, description in {
        400: "What was asked for cannot be done as asked.",
        401: "A key is needed.",
        403: "The key, or the service, does not allow it.",
        404: "There is no such collection or document.",
        408: "The body took too long to arrive.",
        409: "Another process is writing to the collection.",
        413: "More than the service takes at once.",
        422: "The request is not of the documented form.",
        500: "Something is broken on our side.",
        503: "Too much to do at the moment; try again.",
        504: "It took too long.",
    }.items()
}
LONGEST = 500


class Refused(TrilensError):
    """A request that gets a status of its own."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})


def absent(doc_id: str, collection: str) -> Refused:
    """Where there is no such document."""
    return Refused(404, f"there is no document {doc_id!r} in collection {collection!r}")


def failure(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """The one shape of all errors. Characters that have no UTF-8 form are escaped by JSON."""
    content = json.dumps({"error": message if len(message) <= LONGEST else message[:LONGEST] + " …"})
    return Response(content, status, dict(headers or {}), "application/json")


def add_handlers(app: FastAPI) -> None:
    """Turn every exception into that shape."""
    app.add_exception_handler(TrilensError, _ours)
    app.add_exception_handler(RequestValidationError, _not_understood)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unexpected)


async def _ours(_: Request, error: Exception) -> Response:
    if isinstance(error, Refused):
        return failure(error.status, str(error), error.headers)
    status = next((status for kind, status in STATUSES.items() if isinstance(error, kind)), 500)
    return failure(status, str(error), {"Retry-After": "2"} if status in (409, 503) else None)


async def _not_understood(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return failure(
            422, f"the body is not JSON ({first['ctx']['error']} at character {first['loc'][-1]}); expected an object"
        )
    place = ".".join(str(part) for part in first["loc"])
    return failure(422, f"{place}: {first['msg'].removeprefix('Value error, ')}")


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    said = str(error.detail)
    if error.status_code == 404 and said == HTTPStatus(404).phrase:
        said = f"there is nothing at {request.url.path}; the addresses are listed at /docs"
    return failure(error.status_code, said, error.headers)


async def _unexpected(_: Request, error: Exception) -> Response:
    return failure(500, f"{type(error).__name__} inside trilens; the log of the service says more")

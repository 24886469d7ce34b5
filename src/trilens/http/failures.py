"""Error responses: a status code and the JSON object {"error": "one line"}, or the object that OpenAI's API has."""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from trilens.errors import (
    ERROR_HEADER,
    BadInput,
    BadModel,
    BadOptions,
    CollectionLocked,
    CollectionReadOnly,
    OutOfResources,
    ServiceFailed,
    Stopped,
    TrilensError,
    first_error,
)
from trilens.http.messages import Failure

STATUSES: dict[type[TrilensError], int] = {
    BadOptions: 422,
    BadInput: 400,
    BadModel: 400,
    CollectionLocked: 409,
    CollectionReadOnly: 503,
    OutOfResources: 503,
    ServiceFailed: 502,
    Stopped: 504,
}
POSSIBLE: dict[int | str, dict[str, Any]] = {
    status: {"model": Failure, "description": description}
    for status, description in {
        400: "The request is invalid.",
        401: "An API key is required.",
        403: "The key, or the configuration of the service, does not permit this request.",
        404: "The collection or document does not exist.",
        408: "The body took too long to arrive.",
        409: "Another process is writing to the collection.",
        413: "The request exceeds a limit of the service.",
        422: "The request does not match the schema.",
        429: "The client sends requests too fast; retry later.",
        500: "Internal error.",
        502: "The language model that the request names did not answer.",
        503: "The service is overloaded or shutting down; retry later.",
        504: "The request timed out.",
    }.items()
}
MOST_CHARACTERS = 500
PREFIX, OPENAI_PREFIX = "/api/v1", "/v1"
OPENAI_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


class Refused(TrilensError):
    """A refused request, with the status code and headers of its response."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})


def absent(doc_id: str, collection: str) -> Refused:
    """The refusal of a document id that does not exist."""
    return Refused(404, f"there is no document {doc_id!r} in collection {collection!r}")


def failure(path: str, status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """The error response to a request for a path. JSON escapes lone surrogates, which UTF-8 cannot encode."""
    message = message if len(message) <= MOST_CHARACTERS else message[:MOST_CHARACTERS] + " …"
    error: object = message
    if path.startswith(f"{OPENAI_PREFIX}/"):
        status = 400 if status == 422 else status
        error = {"message": message, "type": OPENAI_TYPES.get(status, _openai_type(status)), "param": None, "code": None}
    return Response(json.dumps({"error": error}), status, dict(headers or {}), "application/json")


def _openai_type(status: int) -> str:
    return "invalid_request_error" if status < 500 else "server_error"


def add_handlers(app: FastAPI) -> None:
    """Answer every exception with an error response."""
    app.add_exception_handler(TrilensError, _trilens_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _internal_error)


async def _trilens_error(request: Request, error: Exception) -> Response:
    path = request.url.path
    if isinstance(error, Refused):
        return failure(path, error.status, str(error), error.headers)
    status = next((status for kind, status in STATUSES.items() if isinstance(error, kind)), 500)
    again = {"Retry-After": "2"} if status in (409, 503, 504) else {}
    return failure(path, status, str(error), {ERROR_HEADER: type(error).__name__, **again})


async def _validation_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        place = f"{first['ctx']['error']} at character {first['loc'][-1]}"
        return failure(request.url.path, 422, f"the body is not JSON ({place}); expected an object")
    inside = first["loc"][0] == "body" and len(first["loc"]) > 1
    return failure(request.url.path, 422, first_error([{**first, "loc": first["loc"][1:]} if inside else first]))


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = str(error.detail)
    if error.status_code == 404 and message == HTTPStatus(404).phrase:
        message = f"there is nothing at {request.url.path}; see /docs for all routes"
    return failure(request.url.path, error.status_code, message, error.headers)


async def _internal_error(request: Request, error: Exception) -> Response:
    return failure(request.url.path, 500, f"{type(error).__name__} inside trilens; see the log of the service")

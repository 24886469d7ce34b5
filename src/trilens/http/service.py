"""The state that all routes share, and the dependencies that check permissions and resolve collections."""

from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from trilens.http.failures import Refused
from trilens.http.keys import ApiKeys, Permission
from trilens.http.limits import Limits
from trilens.http.metrics import Metrics
from trilens.http.served import ServedCollection

CHALLENGE = {"WWW-Authenticate": "Bearer"}
bearer = HTTPBearer(auto_error=False, description="An API key, if the service was started with keys.")


@dataclass(frozen=True)
class Service:
    """The served collections by name, with the limits, keys and metrics of the service."""

    collections: dict[str, ServedCollection]
    limits: Limits = field(default_factory=Limits)
    keys: ApiKeys = field(default_factory=ApiKeys)
    metrics: Metrics = field(default_factory=Metrics)
    writable: bool = False

    def require(self, permission: Permission, key: str | None) -> None:
        """Refuse a request whose key lacks the permission."""
        if permission == "write" and not self.writable:
            raise Refused(403, "this service is read-only; start it with --write to change documents")
        if self.keys.may(permission, key):
            return
        if key is None:
            raise Refused(401, f"a {permission} key is required; send it as `Authorization: Bearer KEY`", CHALLENGE)
        if self.keys.knows(key):
            raise Refused(403, "this key may read only; a write key is required")
        raise Refused(401, "this key is not known; send a valid key as `Authorization: Bearer KEY`", CHALLENGE)

    def collection(self, name: str) -> ServedCollection:
        """The collection with a name."""
        if name not in self.collections:
            raise Refused(404, f"there is no collection {name!r}; expected one of {', '.join(self.collections)}")
        return self.collections[name]

    def close(self) -> None:
        """Finish the queued requests and close all collections."""
        for served in self.collections.values():
            served.close()


# Dependencies are async functions: FastAPI runs others in a thread pool. They are not nested, because resolving each one costs
# as much as the rest of the request handling.


async def of_request(request: Request) -> Service:
    """The service of the application."""
    return _service(request)


Served = Annotated[Service, Depends(of_request)]
Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]


async def may_read(request: Request, credentials: Credentials) -> None:
    """Require the read permission."""
    _service(request).require("read", credentials.credentials if credentials else None)


async def may_write(request: Request, credentials: Credentials) -> None:
    """Require the write permission."""
    _service(request).require("write", credentials.credentials if credentials else None)


async def collection_of(name: str, request: Request) -> ServedCollection:
    """The collection that the path names."""
    return _service(request).collection(name)


Named = Annotated[ServedCollection, Depends(collection_of)]


def _service(request: Request) -> Service:
    service = request.app.state.service
    assert isinstance(service, Service)
    return service

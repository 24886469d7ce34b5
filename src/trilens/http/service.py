"""The state that all routes share, and the dependencies that check permissions and resolve collections."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Literal

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from trilens.errors import ERROR_HEADER, CollectionMissing, TrilensError
from trilens.http.audit_log import AuditLog, Recorded, unrecorded
from trilens.http.callers import caller_of
from trilens.http.failures import Refused
from trilens.http.keys import ApiKeys, Permission
from trilens.http.limits import Limits
from trilens.http.metrics import Metrics
from trilens.http.served import ServedCollection

CHALLENGE = {"WWW-Authenticate": "Bearer"}
bearer = HTTPBearer(auto_error=False, description="An API key, if the service was started with keys.")


@dataclass
class Service:
    """The served collections by name, with the limits, keys, metrics and audit log of the service."""

    collections: dict[str, ServedCollection]
    limits: Limits = field(default_factory=Limits)
    keys: ApiKeys = field(default_factory=ApiKeys)
    metrics: Metrics = field(default_factory=Metrics)
    writable: bool = False
    audit: AuditLog | None = None
    phase: Literal["warming up", "running", "shutting down"] = "warming up"

    def warm_up(self) -> None:
        """Prepare all collections for the first search."""
        for served in self.collections.values():
            served.warm_up()
            if served.broken:
                sys.stderr.write(f"collection {served.name} cannot be searched: {served.broken}\n")
        if self.phase == "warming up":
            self.phase = "running"

    def end(self) -> None:
        """Report from now on that the service is shutting down."""
        self.phase = "shutting down"

    def require_ready(self) -> None:
        """Refuse unless all collections can be searched."""
        if self.phase != "running":
            raise Refused(503, f"the service is {self.phase}", {"Retry-After": "2"})
        for served in self.collections.values():
            try:
                served.require_searchable()
            except TrilensError as error:
                sys.stderr.write(f"collection {served.name} cannot be searched: {error}\n")
                unknown = "a collection cannot be searched; see the log of the service"  # needs no key, so it names no files
                raise Refused(503, unknown, {"Retry-After": "10"}) from error

    def recorded(self, request: Request, collection: str, operation: str, ids: Sequence[str]) -> Recorded:
        """The audit of a write that a request asks for."""
        if self.audit is None:
            return unrecorded
        caller = caller_of(request.scope, self.keys)
        who = {"client": caller.address, "key": caller.key}
        what = {"collection": collection, "operation": operation, "documents": len(ids), "ids": list(ids)}
        return partial(self.audit.recorded, who | what)

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
            absent = f"there is no collection {name!r}; expected one of {', '.join(self.collections)}"
            raise Refused(404, absent, {ERROR_HEADER: CollectionMissing.__name__})
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

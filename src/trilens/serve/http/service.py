"""What all routes share: the collections, the limits, who may do what."""

from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from trilens.serve.http.failures import Refused
from trilens.serve.http.keys import Keys, Right
from trilens.serve.http.limits import Limits
from trilens.serve.http.metrics import Metrics
from trilens.serve.http.served import ServedCollection

ASK = {"WWW-Authenticate": "Bearer"}
bearer = HTTPBearer(auto_error=False, description="A key of the service, if it was started with keys.")


@dataclass(frozen=True)
class Service:
    """Everything that is served, by name, in the order given."""

    collections: dict[str, ServedCollection]
    limits: Limits = field(default_factory=Limits)
    keys: Keys = field(default_factory=Keys)
    metrics: Metrics = field(default_factory=Metrics)
    writable: bool = False

    def require(self, right: Right, given: str | None) -> None:
        """Refuse who may not."""
        if right == "write" and not self.writable:
            raise Refused(403, "this service is read-only; start it with --write to change documents")
        if self.keys.may(right, given):
            return
        if given is None:
            raise Refused(401, f"a {right} key is needed; send it as `Authorization: Bearer KEY`", ASK)
        if self.keys.knows(given):
            raise Refused(403, "this key may read only; a write key is needed")
        raise Refused(401, "this key is not known; send another one as `Authorization: Bearer KEY`", ASK)

    def collection(self, name: str) -> ServedCollection:
        """The collection of a name."""
        if name not in self.collections:
            raise Refused(404, f"there is no collection {name!r}; expected one of {', '.join(self.collections)}")
        return self.collections[name]

    def close(self) -> None:
        """Finish what waits."""
        for served in self.collections.values():
            served.close()


# What every request depends on is async, so that it is done at once: other functions wait for a thread of a pool. Dependencies
# of dependencies are few, since each costs the framework as much as the rest of a request.


async def of_request(request: Request) -> Service:
    """The service that a request was made to."""
    return _service(request)


Served = Annotated[Service, Depends(of_request)]
Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]


async def may_read(request: Request, credentials: Credentials) -> None:
    """For routes that show something."""
    _service(request).require("read", credentials.credentials if credentials else None)


async def may_write(request: Request, credentials: Credentials) -> None:
    """For routes that change something."""
    _service(request).require("write", credentials.credentials if credentials else None)


async def collection_of(name: str, request: Request) -> ServedCollection:
    """The collection that an address names."""
    return _service(request).collection(name)


Named = Annotated[ServedCollection, Depends(collection_of)]


def _service(request: Request) -> Service:
    service = request.app.state.service
    assert isinstance(service, Service)
    return service

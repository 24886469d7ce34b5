"""Who sent a request: the address and, for a key of the service, its label. The key itself never leaves this module."""

from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import Scope

from trilens.http.addresses import client_name
from trilens.http.keys import ApiKeys


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request. `key` is the label of a key that the service knows, None without one."""

    address: str
    key: str | None

    @property
    def identity(self) -> str:
        """What limits count by: the key, or else the client at the address."""
        return f"key {self.key}" if self.key else client_name(self.address)


def caller_of(scope: Scope, keys: ApiKeys) -> Caller:
    """The sender of the request with this scope, where it is kept for all that ask."""
    state = scope.setdefault("state", {})
    if "caller" not in state:
        scheme, _, key = Headers(scope=scope).get("authorization", "").partition(" ")
        known = scheme.lower() == "bearer" and keys.knows(key)
        client = scope.get("client")
        state["caller"] = Caller(client[0] if client else "", keys.label(key) if known else None)
    caller: Caller = state["caller"]
    return caller

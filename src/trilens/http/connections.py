"""The open connections of the service, counted in total and by client."""

import resource
from collections import Counter
from typing import Protocol

from trilens.http.addresses import Proxies, client_name
from trilens.http.limits import Limits

ENOUGH_DESCRIPTORS = 8192


class Cuttable(Protocol):
    """A connection that can be cut."""

    def cut(self, reason: str) -> None:
        """Close the connection."""


class Connections:
    """Admits connections within the limits.

    At a limit, the connection that has waited longest for a request gives way to the one that arrives, so connections that
    send nothing, or heads that never end, shut nobody out. If all connections have requests in work, the one that arrives is
    refused. The connections of a proxy belong to many clients: only the total limits them.
    """

    def __init__(self, limits: Limits, proxies: Proxies) -> None:
        self._most = min(limits.connections, most_descriptors())
        self._most_of_client = limits.client_connections
        self._proxies = proxies
        self._clients: dict[Cuttable, str] = {}
        self._counts: Counter[str] = Counter()
        self._waiting: dict[Cuttable, None] = {}  # in the order in which they began to wait

    def __len__(self) -> int:
        return len(self._clients)

    def admit(self, connection: Cuttable, host: str) -> bool:
        """Count a connection, or return False if there is no room for it."""
        client = client_name(host)
        if host not in self._proxies and self._counts[client] >= self._most_of_client and not self._make_room(client):
            return False
        if len(self._clients) >= self._most and not self._make_room(None):
            return False
        self._clients[connection] = client
        self._counts[client] += 1
        self._waiting[connection] = None
        return True

    def waits(self, connection: Cuttable, waiting: bool) -> None:
        """Record whether a connection waits for a request."""
        self._waiting.pop(connection, None)
        if waiting and connection in self._clients:
            self._waiting[connection] = None

    def forget(self, connection: Cuttable) -> None:
        """Remove a connection that is closed."""
        self._waiting.pop(connection, None)
        client = self._clients.pop(connection, None)
        if client is not None:
            self._counts[client] -= 1
            if not self._counts[client]:
                del self._counts[client]

    def _make_room(self, client: str | None) -> bool:
        """Cut the connection, of this client if one is given, that has waited longest. False if none is waiting."""
        oldest = next((one for one in self._waiting if client in (None, self._clients[one])), None)
        if oldest is None:
            return False
        oldest.cut("crowded")
        self.forget(oldest)
        return True


def most_descriptors() -> int:
    """The descriptors that connections may use: half of what the process may open, after raising its soft limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = ENOUGH_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, ENOUGH_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return max(soft, wanted) // 2

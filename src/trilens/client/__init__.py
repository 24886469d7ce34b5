"""A client of the HTTP service, synchronous and asynchronous, with the methods and types of `Collection`."""

from trilens.extras import needs_extra

with needs_extra("client"):
    from trilens.client.asynchronous import AsyncClient, AsyncRemoteCollection
    from trilens.client.synchronous import Client, RemoteCollection

__all__ = ["AsyncClient", "AsyncRemoteCollection", "Client", "RemoteCollection"]

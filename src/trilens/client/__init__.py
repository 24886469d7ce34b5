"""A client of the HTTP service, synchronous and asynchronous, with the methods and types of `Collection`."""

from trilens.client.asynchronous import AsyncClient, AsyncRemoteCollection
from trilens.client.synchronous import Client, RemoteCollection

__all__ = ["AsyncClient", "AsyncRemoteCollection", "Client", "RemoteCollection"]

"""Limits on requests and connections, so that one client cannot starve the others."""

from dataclasses import dataclass, fields

from trilens.errors import BadInput


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one request, of connections and of the queue, and the permitted HyDE endpoints and cross-encoders.

    explained           documents per explain request
    seconds             time of a request, from its arrival to its response
    waiting             queries in the queue of a collection; further requests are refused
    wait_seconds        expected time in the queue of a collection; further requests are refused
    connections         open connections
    client_connections  open connections of one client address
    head_seconds        time until the head of a request has arrived, and of a TLS handshake
    idle_seconds        time that a connection is kept between requests
    send_seconds        time in which a client takes a part of its response
    rate                requests per second of a client; 0 sets no limit
    burst               requests that a client may send at once
    hyde_urls           language models that searches may call
    cross_encoders      models that searches may re-rank with; the first one is the default
    """

    body_bytes: int = 8 << 20
    k: int = 1_000
    queries: int = 100
    query_characters: int = 10_000
    texts: int = 100
    documents: int = 1_000
    explained: int = 50
    seconds: float = 30.0
    waiting: int = 2_000
    wait_seconds: float = 10.0
    connections: int = 1_000
    client_connections: int = 100
    head_seconds: float = 10.0
    idle_seconds: float = 30.0
    send_seconds: float = 20.0
    rate: float = 0.0
    burst: int = 20
    hyde_urls: tuple[str, ...] = ()
    cross_encoders: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, int | float) and value <= 0 and (field.name != "rate" or value < 0):
                raise BadInput(f"limit {field.name} is {value}; expected more than 0")

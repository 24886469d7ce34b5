"""Starts a service: checks the options for safety, opens the collections and runs the server."""

import gc
import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from trilens.collection import Collection
from trilens.errors import BadInput
from trilens.http.app import make_app
from trilens.http.guard import LOOPBACK_NAMES
from trilens.http.keys import ApiKeys, load_keys
from trilens.http.limits import Limits
from trilens.http.metrics import Metrics
from trilens.http.served import ENCODER_THREADS, ServedCollection
from trilens.http.server import address, is_loopback, listen, run
from trilens.http.service import Service

GRACE_SECONDS = 5.0  # on shutdown, in addition to the time limit of a request


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """The options of a service."""

    host: str = "127.0.0.1"
    port: int = 8000
    write: bool = False
    keys_file: Path | None = None
    open_to_all: bool = False
    origins: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    threads: int | None = None
    verify: bool = False


def start(paths: Mapping[str, Path], options: ServeOptions, ready: Callable[[str], None]) -> None:
    """Serve collections until a signal; `ready` is called with the URL when the service accepts requests."""
    keys = load_keys(options.keys_file)
    require_safe(options, keys)
    metrics = Metrics()
    with ExitStack() as opened:
        collections = {
            name: Collection.open(path, threads=ENCODER_THREADS, verify=options.verify) for name, path in paths.items()
        }
        for collection in collections.values():
            opened.callback(collection.close)
            _ = collection.snapshot  # opens the segments, so that damage is reported at start-up
        listener = opened.enter_context(listen(options.host, options.port))
        threads = options.threads or len(os.sched_getaffinity(0))
        served = {
            name: ServedCollection(name, collection, options.limits, metrics, threads)
            for name, collection in collections.items()
        }
        for collection_served in served.values():
            collection_served.warm_up()
        gc.freeze()  # keeps the loaded models and indexes out of garbage collection, whose pauses stop all threads
        service = Service(served, options.limits, keys, metrics, options.write)
        hosts = LOOPBACK_NAMES if is_loopback(options.host) and not keys.read else ()
        app = make_app(service, hosts, list(options.origins))
        run(app, listener, options.limits.seconds + GRACE_SECONDS, lambda: ready(address(listener)))


def require_safe(options: ServeOptions, keys: ApiKeys) -> None:
    """Refuse --write without a write key, and a non-loopback address without a read key or --open."""
    if options.write and not keys.write:
        raise BadInput("--write is given, but there is no write key; pass one in --keys FILE or TRILENS_WRITE_KEYS")
    if not (is_loopback(options.host) or keys.read or options.open_to_all):
        raise BadInput(
            f"--host {options.host} is not a loopback address, and there is no read key; pass one in --keys FILE or "
            "TRILENS_READ_KEYS, or --open to let everyone read"
        )
    for origin in options.origins:
        if origin != "*" and not origin.startswith(("http://", "https://")):
            raise BadInput(f"--cors is {origin!r}; expected an origin such as https://example.org")

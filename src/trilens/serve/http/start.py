"""From options to a running service; what would be unsafe is refused before anything is opened."""

import gc
import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from trilens.collection import Collection
from trilens.errors import BadInput
from trilens.serve.http.app import make_app
from trilens.serve.http.guard import LOOPBACK_NAMES
from trilens.serve.http.keys import Keys, load_keys
from trilens.serve.http.limits import Limits
from trilens.serve.http.metrics import Metrics
from trilens.serve.http.served import ENCODER_THREADS, ServedCollection
from trilens.serve.http.server import address, is_loopback, listen, run
from trilens.serve.http.server import is_free as is_free
from trilens.serve.http.service import Service

GRACE_SECONDS = 5.0  # more than a request may take anyway


@dataclass(frozen=True, slots=True)
class Options:
    """How a service is started."""

    host: str = "127.0.0.1"
    port: int = 8000
    write: bool = False
    keys_file: Path | None = None
    open_to_all: bool = False
    origins: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    threads: int | None = None


def start(paths: Mapping[str, Path], options: Options, ready: Callable[[str], None]) -> None:
    """Serve collections until a signal; `ready` is told the address when it can be called."""
    keys = load_keys(options.keys_file)
    require_safe(options, keys)
    metrics = Metrics()
    with ExitStack() as opened:
        collections = {name: Collection.open(path, threads=ENCODER_THREADS) for name, path in paths.items()}
        for collection in collections.values():
            opened.callback(collection.close)
            _ = collection.snapshot  # what is damaged is said now, not to the first who asks
        listener = opened.enter_context(listen(options.host, options.port))
        threads = options.threads or len(os.sched_getaffinity(0))
        served = {
            name: ServedCollection(name, collection, options.limits, metrics, threads)
            for name, collection in collections.items()
        }
        for one in served.values():
            one.warm_up()
        gc.freeze()  # what is loaded now stays: looking through all of it for garbage would stop every thread for a while
        service = Service(served, options.limits, keys, metrics, options.write)
        hosts = LOOPBACK_NAMES if is_loopback(options.host) and not keys.read else ()
        app = make_app(service, hosts, list(options.origins))
        run(app, listener, options.limits.seconds + GRACE_SECONDS, lambda: ready(address(listener)))


def require_safe(options: Options, keys: Keys) -> None:
    """Refuse to write without keys, and to show documents to a network without keys unless that is wanted."""
    if options.write and not keys.write:
        raise BadInput("--write is given but no write key; expected one in --keys FILE or in TRILENS_WRITE_KEYS")
    if not (is_loopback(options.host) or keys.read or options.open_to_all):
        raise BadInput(
            f"--host {options.host} can be reached from other machines and there is no read key; expected one in "
            "--keys FILE or in TRILENS_READ_KEYS, or --open if everyone may read"
        )
    for origin in options.origins:
        if origin != "*" and not origin.startswith(("http://", "https://")):
            raise BadInput(f"--cors is {origin!r}; expected an origin such as https://example.org")

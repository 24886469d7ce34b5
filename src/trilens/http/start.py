"""Starts a service: checks the options for safety, opens the collections and runs the server."""

import gc
import os
import signal
import ssl
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from trilens.collection import Collection
from trilens.encode.cross_folder import CrossFolder
from trilens.encode.models import resolve_model
from trilens.errors import BadInput
from trilens.http.access_log import AccessLog
from trilens.http.addresses import Proxies
from trilens.http.app import make_app
from trilens.http.audit_log import AuditLog
from trilens.http.guard import LOOPBACK_NAMES
from trilens.http.keys import ApiKeys, load_keys
from trilens.http.limits import Limits
from trilens.http.log_file import LogFile
from trilens.http.metrics import Metrics
from trilens.http.served import ENCODER_THREADS, ServedCollection
from trilens.http.server import Server, address, is_loopback, listen
from trilens.http.service import Service
from trilens.http.tls import load_certificate, make_context


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
    proxies: tuple[str, ...] = ()
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    access_log: Path | None = None
    log_queries: bool = False
    audit_log: Path | None = None

    @property
    def is_exposed(self) -> bool:
        """Whether other machines can reach the service."""
        return not is_loopback(self.host) or bool(self.proxies)


def start(paths: Mapping[str, Path], options: ServeOptions, ready: Callable[[str], None]) -> None:
    """Serve collections until a signal; `ready` is called with the URL when the service is warm."""
    keys = load_keys(options.keys_file)
    require_safe(options, keys)
    proxies, context = Proxies(options.proxies), _context(options)
    metrics = Metrics()
    for model in options.limits.cross_encoders:
        CrossFolder.open(resolve_model(model))
    with ExitStack() as opened:
        audit = _log_file(options.audit_log, opened, sync=True)
        access = _log_file(options.access_log, opened)
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
        service = Service(served, options.limits, keys, metrics, options.write, AuditLog(audit) if audit else None)
        hosts = () if options.is_exposed or keys.read else LOOPBACK_NAMES
        app = make_app(service, hosts, list(options.origins), AccessLog(access, options.log_queries) if access else None)

        def warm() -> None:
            gc.freeze()  # keeps the loaded models and indexes out of garbage collection, whose pauses stop all threads
            ready(address(listener, context is not None))

        handlers: dict[int, Callable[[], None]] = {}
        if access or audit or context:
            logs = [log for log in (access, audit) if log]
            handlers[signal.SIGHUP] = partial(_renew, logs, context, options)
        Server(app, service, listener, warm, proxies, context).run_until_signal(handlers)


def require_safe(options: ServeOptions, keys: ApiKeys) -> None:
    """Refuse options that would let strangers in, or that do not fit together."""
    if options.write and not keys.write:
        raise BadInput("--write is given, but there is no write key; pass one in --keys FILE or TRILENS_WRITE_KEYS")
    if options.is_exposed and not (keys.read or options.open_to_all):
        why = f"--host {options.host} is not a loopback address" if not options.proxies else "--proxy forwards from others"
        raise BadInput(
            f"{why}, and there is no read key; pass one in --keys FILE or TRILENS_READ_KEYS, or --open to let everyone read"
        )
    if (options.tls_certificate is None) != (options.tls_key is None):
        raise BadInput("--tls-cert and --tls-key belong together; pass both")
    if options.log_queries and options.access_log is None:
        raise BadInput("--log-queries is given without --access-log FILE, which they are written to")
    if str(options.audit_log) == "-":
        raise BadInput("--audit-log is '-'; expected a file, since an entry must be on the disk before the change")
    for origin in options.origins:
        if origin != "*" and not origin.startswith(("http://", "https://")):
            raise BadInput(f"--cors is {origin!r}; expected an origin such as https://example.org")


def _context(options: ServeOptions) -> ssl.SSLContext | None:
    if options.tls_certificate is None or options.tls_key is None:
        return None
    return make_context(options.tls_certificate, options.tls_key)


def _log_file(path: Path | None, opened: ExitStack, sync: bool = False) -> LogFile | None:
    if path is None:
        return None
    file = LogFile(path, sync)
    opened.callback(file.close)
    return file


def _renew(logs: list[LogFile], context: ssl.SSLContext | None, options: ServeOptions) -> None:
    """On SIGHUP: write to new log files if the old ones were renamed, and use the certificate as it is now."""
    for log in logs:
        log.reopen()
    if context and options.tls_certificate and options.tls_key:
        try:
            load_certificate(context, options.tls_certificate, options.tls_key)
        except BadInput as error:
            sys.stderr.write(f"the certificate stays as it was: {error}\n")

"""The command `serve`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from trilens.cli.options import Verify
from trilens.errors import BadInput
from trilens.extras import needs_extra

ACCESS, LIMITS, LOGS = "Access", "Limits", "Logs"  # panels of the help


def serve(
    paths: Annotated[
        list[str],
        typer.Argument(metavar="COLLECTION...", help="Collections to serve, each FOLDER or NAME=FOLDER.", show_default=False),
    ],
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="Port; 0 selects a free one.")] = 8000,
    threads: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Concurrent searches, one core each.", show_default="all cores"),
    ] = None,
    hyde: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", help="Language model that searches may use (HyDE). Can be repeated.", show_default=False),
    ] = None,
    cross_encoder: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODEL",
            help="Cross-encoder that searches may re-rank with; the first is the default. Can be repeated.",
            show_default=False,
        ),
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Let requests with a write key change documents.", rich_help_panel=ACCESS)
    ] = False,
    keys: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File of API keys: lines `read KEY [NAME]` and `write KEY [NAME]`. Only its owner may read it.",
            show_default=False,
            rich_help_panel=ACCESS,
        ),
    ] = None,
    open_to_all: Annotated[
        bool, typer.Option("--open", help="Permit others to read without a key.", rich_help_panel=ACCESS)
    ] = False,
    cors: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ORIGIN", help="Origin that CORS permits. Can be repeated.", show_default=False, rich_help_panel=ACCESS
        ),
    ] = None,
    proxy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS",
            help="Proxy whose X-Forwarded-For is believed: an address or a network. Can be repeated.",
            show_default=False,
            rich_help_panel=ACCESS,
        ),
    ] = None,
    tls_cert: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Certificate chain in PEM format, for HTTPS.", show_default=False, rich_help_panel=ACCESS
        ),
    ] = None,
    tls_key: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Private key of the certificate.", show_default=False, rich_help_panel=ACCESS),
    ] = None,
    max_body: Annotated[
        int, typer.Option(metavar="BYTES", min=1, help="Maximum size of a request.", rich_help_panel=LIMITS)
    ] = 8 << 20,
    max_k: Annotated[int, typer.Option(metavar="N", min=1, help="Maximum k of a search.", rich_help_panel=LIMITS)] = 1_000,
    max_queries: Annotated[
        int, typer.Option(metavar="N", min=1, help="Maximum number of queries per request.", rich_help_panel=LIMITS)
    ] = 100,
    max_seconds: Annotated[
        float, typer.Option(metavar="S", min=0.1, help="Time limit of a request.", rich_help_panel=LIMITS)
    ] = 30.0,
    max_wait: Annotated[
        float,
        typer.Option(metavar="S", min=0.1, help="Expected wait above which requests are refused.", rich_help_panel=LIMITS),
    ] = 10.0,
    max_connections: Annotated[
        int, typer.Option(metavar="N", min=1, help="Maximum number of connections.", rich_help_panel=LIMITS)
    ] = 1_000,
    max_client_connections: Annotated[
        int, typer.Option(metavar="N", min=1, help="Maximum number of connections per client.", rich_help_panel=LIMITS)
    ] = 100,
    max_head: Annotated[
        float, typer.Option(metavar="S", min=0.1, help="Time for the head of a request.", rich_help_panel=LIMITS)
    ] = 10.0,
    max_idle: Annotated[
        float, typer.Option(metavar="S", min=0.1, help="Time between requests of a connection.", rich_help_panel=LIMITS)
    ] = 30.0,
    max_send: Annotated[
        float,
        typer.Option(metavar="S", min=0.1, help="Time to take the next 16 KB of a response.", rich_help_panel=LIMITS),
    ] = 20.0,
    rate: Annotated[
        float,
        typer.Option(metavar="N", min=0.0, help="Requests per second and key or client; 0: no limit.", rich_help_panel=LIMITS),
    ] = 0.0,
    burst: Annotated[int, typer.Option(metavar="N", min=1, help="Requests at once, with --rate.", rich_help_panel=LIMITS)] = 20,
    access_log: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Log of requests as JSON lines; - is standard output.",
            show_default=False,
            rich_help_panel=LOGS,
        ),
    ] = None,
    log_queries: Annotated[
        bool, typer.Option("--log-queries", help="Write the texts of queries to the access log.", rich_help_panel=LOGS)
    ] = False,
    audit_log: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Log of changes as JSON lines.", show_default=False, rich_help_panel=LOGS),
    ] = None,
    verify: Verify = False,
) -> None:
    """Serve collections over HTTP, with a search page at the printed address.

    The server is read-only by default. --write, or binding to a non-loopback address, requires an API key. Keys are read from
    --keys and from TRILENS_READ_KEYS and TRILENS_WRITE_KEYS. --open permits reading without a key. /docs describes the API.

    Examples:

      trilens serve my.trilens

      trilens serve papers.trilens notes=old/notes.trilens --port 9000

      trilens serve my.trilens --host 0.0.0.0 --keys keys.txt --write
    """
    with needs_extra("serve"):
        from trilens.http.limits import Limits
        from trilens.http.start import ServeOptions, start
    limits = Limits(
        body_bytes=max_body,
        k=max_k,
        queries=max_queries,
        seconds=max_seconds,
        wait_seconds=max_wait,
        connections=max_connections,
        client_connections=max_client_connections,
        head_seconds=max_head,
        idle_seconds=max_idle,
        send_seconds=max_send,
        rate=rate,
        burst=burst,
        hyde_urls=tuple(hyde or ()),
        cross_encoders=tuple(cross_encoder or ()),
    )
    options = ServeOptions(
        host=host,
        port=port,
        write=write,
        keys_file=keys,
        open_to_all=open_to_all,
        origins=tuple(cors or ()),
        limits=limits,
        threads=threads,
        verify=verify,
        proxies=tuple(proxy or ()),
        tls_certificate=tls_cert,
        tls_key=tls_key,
        access_log=access_log,
        log_queries=log_queries,
        audit_log=audit_log,
    )
    start(collection_folders(paths), options, print_address)


def print_address(address: str) -> None:
    """Print the address on standard output; scripts wait for this line."""
    sys.stdout.write(f"serving at {address} (Ctrl-C ends it)\n")
    sys.stdout.flush()


def collection_folders(arguments: list[str]) -> dict[str, Path]:
    """Collection folders by their name in URLs: NAME=FOLDER, or the name of the folder without .trilens."""
    folders: dict[str, Path] = {}
    for argument in arguments:
        name, equals, folder = argument.partition("=")
        is_folder = not equals or Path(argument).exists()
        path = Path(argument) if is_folder else Path(folder)
        name = path.resolve().name.removesuffix(".trilens") if is_folder else name
        if not name or "/" in name:
            raise BadInput(f"collection {argument!r} would be called {name!r}; expected NAME=FOLDER with another name")
        if name in folders:
            raise BadInput(f"{folders[name]} and {path} would both be called {name!r}; name one of them: NAME={path}")
        folders[name] = path
    return folders

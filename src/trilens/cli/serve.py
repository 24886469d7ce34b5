"""The command `serve`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from trilens.cli.options import Verify
from trilens.errors import BadInput

INSTALL = "the service needs additional packages: run `pip install 'trilens[serve]'`"


def serve(
    paths: Annotated[
        list[str],
        typer.Argument(metavar="COLLECTION...", help="Collections to serve, each FOLDER or NAME=FOLDER.", show_default=False),
    ],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 selects a free one.")] = 8000,
    write: Annotated[bool, typer.Option("--write", help="Let requests with a write key change documents.")] = False,
    keys: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File of API keys: lines `read KEY` and `write KEY`.", show_default=False),
    ] = None,
    open_to_all: Annotated[bool, typer.Option("--open", help="Permit a non-loopback address without a read key.")] = False,
    cors: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="Origin that CORS permits. Can be repeated.", show_default=False),
    ] = None,
    hyde: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", help="HyDE endpoint that searches may use. Can be repeated.", show_default=False),
    ] = None,
    max_body: Annotated[int, typer.Option(metavar="BYTES", min=1, help="Maximum size of a request.")] = 8 << 20,
    max_k: Annotated[int, typer.Option(metavar="N", min=1, help="Maximum k of a search.")] = 1_000,
    max_queries: Annotated[int, typer.Option(metavar="N", min=1, help="Maximum number of queries per request.")] = 100,
    max_seconds: Annotated[float, typer.Option(metavar="S", min=0.1, help="Time limit of a request.")] = 30.0,
    threads: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Concurrent searches, one core each.", show_default="all cores"),
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
    try:
        from trilens.http.limits import Limits
        from trilens.http.start import ServeOptions, start
    except ImportError as error:
        raise BadInput(INSTALL) from error
    limits = Limits(body_bytes=max_body, k=max_k, queries=max_queries, seconds=max_seconds, hyde_urls=tuple(hyde or ()))
    options = ServeOptions(host, port, write, keys, open_to_all, tuple(cors or ()), limits, threads, verify)
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

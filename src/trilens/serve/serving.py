"""The serve command."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from trilens.errors import BadInput

INSTALL = "the service needs more packages: run `pip install 'trilens[serve]'`"


def serve(
    paths: Annotated[
        list[str],
        typer.Argument(metavar="COLLECTION...", help="Folders of collections, or NAME=FOLDER.", show_default=False),
    ],
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8000,
    write: Annotated[bool, typer.Option("--write", help="Let documents be changed, by requests with a write key.")] = False,
    keys: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keys: lines `read KEY` and `write KEY`.", show_default=False),
    ] = None,
    open_to_all: Annotated[bool, typer.Option("--open", help="Serve beyond this machine without a read key.")] = False,
    cors: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="Whose pages may call the service; may be given again.", show_default=False),
    ] = None,
    max_body: Annotated[int, typer.Option(metavar="BYTES", min=1, help="Size of a request.")] = 8 << 20,
    max_k: Annotated[int, typer.Option(metavar="N", min=1, help="Documents of an answer.")] = 1_000,
    max_queries: Annotated[int, typer.Option(metavar="N", min=1, help="Queries of a request.")] = 100,
    max_seconds: Annotated[float, typer.Option(metavar="S", min=0.1, help="Time that a request may take.")] = 30.0,
    threads: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Searches at a time, each on a core of its own.", show_default="all cores"),
    ] = None,
) -> None:
    """Serve collections over HTTP, with a web page to search them: look at the address that it prints.

    Keys also come from TRILENS_READ_KEYS and TRILENS_WRITE_KEYS. Without a read key, everyone who reaches the address may
    read; so beyond this machine a read key is needed, or --open. The addresses of the service are described at /docs.

    Examples:

      trilens serve my.trilens

      trilens serve papers.trilens notes=old/notes.trilens --port 9000

      trilens serve my.trilens --host 0.0.0.0 --keys keys.txt --write
    """
    try:
        from trilens.serve.http.limits import Limits
        from trilens.serve.http.start import Options, start
    except ImportError as error:
        raise BadInput(INSTALL) from error
    limits = Limits(body_bytes=max_body, k=max_k, queries=max_queries, seconds=max_seconds)
    options = Options(host, port, write, keys, open_to_all, tuple(cors or ()), limits, threads)
    start(named(paths), options, say_address)


def say_address(address: str) -> None:
    """On standard output, for people and for scripts that wait for it."""
    sys.stdout.write(f"serving at {address} (Ctrl-C ends it)\n")
    sys.stdout.flush()


def named(paths: list[str]) -> dict[str, Path]:
    """Collections by the name that addresses use: NAME=FOLDER, or the folder's name without its ending."""
    found: dict[str, Path] = {}
    for given in paths:
        name, equals, folder = given.partition("=")
        path = Path(given) if not equals or Path(given).exists() else Path(folder)
        name = name if equals and not Path(given).exists() else path.resolve().name.removesuffix(".trilens")
        if not name or "/" in name:
            raise BadInput(f"collection {given!r} would be called {name!r}; expected NAME=FOLDER with another name")
        if name in found:
            raise BadInput(f"{found[name]} and {path} would both be called {name!r}; name one of them: NAME={path}")
        found[name] = path
    return found

"""The command `mcp`."""

import sys
from contextlib import ExitStack
from typing import Annotated

import typer

from trilens.cli.options import Threads, Verify
from trilens.cli.serve import collection_folders
from trilens.collection import Collection


def mcp(
    paths: Annotated[
        list[str],
        typer.Argument(metavar="COLLECTION...", help="Collections to serve, each FOLDER or NAME=FOLDER.", show_default=False),
    ],
    http: Annotated[
        bool, typer.Option("--http", help="Serve streamable HTTP on 127.0.0.1 instead of standard input and output.")
    ] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="Port, with --http; 0 selects a free one.")] = 8001,
    threads: Threads = None,
    verify: Verify = False,
) -> None:
    """Serve collections to agents by the Model Context Protocol (MCP).

    The tools are search, get_document, explain and list_collections; documents are resources. The server is read-only, and
    reachable from this machine only.

    Examples:

      trilens mcp my.trilens

      trilens mcp papers.trilens notes=old/notes.trilens --http --port 9001
    """
    from trilens.integrations.mcp import make_server, serve_http, serve_stdio

    with ExitStack() as opened:
        collections: dict[str, Collection] = {}
        for name, path in collection_folders(paths).items():
            collections[name] = opened.enter_context(Collection.open(path, threads=threads, verify=verify))
            _ = collections[name].snapshot  # opens the segments, so that damage is reported at start-up
        server = make_server(collections)
        if http:
            serve_http(server, port, _print_address)
        else:
            serve_stdio(server)


def _print_address(address: str) -> None:
    sys.stdout.write(f"serving at {address} (Ctrl-C ends it)\n")
    sys.stdout.flush()

"""An MCP server of collections: agents search and read them as tools and resources, over standard input or loopback HTTP."""

import json
import os
import signal
import socket
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, unquote

from trilens import __version__
from trilens.collection import Collection
from trilens.errors import BadInput, TrilensError
from trilens.extras import needs_extra
from trilens.integrations.mcp_tools import TOOLS, Shelf
from trilens.text.document import Document

with needs_extra("mcp"):
    import anyio
    import anyio.to_thread
    import uvicorn
    from mcp import types
    from mcp.server import Server, ServerRequestContext
    from mcp.server.stdio import stdio_server
    from mcp.shared.exceptions import MCPError

LOOPBACK = "127.0.0.1"
GRACE_SECONDS = 2
PAGE = 100
SCHEME = "trilens://"
INSTRUCTIONS = "Search collections of documents: list_collections has their names, get_document the text of a hit."
Context = ServerRequestContext[Any]


def make_server(collections: Mapping[str, Collection]) -> Server[Any]:
    """The MCP server of these collections, by name. It only reads."""
    shelf = Shelf(collections)

    async def list_tools(_: Context, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=_tools())

    async def call_tool(_: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        return await anyio.to_thread.run_sync(_call, shelf, params.name, params.arguments or {})

    async def list_resources(_: Context, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        return await anyio.to_thread.run_sync(_page, shelf, params.cursor if params else None)

    async def list_templates(_: Context, _params: types.PaginatedRequestParams | None) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(
            name="document", uri_template=SCHEME + "{collection}/{doc_id}", description="The text of a document."
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(_: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        return await anyio.to_thread.run_sync(_read, shelf, params.uri)

    return Server(
        "trilens",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
    )


def serve_stdio(server: Server[Any]) -> None:
    """Serve the process at the other end of standard input and output, until it closes them or a signal ends this process.

    A signal ends it at once: a thread that waits for input cannot be cancelled, and a server that only reads leaves nothing.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)

    async def serve() -> None:
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    anyio.run(serve)


def serve_http(server: Server[Any], port: int, ready: Callable[[str], None]) -> None:
    """Serve streamable HTTP on the loopback address until SIGTERM or SIGINT; `ready` is called with the URL.

    Requests with the Host header or Origin of another machine are refused, which prevents DNS rebinding.
    """
    try:
        listener = socket.create_server((LOOPBACK, port))
    except OSError as error:
        raise BadInput(f"cannot listen on {LOOPBACK} port {port} ({error}); choose another with --port") from error
    config = uvicorn.Config(
        server.streamable_http_app(host=LOOPBACK),
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    # uvicorn raises the signals again after the shutdown.
    before = {number: signal.signal(number, _ignore) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        with listener:
            ready(f"http://{LOOPBACK}:{listener.getsockname()[1]}/mcp")
            uvicorn.Server(config).run(sockets=[listener])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _tools() -> list[types.Tool]:
    hints = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
    return [
        types.Tool(name=tool.name, description=tool.description, input_schema=tool.schema(), annotations=hints)
        for tool in TOOLS.values()
    ]


def _call(shelf: Shelf, name: str, arguments: Mapping[str, Any]) -> types.CallToolResult:
    try:
        if name not in TOOLS:
            raise BadInput(f"there is no tool {name!r}; expected one of {', '.join(TOOLS)}")
        result = TOOLS[name].call(shelf, arguments)
    except TrilensError as error:
        return types.CallToolResult(content=[types.TextContent(type="text", text=str(error))], is_error=True)
    text = json.dumps(result, ensure_ascii=False)
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], structured_content=result)


def _page(shelf: Shelf, cursor: str | None) -> types.ListResourcesResult:
    """A page of the documents of all collections. A cursor is the number of a collection and the key of its last document."""
    names = list(shelf.opened)
    place, _, key = (cursor or "0:0").partition(":")
    if not (place.isdecimal() and key.isdecimal() and int(place) < len(names)):
        raise MCPError(types.INVALID_PARAMS, f"cursor is {cursor!r}; expected the next_cursor of a page")
    name = names[int(place)]
    with shelf.current(name) as collection:
        page = collection.snapshot.page(int(key), PAGE)
    following = f"{int(place) + 1}:0" if int(place) + 1 < len(names) else None
    following = f"{place}:{page[-1][0]}" if len(page) == PAGE else following
    return types.ListResourcesResult(resources=[_resource(name, document) for _, document in page], next_cursor=following)


def _resource(collection: str, document: Document) -> types.Resource:
    return types.Resource(
        name=document.doc_id,
        title=document.title or None,
        uri=f"{SCHEME}{quote(collection, safe='')}/{quote(document.doc_id, safe='')}",
        mime_type="text/plain",
        size=len(document.text.encode()),
    )


def _read(shelf: Shelf, uri: str) -> types.ReadResourceResult:
    name, slash, doc_id = (unquote(part) for part in uri.removeprefix(SCHEME).partition("/"))
    try:
        if not uri.startswith(SCHEME) or not slash:
            raise BadInput(f"resource is {uri!r}; expected {SCHEME}COLLECTION/DOC_ID, as resources/list has them")
        document = TOOLS["get_document"].call(shelf, {"collection": name, "doc_id": doc_id})
    except TrilensError as error:
        raise MCPError(types.INVALID_PARAMS, str(error), {"uri": uri}) from error
    return types.ReadResourceResult(
        contents=[types.TextResourceContents(uri=uri, mime_type="text/plain", text=document["text"])]
    )


def _end(number: int, _frame: object) -> None:
    os._exit(128 + number)


def _ignore(_number: int, _frame: object) -> None:
    """Ignore a signal."""

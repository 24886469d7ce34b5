"""The MCP server in a process of its own, called by the SDK's client over stdio and over streamable HTTP."""

import asyncio
import json
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="run by scripts/test-doors")
pytest.importorskip("httpx")

import httpx
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError

from trilens import Collection, Document, SearchOptions

from ..cli.conftest import Trilens
from ..cli.conftest import trilens as trilens
from ..http.running import TEXTS, command, environment, make_collection

QUERY = "remove a directory"
ODD = "guide/a b?#%.md"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Two collections: one of more documents than a page of resources has, the other small."""
    root = tmp_path_factory.mktemp("mcp")
    make_collection(root / "Small Texts.trilens", ("bm25",))
    with Collection.create(root / "many.trilens", lenses=["bm25"]) as collection:
        collection.add(Document(f"doc-{number}", f"directory number {number}") for number in range(130))
    return [str(root / "Small Texts.trilens"), f"many={root / 'many.trilens'}"]


@asynccontextmanager
async def over_stdio(*folders: str) -> AsyncIterator[Client]:
    program, *arguments = command("mcp", *folders)
    async with Client(StdioServerParameters(command=program, args=arguments, env=environment())) as client:
        yield client


@asynccontextmanager
async def over_http(*folders: str) -> AsyncIterator[Client]:
    started = command("mcp", *folders, "--http", "--port", 0)
    process = subprocess.Popen(started, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    assert process.stdout and process.stderr
    try:
        line = process.stdout.readline()
        assert line.startswith("serving at http://127.0.0.1:"), process.stderr.read()
        for foreign, status in (({"Host": "evil.example"}, 421), ({"Origin": "http://evil.example"}, 403)):  # DNS rebinding
            assert httpx.post(line.split()[2], headers=foreign, json={}).status_code == status
        async with Client(line.split()[2]) as client:
            yield client
    finally:
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, "Traceback" in errors) == (0, False), errors


async def called(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    (content,) = result.content
    assert json.loads(content.text) == result.structured_content  # type: ignore[union-attr]
    return result.structured_content


async def use_tools(client: Client, small: Path) -> None:
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert list(tools) == ["search", "get_document", "explain", "list_collections"]
    assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools.values())
    offered = set(tools["search"].input_schema["properties"])
    assert offered == {"query", "collection", *SearchOptions.model_fields} - {"hyde"}
    count = tools["search"].input_schema["properties"]["k"]
    assert (count["minimum"], count["maximum"]) == (1, 100) and not {"ge", "le"} & set(count)

    listed = await called(client, "list_collections")
    assert listed["collections"][0] == {"name": "Small Texts", "documents": len(TEXTS), "lenses": ["bm25"]}
    where = {"query": QUERY, "collection": "Small Texts"}
    hits = (await called(client, "search", **where, k=2, filter={"year": {"$gte": 2020}}))["hits"]
    with Collection.open(small) as collection:
        (expected,) = collection.search([QUERY], 2, filter={"year": {"$gte": 2020}})
        assert [(hit["doc_id"], hit["score"], hit["text"]) for hit in hits] == [
            (hit.doc_id, hit.score, hit.passage) for hit in expected
        ]
        explained = collection.explain(QUERY, "rmtree").to_json()
    del explained["matrix"]
    assert await called(client, "explain", **where, doc_id="rmtree") == explained
    document = await called(client, "get_document", doc_id=ODD, collection="Small Texts")
    assert (document["text"], document["metadata"]["year"]) == (TEXTS[ODD][1], TEXTS[ODD][2])


async def make_mistakes(client: Client) -> None:
    for tool, arguments, says in (
        ("search", {"query": QUERY}, "collection is missing; expected one of Small Texts, many"),
        (
            "search",
            {"query": QUERY, "collection": "other"},
            "there is no collection 'other'; expected one of Small",
        ),
        ("search", {"collection": "many"}, "query is missing; expected a value"),
        ("search", {"query": QUERY, "collection": "many", "k": 101}, "k is 101; expected at most 100"),
        ("search", {"query": QUERY, "collection": "many", "k": "ten"}, "k is 'ten'; expected a valid integer"),
        ("search", {"query": QUERY, "collection": "many", "lenses": ["smell"]}, "there is no lens 'smell' in this collection"),
        ("search", {"query": QUERY, "collection": "many", "filter": {"a": {"$like": 1}}}, "operator '$like'"),
        (
            "search",
            {"query": QUERY, "collection": "many", "where": {}},
            "option 'where' is not known; expected one of k, offset, lenses",
        ),
        ("search", {"query": QUERY, "collection": "many", "hyde": "http://127.0.0.1:1/v1"}, "hyde is given"),
        ("search", {"query": QUERY, "collection": "many", "rerank": "cross:model=x"}, "rerank is cross; it is not available"),
        ("explain", {"query": QUERY, "doc_id": "none", "collection": "many"}, "there is no document 'none'"),
        ("get_document", {"doc_id": "none", "collection": "many"}, "there is no document 'none'"),
        ("delete", {}, "there is no tool 'delete'; expected one of search"),
    ):
        result = await client.call_tool(tool, arguments)
        (content,) = result.content
        text = content.text  # type: ignore[union-attr]
        assert result.is_error and says in text and "\n" not in text, (arguments, text)


async def read_resources(client: Client) -> None:
    resources, cursor = [], None
    while True:
        page = await client.list_resources(cursor=cursor)
        assert len(page.resources) <= 100
        resources += page.resources
        if (cursor := page.next_cursor) is None:
            break
    assert [resource.name for resource in resources] == [*TEXTS, *(f"doc-{number}" for number in range(130))]
    (template,) = (await client.list_resource_templates()).resource_templates
    assert template.uri_template == "trilens://{collection}/{doc_id}"
    odd = next(resource for resource in resources if resource.name == ODD)
    (content,) = (await client.read_resource(odd.uri)).contents
    assert content.text == TEXTS[ODD][1]  # type: ignore[union-attr]
    for uri, says in (
        ("trilens://many/none", "there is no document 'none'"),
        ("trilens://other/x", "there is no collection 'other'"),
        ("file:///etc/passwd", "expected trilens://COLLECTION/DOC_ID"),
        ("trilens://many", "expected trilens://COLLECTION/DOC_ID"),
    ):
        with pytest.raises(MCPError, match=says):
            await client.read_resource(uri)
    with pytest.raises(MCPError, match="cursor is '9:0'"):
        await client.list_resources(cursor="9:0")


@pytest.mark.parametrize("connect", [over_stdio, over_http])
def test_an_agent_searches_and_reads(connect: Any, folders: list[str]) -> None:
    async def scenario() -> None:
        async with connect(*folders) as client:
            await use_tools(client, Path(folders[0]))
            await make_mistakes(client)
            await read_resources(client)

    asyncio.run(asyncio.wait_for(scenario(), 120))


def test_one_collection_needs_no_name_and_commits_of_others_are_seen(tmp_path: Path) -> None:
    path = make_collection(tmp_path / "notes.trilens", ("bm25",))

    async def scenario() -> None:
        async with over_stdio(str(path)) as client:
            assert (await called(client, "search", query="zeppelin"))["hits"] == []
            with Collection.open(path) as collection:
                collection.add([Document("new", "A zeppelin.")])
            (hit,) = (await called(client, "search", query="zeppelin"))["hits"]
            assert hit["doc_id"] == "new"

    asyncio.run(asyncio.wait_for(scenario(), 120))


def test_the_server_ends_with_its_input_or_a_signal(folders: list[str]) -> None:
    for end, code in ((None, 0), (signal.SIGTERM, 143)):
        process = subprocess.Popen(
            command("mcp", *folders), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
        )
        assert process.stdin and process.stdout
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
        process.stdin.write(line.encode() + b"\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["result"]["serverInfo"]["name"] == "trilens"
        if end:
            process.send_signal(end)
            process.wait(timeout=60)
        out, errors = process.communicate(timeout=60)
        assert (process.returncode, out, b"Traceback" in errors) == (code, b"", False), errors


def test_refusals_of_the_command(trilens: Trilens, tmp_path: Path) -> None:
    said = trilens("mcp", tmp_path / "none.trilens")
    assert (said.code, said.err.startswith("trilens: there is no collection at ")) == (1, True)

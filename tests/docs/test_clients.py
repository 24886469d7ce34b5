"""The Python of docs/clients.md, run beside a service, and its configurations, read as JSON."""

import ast
import asyncio
import inspect
import json
from pathlib import Path

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx")

from ..http.running import running
from .pages import ROOT, blocks

PAGE = ROOT / "docs" / "clients.md"


def test_the_clients_of_the_page_run(page_folder: Path) -> None:
    """Code with `await` at its top level is awaited."""
    written = [block for block in blocks(PAGE) if block.language == "py"]
    with running("my.trilens", "--keys", "keys.txt", "--write") as service:
        for block in written:
            code = block.code.replace("http://127.0.0.1:8000/", service.address).replace(
                "http://127.0.0.1:8000", service.address
            )
            compiled = compile(code, str(PAGE), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            namespace: dict[str, object] = {}
            result = eval(compiled, namespace)
            if inspect.iscoroutine(result):
                asyncio.run(result)
            assert namespace["hits"]
    assert len(written) == 2


def test_the_configurations_of_hosts_are_json() -> None:
    configurations = [json.loads(block.code) for block in blocks(PAGE) if block.language == "json"]
    servers = [configuration["mcpServers"]["documents"] for configuration in configurations]
    assert [server.get("command") for server in servers] == ["trilens", None]

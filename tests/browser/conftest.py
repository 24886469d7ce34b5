import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("playwright.sync_api", reason="the tests of the page need playwright")

from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from ..http.running import Running, make_collection, running

ARTIFACTS = Path(__file__).parents[2] / "artifacts"
PATIENCE_MS = 30_000  # only a failure takes so long
expect.set_options(timeout=PATIENCE_MS)
CHROMIUM = shutil.which("chromium")


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    path = make_collection(tmp_path_factory.mktemp("browser") / "library.trilens")
    with running(path) as service:
        yield service


@pytest.fixture(scope="package")  # while it is there, so is an event loop, and other tests want to run their own
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("there is no chromium: ./scripts/browser installs it")
    with sync_playwright() as player:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = player.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def context(browser: Browser, served: Running) -> Iterator[BrowserContext]:
    """A fresh browser that may call nobody but the service, and whose pages must not complain."""
    context = browser.new_context(base_url=served.address, viewport={"width": 1280, "height": 860})
    context.set_default_timeout(PATIENCE_MS)
    outside: list[str] = []
    context.on("request", lambda request: None if request.url.startswith(served.address) else outside.append(request.url))
    yield context
    context.close()
    assert outside == []


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    page = context.new_page()
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    yield page
    assert problems == []

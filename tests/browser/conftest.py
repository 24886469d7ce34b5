import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("playwright.sync_api", reason="the tests of the page need playwright")

from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from trilens import Collection, Document
from trilens.lenses.lens import FEWEST_ROWS

from ..http.running import WRITE_KEY, Running, make_collection, running

ARTIFACTS = Path(__file__).parents[2] / "artifacts"
PATIENCE_MS = 30_000  # only a failure takes so long
expect.set_options(timeout=PATIENCE_MS)
CHROMIUM = shutil.which("chromium")


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    lenses = ("bm25", "dense", "sparse", "lexical", "multi")
    with running(make_collection(tmp_path_factory.mktemp("browser") / "library.trilens", lenses)) as service:
        yield service


@pytest.fixture(scope="session")
def writable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service that may be written to with a key, with a long document, whose source is an address."""
    path = make_collection(tmp_path_factory.mktemp("browser") / "notes.trilens", ("bm25",))
    lines = [f"Line {number} is about nothing in particular, as most lines are." for number in range(400)]
    text = "\n".join([*lines[:200], "😀 Zebras graze among the acacias.", *lines[200:]])
    metadata = {"url": "https://example.org/animals.pdf", "page": 7, "source": "javascript:alert(1)"}
    with Collection.open(path) as collection:
        collection.add([Document("animals", text, "All animals", metadata)])
    with running(path, "--write", "--max-body", 100_000, TRILENS_WRITE_KEYS=WRITE_KEY) as service:
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


@contextmanager
def calling_nobody_else(browser: Browser, service: Running) -> Iterator[BrowserContext]:
    """A fresh browser that may call nobody but the service."""
    context = browser.new_context(base_url=service.address, viewport={"width": 1280, "height": 860})
    context.set_default_timeout(PATIENCE_MS)
    outside: list[str] = []
    context.on("request", lambda request: None if request.url.startswith(service.address) else outside.append(request.url))
    yield context
    context.close()
    assert outside == []


@pytest.fixture
def context(browser: Browser, served: Running) -> Iterator[BrowserContext]:
    with calling_nobody_else(browser, served) as context:
        yield context


@pytest.fixture
def notes(browser: Browser, writable: Running) -> Iterator[Page]:
    """A page of the service that may be written to."""
    with calling_nobody_else(browser, writable) as context:
        yield context.new_page()


@pytest.fixture
def large(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    """A page of a service with enough passages to tell that a match is weak."""
    path = make_collection(tmp_path / "library.trilens")
    with Collection.open(path) as collection:
        collection.add(Document(f"planet{number}", f"Observation {number} of a planet.") for number in range(FEWEST_ROWS))
    with running(path) as service, calling_nobody_else(browser, service) as context:
        yield context.new_page()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    page = context.new_page()
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    yield page
    assert problems == []

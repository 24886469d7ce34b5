"""Makes the pictures of the web page: ./scripts/pictures. Every view on a desktop and a phone, light and dark.

Those that the documentation shows are written to this folder, the others to `artifacts`, for people to look at. The collection
holds docstrings of the Python standard library. Pictures have 256 colours, which keeps them small.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import BrowserContext, Page, sync_playwright

from trilens import Collection, Document
from trilens.read.python_docs import standard_library

FOLDER = Path(__file__).parent
ARTIFACTS = FOLDER.parents[1] / "artifacts"
SHOWN = (
    "page",
    "five-lenses-desktop-light",
    "document-desktop-light",
    "explanation-desktop-dark",
    "results-phone-light",
    "gibberish-phone-dark",
)
MODULE_NAMES = """
asyncio calendar collections csv datetime difflib email functools heapq http itertools json math os pathlib random re shutil
sqlite3 statistics tarfile tempfile threading time zipfile
"""
MODULES = frozenset(MODULE_NAMES.split())
LENSES = ("bm25", "dense", "sparse", "lexical", "multi")
KEY = "a-key-of-the-pictures"
SCREENS = {"desktop": (1280, 820), "phone": (390, 844)}
QUESTION = {"q": "compute the difference between two dates"}
COLOURS = 256
ITERATIONS = 5  # of k-means, so that small areas such as the dots of lenses keep their colours


def documents() -> Iterator[Document]:
    """Docstrings of some modules, with the address of the page that documents the module."""
    for document in standard_library():
        module = document.doc_id.split(".")[0]
        if module in MODULES:
            address = {"url": f"https://docs.python.org/3/library/{module}.html"}
            yield replace(document, metadata={**address, "kind": document.metadata["kind"]})


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a service with the documents; it ends with the block."""
    path = folder / "python.trilens"
    with Collection.create(path, lenses=LENSES) as collection:
        collection.add(documents())
    command = [sys.executable, "-m", "trilens", "serve", str(path), "--port", "0", "--write"]
    keys = {"TRILENS_READ_KEYS": KEY, "TRILENS_WRITE_KEYS": KEY}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | keys) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[2]
        finally:
            process.terminate()


def at(**state: str) -> Callable[[Page], object]:
    """Opens the page with a state, which is its address."""
    return lambda page: page.goto(f"/?{urlencode(state)}")


def collections(page: Page) -> None:
    """The page of collections."""
    page.goto("/collections")


def wrong_key(page: Page) -> None:
    """A key that the service does not know."""
    page.goto("/")
    page.get_by_role("heading", name="API key required").wait_for()
    page.evaluate("sessionStorage.setItem('trilens-key', 'a-key-that-nobody-knows')")
    page.reload()
    page.get_by_role("heading", name="The key was refused").wait_for()


def add(page: Page) -> None:
    """The dialog that adds documents."""
    page.goto("/")
    page.get_by_role("button", name="Add", exact=True).click()


VIEWS: dict[str, Callable[[Page], object]] = {
    "start": at(),
    "results": at(**QUESTION),
    "five-lenses": at(**QUESTION, view="side"),
    "explanation": at(**QUESTION, doc="datetime.timedelta"),
    "document": at(q="leave out some subdirectories when walking a tree", open="os.walk"),
    "gibberish": at(q="qwxz flurbel gronk"),
    "add": add,
    "collections": collections,
    "wrong-key": wrong_key,
    "page": at(**QUESTION, view="side", lens="bm25,dense,multi", doc="datetime.timedelta"),
}


def take(context: BrowserContext, name: str, picture_name: str) -> None:
    """Take the picture of a view. It is shown twice, because the first search of a kind is slower."""
    page = context.new_page()
    if name != "wrong-key":
        page.add_init_script(f"sessionStorage.setItem('trilens-key', '{KEY}')")
    for _ in range(2):
        VIEWS[name](page)
        page.wait_for_load_state("networkidle")
    page.wait_for_timeout(300)  # for transitions
    image = Image.open(BytesIO(page.screenshot())).convert("RGB")
    folder = FOLDER if picture_name in SHOWN else ARTIFACTS
    picture = image.quantize(COLOURS, kmeans=ITERATIONS, dither=Image.Dither.NONE)
    picture.save(folder / f"{picture_name}.png", optimize=True)
    page.close()


def main() -> None:
    """Take the pictures of all views, or of those that are named."""
    chosen = sys.argv[1:] or list(VIEWS)
    if unknown := set(chosen) - set(VIEWS):
        sys.exit(f"there is no view {', '.join(sorted(unknown))}; expected some of {', '.join(VIEWS)}")
    ARTIFACTS.mkdir(exist_ok=True)
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory() as folder, served(Path(folder)) as address, sync_playwright() as player:
        browser = player.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        for device, (width, height) in SCREENS.items():
            for scheme in ("light", "dark"):
                context = browser.new_context(
                    base_url=address,
                    viewport={"width": width, "height": height},
                    color_scheme="dark" if scheme == "dark" else "light",
                )
                for name in chosen:
                    if name != "page":
                        take(context, name, f"{name}-{device}-{scheme}")
                    elif (device, scheme) == ("desktop", "light"):
                        take(context, name, name)
                context.close()
        browser.close()


if __name__ == "__main__":
    main()

"""Reports in a real browser: nothing is fetched, nothing complains, nothing is wider than the window."""

from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from playwright.sync_api import Browser

from trilens.evaluate.comparison import compare
from trilens.evaluate.examples import ExampleFinder
from trilens.evaluate.report import comparison_page

NAMES = ["bm25", "dense", "multi:method=xtr,probes=64,candidates=1000,margin=0.25"]


@pytest.fixture
def report(tmp_path: Path) -> Path:
    random = np.random.default_rng(1)
    runs = {name: {f"q{n}": {f"d{m}": float(random.normal()) for m in range(9)} for n in range(30)} for name in NAMES}
    qrels = {f"q{n}": {f"d{n % 9}": 1} for n in range(30)}
    comparison = compare(runs, qrels, ["nDCG@10", "AP"])
    examples = ExampleFinder(comparison, runs, qrels, {"q1": "word " * 40 + "w" * 300}).largest_differences(30)
    file = tmp_path / "report.html"
    file.write_text(comparison_page(comparison, examples, "Comparison"), encoding="utf-8")
    return file


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390, 320])
def test_a_report_fits_and_is_quiet(report: Path, browser: Browser, width: int, scheme: Literal["light", "dark"]) -> None:
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    problems: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: problems.append(message.text))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(report.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("svg circle").count() > 30
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, ground.strip("rgb()").split(","))) > 384) == (scheme == "light")
    assert (problems, requests) == ([], [report.as_uri()])
    context.close()

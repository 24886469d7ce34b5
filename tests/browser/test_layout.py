"""How the page looks and loads: its size, accessibility, and what fits on a screen."""

from typing import Any

import pytest

pytest.importorskip("playwright.sync_api", reason="the tests of the page need playwright")

from playwright.sync_api import Browser, Page, Response, Route, expect

from ..http.running import Running
from .conftest import calling_nobody_else

QUESTION = "/?q=remove+a+folder+and+everything+inside+it"
VIEWS = {
    "/": ".examples button",
    QUESTION: ".hit mark",
    f"{QUESTION}&view=side&k=3": ".column .hit",
    f"{QUESTION}&doc=rmtree": ".cloud li",
    f"{QUESTION}&open=rmtree": ".whole mark",
    '/?q=directory&filter=[["year","$gt","3000"]]': ".message",
    "/collections": ".collection",
    "/docs": "#Answers",
}


def problems(page: Page) -> list[str]:
    """The serious violations that axe-core finds, one line each."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="the accessibility tests need axe-core")
    found = axe.Axe().run(page).response["violations"]
    serious = [one for one in found if one["impact"] in ("serious", "critical")]
    return [f"{one['id']}: {node['target']} {node['failureSummary']}" for one in serious for node in one["nodes"]]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser: Browser, served: Running, scheme: Any) -> None:
    with calling_nobody_else(browser, served) as context:
        page = context.new_page()
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        for address, ready in list(VIEWS.items())[: 5 if scheme == "dark" else None]:  # the colours are in the first five
            page.goto(address)
            expect(page.locator(ready).first).to_be_visible()
            assert problems(page) == [], address


def test_axe_finds_nothing_serious_in_the_forms(notes: Page) -> None:
    notes.goto("/")
    notes.get_by_role("button", name="Filters").click()
    assert problems(notes) == []
    notes.get_by_role("button", name="Add", exact=True).click()
    notes.get_by_label("Text", exact=True).fill("x")
    assert problems(notes) == []
    notes.get_by_role("button", name="Add text").click()
    expect(notes.get_by_role("heading", name="API key required")).to_be_visible()
    assert problems(notes) == []


@pytest.mark.parametrize("address", ["/", "/collections"])
def test_the_page_loads_in_less_than_100_kilobytes(page: Page, address: str) -> None:
    responses: list[Response] = []
    page.on("response", lambda response: responses.append(response))
    page.goto(address)
    page.wait_for_load_state("networkidle")
    sizes = {response.url: len(response.body()) for response in responses}
    assert any(url.endswith("style.css") for url in sizes)
    assert sum(sizes.values()) < 100_000, sizes


def test_five_lenses_fit_on_a_small_desktop(page: Page) -> None:
    page.goto(f"{QUESTION}&view=side")
    expect(page.locator(".column .title").first).to_be_visible()
    columns = page.locator(".column")
    boxes = [box for column in columns.all() if (box := column.bounding_box())]
    assert [box["x"] + box["width"] <= 1280 for box in boxes] == [True] * 5
    assert page.locator(".columns").evaluate("node => node.scrollWidth <= node.clientWidth")


def test_two_results_fit_on_a_phone(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(QUESTION)
    box = page.locator(".hit").nth(1).bounding_box()
    assert box and box["y"] + box["height"] <= 844


def test_a_long_title_leaves_the_score_whole(page: Page) -> None:
    page.goto(f"{QUESTION}&view=side")
    title = page.locator(".column .title").first
    title.evaluate("node => node.textContent = 'a_very_long_title_without_any_space'.repeat(4)")
    for score in page.locator(".column .hit .score").all()[:5]:
        assert score.evaluate("node => node.getClientRects().length === 1 && node.scrollWidth <= node.clientWidth + 1")


LONG_TITLE = "open_archive(name=None,mode=None,fileobj=None,bufsize=10240)"


def with_other_texts(route: Route) -> None:
    response = route.fetch()
    body = response.json()
    for hit in body["answers"][0]["hits"]:
        hit["title"] = LONG_TITLE
        hit["snippet"] |= {"title_matches": [], "text": "one\n\n \n\ntwo\nthree", "matches": [[0, 3]]}
    route.fulfill(response=response, json=body)


def test_a_long_title_stays_beside_its_rank_and_breaks_at_signs(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.route("**/search", with_other_texts)
    page.goto(QUESTION)
    title = page.locator(".hit .title").first
    expect(title).to_have_text(LONG_TITLE)
    rank, box = page.locator(".hit .rank").first.bounding_box(), title.bounding_box()
    assert rank and box
    assert rank["x"] + rank["width"] <= box["x"] and rank["y"] < box["y"] + box["height"] / 2
    assert box["height"] > rank["height"] * 1.5  # it takes two lines
    assert title.locator("wbr").count() == sum(LONG_TITLE.count(sign) for sign in "_(,=")


def test_a_snippet_has_no_blank_lines(page: Page) -> None:
    page.route("**/search", with_other_texts)
    page.goto(QUESTION)
    text = page.locator(".hit .text").first
    expect(text.locator("mark")).to_have_text("one")
    assert text.inner_text().strip(" …") == "one\ntwo\nthree"


def with_a_long_address(route: Route) -> None:
    response = route.fetch()
    body = response.json()
    body["documents"][0]["metadata"]["url"] = "https://example.org/a/long/path/to/animals.pdf"
    route.fulfill(response=response, json=body)


def test_nothing_is_cut_on_a_phone(notes: Page) -> None:
    notes.set_viewport_size({"width": 390, "height": 844})
    notes.goto("/?q=zebras")
    tags = notes.locator(".hit .tags").first
    room = tags.bounding_box()
    boxes = [box for tag in tags.locator(".tag").all() if (box := tag.bounding_box())]
    assert room and len(boxes) == 4
    for box in boxes:  # whole, or on a line that is hidden
        below = box["y"] >= room["y"] + room["height"]
        assert below or box["x"] + box["width"] <= room["x"] + room["width"]
    notes.route("**/documents**", with_a_long_address)
    notes.locator(".hit").first.get_by_role("button", name="Open All animals").click()
    expect(notes.get_by_role("button", name="To the passage")).to_be_in_viewport(ratio=1)
    expect(notes.get_by_role("button", name="Close the document")).to_be_in_viewport(ratio=1)
    notes.route("**/collections", lambda route: route.fulfill(status=401, json={"error": "a read key is required; send it"}))
    notes.goto("/")
    dialog = notes.get_by_role("dialog", name="API key required").bounding_box()
    assert dialog and dialog["x"] >= 12 and dialog["x"] + dialog["width"] <= 390 - 12

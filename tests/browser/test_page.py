"""The web page as people use it, in a real browser."""

import json
import re
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

pytest.importorskip("playwright.sync_api", reason="the tests of the page need playwright")

from playwright.sync_api import Browser, BrowserContext, Page, expect

from ..http.running import TEXTS, WRITE_KEY, Running, make_collection, running
from .conftest import ARTIFACTS, calling_nobody_else

QUESTION = "remove a folder and everything inside it"


def ask(page: Page, question: str = QUESTION, **more: str) -> None:
    page.goto("/")
    page.get_by_label("Search the collection").fill(question)
    page.keyboard.press("Enter")
    expect(page.locator(".hit .title").first).to_be_visible()


def said(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def titles(page: Page) -> list[str]:
    return page.locator(".hit .title").all_inner_texts()


def test_a_search_shows_documents_with_what_each_lens_gave(page: Page) -> None:
    page.goto("/")
    expect(page.get_by_role("heading", name="Search through several lenses.")).to_be_visible()
    expect(page.locator(".about li")).to_have_count(5)
    ask(page)
    first = page.locator(".hit").first
    expect(first).to_contain_text("shutil.rmtree")
    expect(first.locator(".stack .part")).to_have_count(5)
    expect(page.get_by_role("status")).to_contain_text(re.compile(r"\d+ documents in [\d.]+ ms"))
    expect(first.locator("mark").first).to_be_visible()
    assert said(page)["q"] == [QUESTION]


def test_lenses_are_switched_and_the_last_stays(page: Page) -> None:
    ask(page, "square root")
    for lens in ("dense", "sparse", "lexical", "multi"):
        page.get_by_role("button", name=lens, exact=True).click()
        expect(page.get_by_role("button", name=lens, exact=True)).to_have_attribute("aria-pressed", "false")
    assert said(page)["lens"] == ["bm25"]
    expect(page.locator(".hit")).to_have_count(2)  # the other one is "rooted"
    expect(page.locator(".hit").first.locator(".part")).to_have_count(1)
    page.get_by_role("button", name="bm25", exact=True).click(force=True)
    assert said(page)["lens"] == ["bm25"]


def test_side_by_side_has_a_column_for_each_lens(page: Page) -> None:
    ask(page)
    page.get_by_role("radio", name="Side by side").check()
    expect(page.locator(".column")).to_have_count(5)
    expect(page.locator(".column").nth(1)).to_have_attribute("aria-label", "Lens dense")
    assert said(page)["view"] == ["side"]
    page.locator(".column").nth(1).locator(".title").first.click()
    expect(page.get_by_role("tab", name="dense")).to_have_attribute("aria-selected", "true")


def test_an_explanation_opens_with_parts_that_add_up_and_closes(page: Page) -> None:
    ask(page)
    page.locator(".hit .title").first.click()
    panel = page.locator("#panel")
    expect(panel.locator(".bars li")).to_have_count(5)
    total, *parts = [panel.locator(".total b").inner_text(), *panel.locator(".bars .value").all_inner_texts()]
    rounding = sum(0.5 * 10.0 ** -len(text.partition(".")[2]) for text in (total, *parts))
    assert sum(map(float, parts)) == pytest.approx(float(total), abs=rounding)
    places = panel.locator(".bars .name small").all_inner_texts()
    assert [place for place in places if not re.fullmatch(r"(#\d+|not returned) · [+−]\d+\.\d σ", place)] == []
    assert len(places) == 5
    panel.get_by_role("tab", name="multi").click()
    expect(panel.locator("canvas")).to_be_visible()
    panel.get_by_role("tab", name="bm25").click()
    expect(panel.locator(".passage mark").first).to_be_visible()
    expect(panel.locator(".cloud li").first).to_be_visible()
    assert said(page)["doc"] == ["rmtree"]
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(page.locator(".hit .title").first).to_be_focused()


def test_filters_exclude_and_can_be_removed(page: Page) -> None:
    ask(page, "directory")
    before = len(titles(page))
    page.get_by_role("button", name="Filters").click()
    page.get_by_label("Field").fill("year")
    page.get_by_label("Operator").select_option("$gte")
    page.get_by_label("Value").fill("2021")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("button", name="Filters · 1")).to_be_visible()
    expect(page.get_by_text("os.rmdir")).to_have_count(0)
    assert json.loads(said(page)["filter"][0]) == [["year", "$gte", "2021"]]
    page.get_by_label("Value").fill("3000")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("heading", name="Nothing found")).to_be_visible()
    page.get_by_role("button", name="Remove the filters").click()
    expect(page.locator(".hit")).to_have_count(before)


def test_back_and_forward_go_through_what_was_shown(page: Page) -> None:
    ask(page, "square root")
    first = titles(page)
    page.get_by_label("Search the collection").fill("wait for threads")
    page.keyboard.press("Enter")
    expect(page.locator(".hit .title").first).to_have_text("threading.Barrier")
    page.locator(".hit .title").first.click()
    expect(page.locator("#panel")).to_be_visible()
    page.go_back()
    expect(page.locator("#panel")).to_be_hidden()
    page.go_back()
    expect(page.get_by_label("Search the collection")).to_have_value("square root")
    expect(page.locator(".hit .title").first).to_have_text(first[0])
    page.go_forward()
    expect(page.locator(".hit .title").first).to_have_text("threading.Barrier")


def test_an_address_can_be_shared(page: Page) -> None:
    page.goto("/?q=delete+a+directory&lens=bm25,dense&view=side&doc=rmdir")
    expect(page.locator(".column")).to_have_count(2)
    expect(page.locator("#panel h2")).to_have_text("os.rmdir")
    expect(page.locator("#panel").get_by_role("tab")).to_have_count(3)


def test_the_keyboard_is_enough(page: Page) -> None:
    ask(page)
    page.keyboard.press("ArrowDown")
    expect(page.locator(".hit .title").nth(0)).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".hit .title").nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#panel .bars")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".hit .title").nth(1)).to_be_focused()
    page.keyboard.press("/")
    expect(page.get_by_label("Search the collection")).to_be_focused()


def test_errors_are_shown_and_can_be_tried_again(context: BrowserContext) -> None:
    page = context.new_page()
    page.goto("/")
    page.route("**/search", lambda route: route.abort())
    page.get_by_label("Search the collection").fill("x")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="No answer")).to_be_visible()
    page.unroute("**/search")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".hit").first).to_be_visible()


def test_more_results_follow_those_that_are_shown(page: Page) -> None:
    ask(page, "directory")
    expect(page.locator(".hit")).to_have_count(10)
    first = titles(page)
    page.get_by_role("button", name="More results").click()
    expect(page.locator(".hit")).to_have_count(11)
    expect(page.locator(".hit .title").nth(10)).to_be_focused()
    expect(page.get_by_role("button", name="More results")).to_have_count(0)
    assert titles(page)[:10] == first and len(set(titles(page))) == 11
    assert page.locator(".rank").all_inner_texts() == [str(rank) for rank in range(1, 12)]
    assert said(page)["k"] == ["20"]
    page.go_back()
    expect(page.locator(".hit")).to_have_count(10)
    page.goto("/?q=directory&view=side&lens=dense,multi&k=5")
    expect(page.locator(".hit")).to_have_count(10)
    page.get_by_role("button", name="More results").click()
    expect(page.locator(".hit")).to_have_count(22)


def test_gibberish_is_not_answered_confidently(large: Page) -> None:
    ask(large, "qwxz flurbel gronk")
    expect(large.get_by_role("status")).to_contain_text("only weak matches")
    expect(large.locator(".hit").first.get_by_text("weak match")).to_be_visible()
    for mark in large.locator(".hit mark").all():
        expect(mark).to_have_css("background-color", "rgba(0, 0, 0, 0)")
    expect(large.locator(".hit .stack").first).to_have_css("opacity", "0.4")
    large.locator(".hit .title").first.click()
    expect(large.locator("#panel .total")).to_contain_text("weak match")
    ask(large, TEXTS["rmtree"][1])
    expect(large.locator(".hit").first).to_contain_text("shutil.rmtree")
    expect(large.locator(".hit").first.get_by_text("weak match")).to_have_count(0)
    expect(large.get_by_role("status")).not_to_contain_text("weak")


def test_examples_come_from_the_collection(page: Page) -> None:
    page.goto("/")
    examples = page.locator(".examples button")
    expect(examples).to_have_count(4)
    query = examples.first.inner_text()
    assert any(query in f"{title} {text}" for title, text, *_ in TEXTS.values())
    examples.first.click()
    expect(page.get_by_label("Search the collection")).to_have_value(query)
    expect(page.locator(".hit").first).to_contain_text(query.split()[-1])


def test_collections_have_figures_and_health(page: Page) -> None:
    page.goto("/collections")
    library = page.locator(".collection")
    expect(library).to_have_count(1)
    expect(library).to_contain_text("can be searched")
    figures = dict(zip(library.locator("dt").all_inner_texts(), library.locator("dd").all_inner_texts(), strict=True))
    assert (figures["Documents"], figures["Passages"], figures["Commits"]) == ("11", "11", "1")
    assert re.fullmatch(r"[\d.]+ [kM]B", figures["On disk"])
    library.get_by_role("link", name="library").click()
    expect(page.get_by_role("heading", name="Search through several lenses.")).to_be_visible()


def test_a_collection_that_is_not_served_is_named(page: Page) -> None:
    page.goto("/?c=other&q=square+root")
    expect(page.get_by_role("heading", name="There is no collection other")).to_be_visible()
    expect(page.locator(".hit")).to_have_count(0)
    page.get_by_role("button", name="library", exact=True).click()
    expect(page.locator(".hit .title").first).to_have_text("math.sqrt")
    assert said(page)["c"] == ["library"]


def test_a_collection_that_is_gone_does_not_hide_the_others(browser: Browser, tmp_path: Path) -> None:
    here, gone = (make_collection(tmp_path / f"{name}.trilens", ("bm25",)) for name in ("here", "gone"))
    with running(here, gone) as service, calling_nobody_else(browser, service) as context:
        shutil.rmtree(gone)
        page = context.new_page()
        page.goto("/collections")
        expect(page.locator(".collection")).to_have_count(2)
        expect(page.locator(".health")).to_have_text(["can be searched", "cannot be searched"])
        expect(page.locator(".collection p.problem")).to_contain_text("gone.trilens")
        expect(page.locator(".collection p.problem")).to_have_css("color", "rgb(179, 38, 30)")
        page.goto("/?q=square+root")
        expect(page.locator(".hit .title").first).to_have_text("math.sqrt")
        assert service.call("GET", "/metrics").status_code == 200


EVIL = "<img src=x onerror=document.title='owned'><script>document.title='owned'</script>"


def test_documents_cannot_run_code(browser: Browser, tmp_path: Any) -> None:
    from trilens import Collection, Document

    path = make_collection(tmp_path / "evil.trilens", ("bm25",))
    with Collection.open(path) as collection:
        collection.upsert([Document(f"evil {EVIL} 😀", f"😀 evil 😀 words {EVIL}", title=EVIL, metadata={EVIL: EVIL})])
    with running(path, TRILENS_READ_KEYS=WRITE_KEY) as service:
        page = browser.new_page(base_url=service.address)
        page.goto("/?q=evil+words")
        expect(page.get_by_role("heading", name="API key required")).to_be_visible()
        expect(page.get_by_role("alert")).to_have_text("A read key is required.")
        expect(page.get_by_label("Collection", exact=True)).to_be_disabled()  # it has no choice
        page.get_by_role("textbox", name="Key").fill("a-key-that-nobody-knows")
        page.get_by_role("button", name="Use it").click()
        expect(page.get_by_role("heading", name="The key was refused")).to_be_visible()
        expect(page.get_by_role("alert")).to_have_text("This key is not known.")
        page.get_by_role("textbox", name="Key").fill(WRITE_KEY)
        page.get_by_role("button", name="Use it").click()
        expect(page.locator(".hit .title").first).to_have_text(EVIL)
        expect(page.locator(".hit mark").first).to_have_text("evil")
        page.locator(".hit .title").first.click()
        expect(page.locator("#panel .passage mark").first).to_have_text("evil")
        assert page.title() == "evil words · trilens"
        assert page.locator("main img, main script").count() == 0
        page.close()


def test_the_reference_is_complete(page: Page) -> None:
    page.goto("/docs")
    expect(page.get_by_text("/api/v1/collections/{name}/search")).to_be_visible()
    expect(page.locator("#Answers")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("device", "width", "height"), [("desktop", 1280, 860), ("phone", 390, 844)])
def test_pictures(browser: Browser, served: Running, scheme: Any, device: str, width: int, height: int) -> None:
    """Nothing is wider than the screen; the pictures are for people to look at."""
    ARTIFACTS.mkdir(exist_ok=True)
    context = browser.new_context(base_url=served.address, viewport={"width": width, "height": height}, color_scheme=scheme)
    page = context.new_page()
    views = {
        "welcome": ("/", ".about"),
        "fused": ("/?q=remove+a+folder+and+everything+inside+it", ".hit mark"),
        "side": ("/?q=remove+a+folder+and+everything+inside+it&view=side", ".hit mark"),
        "open": ("/?q=remove+a+folder+and+everything+inside+it&open=rmtree", ".whole mark"),
        "collections": ("/collections", ".collection"),
        "explained": ("/?q=remove+a+folder+and+everything+inside+it&doc=rmtree", ".cloud li"),
        "nothing": ('/?q=directory&filter=[["year","$gt","3000"]]', ".message"),
    }
    for name, (address, ready) in views.items():
        page.goto(address)
        expect(page.locator(ready).first).to_be_visible()
        page.wait_for_load_state("networkidle")
        page.screenshot(path=ARTIFACTS / f"{name}-{device}-{scheme}.png")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
    page.goto(views["explained"][0] + "&lens=multi,bm25")
    page.get_by_role("tab", name="multi").click()
    page.locator("canvas").scroll_into_view_if_needed()
    page.screenshot(path=ARTIFACTS / f"alignment-{device}-{scheme}.png")
    context.close()

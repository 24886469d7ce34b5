"""Reading whole documents in the page, and adding some."""

import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

pytest.importorskip("playwright.sync_api", reason="the tests of the page need playwright")

from playwright.sync_api import Page, expect

from ..http.running import TEXTS, WRITE_KEY, Running


def opened(page: Page) -> list[str]:
    return parse_qs(urlsplit(page.url).query).get("open", [])


def test_a_document_opens_at_its_passage_and_closes(notes: Page) -> None:
    notes.goto("/?q=zebras+acacias")
    button = notes.locator(".hit").first.get_by_role("button", name="Open All animals")
    button.click()
    reader = notes.get_by_role("dialog")
    expect(reader.get_by_role("heading", name="All animals")).to_be_visible()
    expect(reader.locator(".found")).to_contain_text("😀 Zebras graze among the acacias.")
    expect(reader.locator(".found")).not_to_contain_text("Line 100 ")
    expect(reader.locator(".found mark")).to_have_text(["Zebras", "acacias"])
    expect(reader.locator(".found mark").first).to_be_in_viewport()
    expect(reader.locator(".whole")).to_contain_text(re.compile("Line 0 .*Line 399 ", re.DOTALL))
    assert opened(notes) == ["animals"]
    notes.keyboard.press("Escape")
    expect(reader).to_be_hidden()
    expect(button).to_be_focused()
    expect(notes).not_to_have_url(re.compile("open="))


def test_an_open_document_has_an_address_and_the_keyboard_opens_it(notes: Page) -> None:
    notes.goto("/?q=zebras&open=animals")
    expect(notes.locator("#reader .found mark")).to_have_text("Zebras")
    notes.get_by_role("button", name="Close the document").click()
    expect(notes).not_to_have_url(re.compile("open="))  # the event of the dialog comes later
    notes.keyboard.press("ArrowDown")
    expect(notes.locator(".hit .title").first).to_be_focused()
    notes.keyboard.press("o")
    expect(notes.locator("#reader .found")).to_be_in_viewport()
    notes.go_back()
    expect(notes.get_by_role("dialog")).to_be_hidden()
    notes.goto("/?open=sqrt")  # without a query there is no passage
    expect(notes.locator("#reader .whole")).to_have_text(TEXTS["sqrt"][1])
    notes.goto("/?open=nothing")
    expect(notes.get_by_role("alert")).to_have_text("There is no document nothing in notes.")


def test_only_web_addresses_become_links(notes: Page) -> None:
    notes.goto("/?q=zebras")
    links = notes.locator(".hit").first.get_by_role("link")
    expect(links).to_have_count(1)
    expect(links).to_have_attribute("href", "https://example.org/animals.pdf#page=7")
    expect(links).to_have_attribute("rel", "noopener noreferrer")
    expect(notes.locator(".hit").first).to_contain_text("page 7")


def test_text_is_added_with_a_write_key(notes: Page, writable: Running) -> None:
    notes.goto("/")
    notes.get_by_role("button", name="Add", exact=True).click()
    dialog = notes.locator("#adder")
    dialog.get_by_label("Text", exact=True).fill("Lemurs leap through the canopy.")
    dialog.get_by_label("Id", exact=True).fill("lemurs")
    dialog.get_by_role("button", name="Add text").click()
    notes.get_by_role("textbox", name="Key").fill(WRITE_KEY)
    notes.get_by_role("button", name="Use it").click()
    expect(dialog.get_by_role("status")).to_contain_text("lemurs 1 added; 13 documents in all")
    dialog.get_by_label("Text", exact=True).fill("Other lemurs.")
    dialog.get_by_label("Id", exact=True).fill("lemurs")
    dialog.get_by_role("button", name="Add text").click()
    expect(dialog.locator(".problem")).to_contain_text("'lemurs'")
    dialog.get_by_role("button", name="Open").click()
    expect(notes.locator("#reader .whole")).to_have_text("Lemurs leap through the canopy.")
    assert writable.call("DELETE", "/collections/notes/documents/lemurs", WRITE_KEY).status_code == 200


def test_files_are_dropped_and_bad_ones_named(notes: Page, writable: Running, tmp_path: Path) -> None:
    notes.goto("/")
    notes.evaluate("key => sessionStorage.setItem('trilens-key', key)", WRITE_KEY)
    notes.reload()
    expect(notes.get_by_role("button", name="Add", exact=True)).to_be_visible()
    dropped = notes.evaluate_handle(
        """() => { const drop = new DataTransfer(); drop.items.add(new File(["# Okapi\\n\\nA shy animal."], "okapi.md"));
        return drop }"""
    )
    notes.dispatch_event("main", "drop", {"dataTransfer": dropped})
    lines = notes.locator("#added li")
    expect(lines).to_have_text([re.compile("okapi.md 1 added")])
    (tmp_path / "a.xyz").write_text("x")
    (tmp_path / "large.txt").write_text("x" * 200_000)
    notes.locator("#adder input[type=file]").set_input_files([tmp_path / "a.xyz", tmp_path / "large.txt"])
    expect(lines).to_have_text(
        [re.compile("okapi"), re.compile("^a.xyz has no known suffix"), re.compile("large.txt is larger than 0.1 MiB")]
    )
    notes.get_by_role("button", name="Close", exact=True).click()
    notes.get_by_label("Search the collection").fill("okapi")
    notes.keyboard.press("Enter")
    expect(notes.locator(".hit .title")).to_have_text("Okapi")
    assert writable.call("DELETE", "/collections/notes/documents/okapi.md", WRITE_KEY).status_code == 200


def test_pasted_text_opens_the_dialog(notes: Page) -> None:
    notes.goto("/")
    expect(notes.get_by_role("button", name="Add", exact=True)).to_be_visible()
    notes.evaluate(
        """() => { const clipboardData = new DataTransfer(); clipboardData.setData("text/plain", "a pasted text");
        document.body.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true })) }"""
    )
    expect(notes.locator("#adder").get_by_label("Text", exact=True)).to_have_value("a pasted text")


def test_nothing_can_be_added_where_nobody_may_write(page: Page) -> None:
    page.goto("/")
    expect(page.locator(".examples button")).to_have_count(4)
    expect(page.get_by_role("button", name="Add", exact=True)).to_be_hidden()

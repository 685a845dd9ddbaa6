"""The page by keyboard, on narrow screens, in light and dark."""

from typing import Any

import pytest
from browser_pages import Opened, search, wait_for_map
from playwright.sync_api import Page, expect

pytest_plugins = ("browser_pages",)


def test_everything_goes_by_keyboard(page: Page, words: list[str]) -> None:
    page.goto("/")
    expect(page.locator("#message h2")).to_be_visible()
    page.locator("#theme-button").focus()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    expect(page.locator("#query")).to_be_focused()
    query = " ".join(words[:3])
    with page.expect_response(
        lambda response: query in (response.request.post_data or "")
    ) as answer:
        page.keyboard.type(query)
    found = [hit["id"] for hit in answer.value.json()["hits"]]
    # They are shown, and no more those of what was half typed.
    shown = "(found) => [...document.querySelectorAll('.hit')].map((one) => one.hit.id).join() === found.join()"
    page.wait_for_function(shown, arg=found)
    page.keyboard.press("ArrowDown")
    expect(page.locator(".hit").nth(0)).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".hit").nth(1)).to_be_focused()
    assert (
        page.locator(".hit").nth(1).evaluate("(hit) => getComputedStyle(hit).outlineStyle")
        == "solid"
    )
    page.keyboard.press("Enter")
    document = page.locator("#document")
    expect(document.locator(".id")).to_contain_text(found[1])
    page.keyboard.press("ArrowRight")
    expect(document.locator(".id")).to_contain_text(found[2])
    page.keyboard.press("Escape")
    expect(document).to_be_hidden()
    expect(page.locator(".hit").nth(1)).to_be_focused()
    page.keyboard.press("m")
    expect(page.locator("#trail")).to_contain_text(f"More like {found[1]}")
    expect(page.locator(".hit").first).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(page.locator("#query")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#query")).to_have_value("")
    expect(page.locator("#message h2")).to_be_visible()


def test_all_that_can_be_used_has_a_name(page: Page, words: list[str]) -> None:
    search(page, words[0])
    nameless = page.evaluate("""() => [...document.querySelectorAll("button, a, input, select, textarea, [tabindex]")]
        .filter((one) => !one.closest("dialog"))
        .filter((one) => !(one.getAttribute("aria-label") || one.labels?.length || one.textContent.trim()))
        .map((one) => one.outerHTML)""")
    assert nameless == []
    assert page.locator("#count").get_attribute("aria-live") == "polite"
    assert page.locator("h1:visible").count() == 1


def test_nothing_scrolls_sideways_on_a_narrow_screen(
    opened: Opened, address: str, words: list[str]
) -> None:
    with opened(address, viewport={"width": 360, "height": 740}, has_touch=True) as page:
        sideways = "document.documentElement.scrollWidth > innerWidth"
        for where in ("/docs", "/"):
            page.goto(where)
            expect(page.locator("h1").first).to_be_visible()
            assert not page.evaluate(sideways)
        page.locator("#query").fill(" ".join(words[:20]))
        expect(page.locator(".hit").first).to_be_visible()
        assert not page.evaluate(sideways)
        page.locator("#filters-button").click()
        page.get_by_role("button", name="Labels").click()
        expect(page.get_by_role("checkbox", name="topic0")).to_be_visible()
        assert not page.evaluate(sideways)
        page.get_by_role("button", name="Done").click()
        expect(page.locator("#controls")).to_be_hidden()
        page.get_by_role("tab", name="Map").click()
        wait_for_map(page)
        expect(page.locator(".hit").first).to_be_hidden()
        assert not page.evaluate(sideways)
        page.get_by_role("tab", name="Documents").click()
        page.locator(".title").first.click()
        expect(page.locator("#document .document-text")).to_be_visible()
        assert not page.evaluate(sideways)
        assert page.locator("#document").evaluate("(one) => one.scrollWidth <= one.clientWidth")


CONTRAST = """() => {
    const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    const known = new Map();
    const layers = (element) =>
        (element ? [...layers(element.parentElement), getComputedStyle(element).backgroundColor] : ["white"]);
    const painted = (colours) => {
        const key = colours.filter((colour) => colour !== "rgba(0, 0, 0, 0)").join();
        if (!known.has(key)) known.set(key, paint(colours));
        return known.get(key);
    };
    const paint = (colours) => {
        canvas.clearRect(0, 0, 1, 1);
        for (const colour of colours) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); }
        const [red, green, blue] = [...canvas.getImageData(0, 0, 1, 1).data].map((value) => {
            const part = value / 255;
            return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    const faint = new Set();
    for (const element of document.querySelectorAll("body *")) {
        const written = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
        if (!written || !element.checkVisibility() || element.closest(":disabled, option")) continue;
        const below = layers(element), over = [...below, getComputedStyle(element).color];
        const [high, low] = [painted(below), painted(over)].sort((one, other) => other - one);
        if ((high + 0.05) / (low + 0.05) < 4.5) faint.add(`${element.className}: ${element.textContent.slice(0, 30)}`);
    }
    return [...faint];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_can_be_read(page: Page, words: list[str], scheme: Any) -> None:
    page.emulate_media(color_scheme=scheme)
    for where in (
        "/",
        f"/#q={words[0]}&in.labels=topic0",
        f"/#q={words[0]}&like=post1&doc=post0",
        "/docs",
    ):
        page.goto(where)
        shown = "#document .document-text" if "doc=" in where else ".hit" if "q=" in where else "h1"
        expect(page.locator(shown).first).to_be_visible()
        assert page.evaluate(CONTRAST) == []


def test_light_and_dark(page: Page) -> None:
    page.emulate_media(color_scheme="dark")
    page.goto("/")
    brightness = """() => getComputedStyle(document.documentElement).backgroundColor
        .match(/\\d+/g).reduce((sum, part) => sum + +part, 0)"""
    assert page.evaluate(brightness) < 150
    page.get_by_role("button", name="Light page").click()
    assert page.evaluate(brightness) > 600
    page.reload()
    assert page.evaluate(brightness) > 600
    page.get_by_role("button", name="Dark page").click()
    assert page.evaluate(brightness) < 150
    page.emulate_media(color_scheme="light")  # at one with the system again, it follows it
    page.wait_for_function(f"() => ({brightness})() > 600")

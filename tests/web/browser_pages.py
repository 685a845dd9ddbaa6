"""What tests of pages have in common: one browser and one server for all, and what is seen on a page.

A plugin of pytest, so that the tests in several files share what is opened once. As these also import from it, it says
PYTEST_DONT_REWRITE: its assertions stay as they are written.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from live_server import PATIENT, serving
from playwright.sync_api import Browser, Page, Playwright, expect, sync_playwright

from topics import Topics

Opened = Callable[..., AbstractContextManager[Page]]
PATIENCE = 300_000  # milliseconds until something that should happen counts as missing: no test is to fail of load

expect.set_options(timeout=PATIENCE)


def chromium_program(playwright: Playwright) -> str | None:
    """The path of a Chromium: the one that is named, one of the system, or playwright's own."""
    named = os.environ.get("PARABIT_CHROMIUM")
    of_system = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    own = playwright.chromium.executable_path
    return named or of_system or (own if Path(own).exists() else None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A browser without a window. Without a Chromium the test is skipped, or fails where PARABIT_NEED_BROWSER is 1."""
    with sync_playwright() as playwright:
        program = chromium_program(playwright)
        if program is None:
            missing = pytest.fail if os.environ.get("PARABIT_NEED_BROWSER") == "1" else pytest.skip
            missing(
                "no Chromium was found: install it, run `make browser`, or set PARABIT_CHROMIUM to the program"
            )
        browser = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox"], timeout=PATIENCE
        )
        yield browser
        browser.close()


@contextmanager
def watched(browser: Browser, address: str, *expected: str, **options: Any) -> Iterator[Page]:
    """A page of its own. No error in the console, no dialog, no request to another host; `expected` errors may be."""
    context = browser.new_context(
        **{"viewport": {"width": 1280, "height": 800}, "base_url": address, **options}
    )
    context.set_default_timeout(PATIENCE)
    troubles: list[str] = []
    host = urlsplit(address).netloc

    def note(kind: str, text: str) -> None:
        if not any(part in text for part in expected):
            troubles.append(f"{kind}: {text}")

    def dialog(dialog: Any) -> None:
        troubles.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    page = context.new_page()
    page.on(
        "console",
        lambda line: note("console", line.text) if line.type in {"error", "warning"} else None,
    )
    page.on("pageerror", lambda error: note("error", str(error)))
    page.on("dialog", dialog)
    page.on(
        "request",
        lambda sent: None if urlsplit(sent.url).netloc == host else note("request", sent.url),
    )
    try:
        yield page
        page.evaluate(
            "() => new Promise(requestAnimationFrame)"
        )  # what is about to go wrong, does so
    finally:
        context.close()
    assert not troubles, troubles


@pytest.fixture(scope="session")
def address(
    browser: Browser, _made: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A server with an index of 300 documents, 20 bits each; the map is drawn meanwhile."""
    folder = tmp_path_factory.mktemp("served") / "news.index"
    shutil.copytree(_made, folder)
    with serving(folder, PATIENT) as address:
        yield address


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    with watched(browser, address) as page:
        yield page


@pytest.fixture
def opened(browser: Browser) -> Opened:
    """A watched page of any server, with errors that are expected."""
    return lambda address, *expected, **options: watched(browser, address, *expected, **options)


@pytest.fixture(scope="session")
def words(topics: Topics) -> list[str]:
    """Words of the first document, which has the label topic2."""
    first: str = topics.texts[0]
    return first.split()


def search(page: Page, query: str, more: str = "") -> None:
    page.goto(f"/#q={query.replace(' ', '+')}{more}")
    expect(page.locator(".hit").first).to_be_visible()


def hits(page: Page) -> list[dict[str, Any]]:
    """The hits that are shown, but for their places on the map, which may be drawn meanwhile."""
    found: list[dict[str, Any]] = page.eval_on_selector_all(
        ".hit", "found => found.map((article) => article.hit)"
    )
    return [{name: value for name, value in hit.items() if name != "position"} for hit in found]


def frame(page: Page) -> None:
    """Wait until what was asked of the map is drawn."""
    page.evaluate(
        "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )


def wait_for_map(page: Page) -> None:
    expect(page.locator("#map.ready[data-view]")).to_be_visible()


def on_screen(page: Page, position: list[float]) -> tuple[float, float]:
    """Where a place of the map is on the screen."""
    x, y, scale = map(float, str(page.locator("#map").get_attribute("data-view")).split())
    box = page.locator("#map-marks").bounding_box()
    assert box is not None
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    return middle[0] + (position[0] - x) * scale, middle[1] + (position[1] - y) * scale


def state(page: Page) -> str:
    return str(page.evaluate("decodeURIComponent(location.hash)"))

"""What tests of pages have in common: one browser and one server for all, and what is seen on a page.

A plugin of pytest, so that the tests in several files share what is opened once. As these also import from it, it says
PYTEST_DONT_REWRITE: its assertions stay as they are written.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from browser_chromium import browsing, watched
from browser_server import ServeProcess
from playwright.sync_api import Browser, Page, expect

from topics import Topics

Opened = Callable[..., AbstractContextManager[Page]]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with browsing() as browser:
        yield browser


@pytest.fixture(scope="session")
def built(_made: Path) -> Path:
    """The folder of an index of 300 documents, 20 bits each, for reading."""
    return _made


@pytest.fixture(scope="session")
def served(browser: Browser, built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    """`parabit serve` with this index; the map is drawn meanwhile."""
    folder = tmp_path_factory.mktemp("served") / "news.index"
    shutil.copytree(built, folder)
    server = ServeProcess(folder)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def address(served: ServeProcess) -> str:
    return served.address


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    with watched(browser, address) as page:
        yield page


@pytest.fixture
def opened(browser: Browser) -> Opened:
    """A watched page of any server, with errors that are expected."""

    def open_page(address: str, *expected: str, **options: Any) -> AbstractContextManager[Page]:
        return watched(browser, address, expected, **options)

    return open_page


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
    found: list[dict[str, Any]] = page.eval_on_selector_all(".hit", "found => found.map((article) => article.hit)")
    return [{name: value for name, value in hit.items() if name != "position"} for hit in found]


def frame(page: Page) -> None:
    """Wait until what was asked of the map is drawn."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def wait_for_map(page: Page) -> None:
    expect(page.locator("#map.ready[data-view]")).to_be_visible(timeout=60_000)


def on_screen(page: Page, position: list[float]) -> tuple[float, float]:
    """Where a place of the map is on the screen."""
    x, y, scale = map(float, str(page.locator("#map").get_attribute("data-view")).split())
    box = page.locator("#map-marks").bounding_box()
    assert box is not None
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    return middle[0] + (position[0] - x) * scale, middle[1] + (position[1] - y) * scale


def colour_at(page: Page, position: list[float]) -> str:
    """The colour over the points at a place of the map, as the style sheet would say it."""
    x, y = on_screen(page, position)
    script = """([x, y]) => {
        const canvas = document.getElementById("map-marks"), { left, top } = canvas.getBoundingClientRect();
        const ratio = canvas.width / canvas.clientWidth;
        const at = [(x - left) * ratio, (y - top) * ratio].map(Math.round);
        const pixel = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
        pixel.drawImage(canvas, ...at, 1, 1, 0, 0, 1, 1);
        const [red, green, blue, alpha] = pixel.getImageData(0, 0, 1, 1).data;
        return alpha ? `rgb(${red}, ${green}, ${blue})` : "nothing";
    }"""
    return str(page.evaluate(script, [x, y]))


def state(page: Page) -> str:
    return str(page.evaluate("decodeURIComponent(location.hash)"))

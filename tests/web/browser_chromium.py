"""A real browser, and pages in it that are watched: what goes wrong on one fails its test."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Playwright, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
GET_ONE = (
    "no Chromium was found: install the package `chromium` of your system, run `playwright install chromium`, or set "
    "PARABIT_CHROMIUM to the program"
)


def chromium_program(playwright: Playwright) -> str | None:
    """The path of a Chromium: the one that is named, one of the system, or playwright's own."""
    if named := os.environ.get("PARABIT_CHROMIUM"):
        return named
    of_system = next(filter(None, map(shutil.which, NAMES)), None)
    own = playwright.chromium.executable_path
    return of_system or (own if Path(own).exists() else None)


@contextmanager
def browsing() -> Iterator[Browser]:
    """A browser without a window. Without a Chromium the test is skipped, or fails where PARABIT_NEED_BROWSER is 1."""
    with sync_playwright() as playwright:
        program = chromium_program(playwright)
        if program is None and os.environ.get("PARABIT_NEED_BROWSER") == "1":
            pytest.fail(GET_ONE)
        if program is None:
            pytest.skip(GET_ONE)
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def watched(browser: Browser, address: str, expected: tuple[str, ...] = (), **options: Any) -> Iterator[Page]:
    """A page of its own. No error in the console, no dialog, no request to another host; `expected` errors may be."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, "base_url": address, **options})
    context.set_default_timeout(20_000)
    troubles: list[str] = []
    host = urlsplit(address).netloc

    def told(kind: str, text: str) -> None:
        if not any(part in text for part in expected):
            troubles.append(f"{kind}: {text}")

    def dialog(dialog: Any) -> None:
        troubles.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    page = context.new_page()
    page.on("console", lambda line: told("console", line.text) if line.type in {"error", "warning"} else None)
    page.on("pageerror", lambda error: told("error", str(error)))
    page.on("dialog", dialog)
    page.on("request", lambda asked: None if urlsplit(asked.url).netloc == host else told("request", asked.url))
    try:
        yield page
        page.evaluate("() => new Promise(requestAnimationFrame)")  # what is about to go wrong, does so
    finally:
        context.close()
    assert not troubles, troubles

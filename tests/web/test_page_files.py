"""Truths about the files of the page."""

import re
from pathlib import Path

import parabit

STATIC = Path(parabit.__file__).parent / "web" / "static"
PAGES = {"index.html": "main.js", "api.html": "api.js"}


def imported(name: str, seen: frozenset[str] = frozenset()) -> frozenset[str]:
    """The modules that one imports, and those that these import."""
    for other in re.findall(r'from "\./([\w-]+\.js)"', (STATIC / name).read_text()):
        if other not in seen:
            seen = imported(other, seen | {other})
    return seen


def test_a_page_loads_its_modules_at_once_and_every_file_is_used() -> None:
    for page, script in PAGES.items():
        named = re.findall(
            r'modulepreload" href="/static/([\w-]+\.js)"', (STATIC / page).read_text()
        )
        assert named == sorted(imported(script))
    pages = "".join((STATIC / page).read_text() for page in PAGES)
    named = re.findall(r'"/(?:static/)?([\w-]+\.(?:js|css|svg))"', pages)
    assert {path.name for path in STATIC.iterdir()} == {*PAGES, *named}


def test_nothing_comes_from_elsewhere_stands_inline_or_is_made_of_text() -> None:
    made = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\b|new Function"
    for path in STATIC.iterdir():
        text = path.read_text().replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://|@import|\burl\(", text), path.name
        if path.suffix == ".html":
            assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*src=)", text), path.name
        if path.suffix == ".js":
            assert not re.search(made, text), path.name
            assert len(text.splitlines()) <= 400

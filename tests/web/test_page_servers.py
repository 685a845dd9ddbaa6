"""The page at indexes of all kinds, and at servers in trouble."""

import re
from pathlib import Path

import numpy as np
from browser_pages import Opened, hits, on_screen, search, wait_for_map
from live_server import PATIENT, serving
from playwright.sync_api import Route, expect

from parabit import Document, Index, ParagraphVectors
from parabit.explore import draw_map, keep_map
from parabit.web import Settings
from topics import Topics

pytest_plugins = ("browser_pages",)

HOSTILE = [
    "<script>alert('text')</script>",
    '"><img src=x onerror=alert(1)>',
    "<img src='https://example.org/x.png' onerror=\"document.body.dataset.ran=1\">",
    "javascript:alert(2)//'\"`&amp;&lt;",
]


def test_hostile_text_is_shown_and_never_run(
    opened: Opened, topic_model: Path, topics: Topics, tmp_path: Path
) -> None:
    documents = []
    for number, text in enumerate(topics.texts[:12]):
        one, another, label, title = (HOSTILE[(number + more) % 4] for more in range(4))
        fields = {
            HOSTILE[3]: f"{HOSTILE[1]}{number}",
            "title": title,
            "url": f"javascript:alert({number})",
        }
        documents.append(
            Document(f"{one}{number}", f"{one} {text} {another}", (one, label), fields)
        )
    folder = tmp_path / "<b onmouseover=alert(4)>.index"
    with Index.build(documents, folder, model=ParagraphVectors.load(topic_model)) as index:
        keep_map(index, draw_map(index))
    word = topics.texts[1].split()[0]
    example = Settings(examples=("<img src=x onerror=alert(5)>",), seconds=600)
    with serving(folder, example) as address, opened(address) as page:
        page.goto("/")
        expect(page.locator(".example")).to_have_text("<img src=x onerror=alert(5)>")
        expect(page.locator("h1")).to_contain_text("<b onmouseover=alert(4)>")
        wait_for_map(page)
        page.locator("#map-marks").hover()
        page.locator("#query").fill(f"{word} <script>alert(6)</script>")
        expect(page.locator(".hit")).to_have_count(10)
        for hit, shown in zip(hits(page), page.locator("li > .hit").all(), strict=True):
            expect(shown.locator(".id")).to_have_text(hit["id"])
            expect(shown.locator(".chip")).to_have_text(hit["fields"]["labels"])
            expect(shown.locator(".title")).to_have_text(hit["title"])
        page.get_by_role("button", name="Labels").click()
        expect(page.locator(".choices .name").first).to_have_text(
            re.compile("script|img|javascript")
        )
        page.keyboard.press("Escape")
        page.locator(".hit .chip").first.click()
        expect(page.locator("#active .chip")).to_have_count(1)
        page.locator(".hit .title").first.click()
        found = hits(page)[0]
        expect(page.locator("#document h2")).to_have_text(found["title"])
        [whole] = (document.text for document in documents if document.id == found["id"])
        expect(page.locator(".document-text")).to_have_text(whole)
        expect(page.locator(".document-fields")).to_contain_text(HOSTILE[1])
        page.keyboard.press("m")
        expect(page.locator("#trail")).to_contain_text(found["id"][:40])
        page.reload()
        expect(page.locator("#trail")).to_contain_text(found["id"][:40])
        assert page.evaluate("document.body.dataset.ran") is None
        assert (
            page.locator(
                "main script, main img, dialog img, dialog script, main b[onmouseover]"
            ).count()
            == 0
        )


def test_an_empty_index_waits_to_be_filled(
    opened: Opened, news: Path, topic_documents: list[Document]
) -> None:
    with Index.open(news, write=True) as index:
        index.delete([document.id for document in topic_documents])
    with serving(news, PATIENT) as address, opened(address) as page:
        page.goto("/")
        expect(page.locator("#message h2")).to_have_text("No documents yet")
        expect(page.locator("#message")).to_contain_text("parabit add news.index")
        expect(page.locator("#map")).to_be_hidden()
        with Index.open(news, write=True) as index:
            index.add(topic_documents[:3])
        expect(page.locator("#message h2")).to_have_text("What are you looking for?")
        expect(page.locator("h1")).to_contain_text("3 documents")


def test_an_index_of_codes_is_browsed(opened: Opened, tmp_path: Path) -> None:
    codes = np.random.default_rng(3).integers(256, size=(40, 4), dtype=np.uint8)
    folder = tmp_path / "codes.index"
    with Index.of_codes(
        codes, 32, folder, fields=[{"labels": [f"part {row % 2}"]} for row in range(40)]
    ) as index:
        keep_map(index, draw_map(index))
    with serving(folder, PATIENT) as address, opened(address) as page:
        page.goto("/")
        expect(page.locator("#query")).to_be_disabled()
        expect(page.locator("#message")).to_contain_text("it cannot be searched with a text")
        wait_for_map(page)
        chart = page.request.get("/api/map").json()
        page.mouse.click(*on_screen(page, [chart["x"][7], chart["y"][7]]))
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("The index keeps no texts")
        expect(dialog.locator("figcaption")).to_have_text("32 bits, 4 bytes.")
        chosen = int(dialog.get_by_role("heading").inner_text())
        dialog.get_by_role("button", name="More like this").click()
        expect(page.locator(".hit")).to_have_count(10)
        found = hits(page)
        assert chosen not in [hit["id"] for hit in found]
        apart = np.bitwise_count(codes ^ codes[chosen]).sum(axis=1)
        assert [hit["distance"] for hit in found] == sorted(apart.tolist())[1:11]
        page.reload()
        expect(page.locator(".hit")).to_have_count(10)
        page.locator("#trail-back").click()
        expect(page.locator("#message h2")).to_have_text("A collection of codes")


def test_an_index_without_texts_or_map_says_what_is_missing(
    opened: Opened,
    topic_model: Path,
    topic_documents: list[Document],
    tmp_path: Path,
    words: list[str],
) -> None:
    folder = tmp_path / "codes-only.index"
    Index.build(
        topic_documents[:50], folder, model=ParagraphVectors.load(topic_model), text=False
    ).close()
    with serving(folder) as address, opened(address) as page:
        page.goto("/")
        expect(page.locator("#message")).to_contain_text("This index keeps no texts")
        expect(page.locator("#query-note")).to_contain_text("this index keeps no words")
        search(page, words[0])
        expect(page.locator(".hit")).to_have_count(10)
        expect(page.locator(".passage")).to_have_count(0)
        expect(page.locator("#map")).to_be_hidden()
        expect(page.locator("#map-note")).to_have_text(
            "There is no map: the server was started without a map."
        )
        page.locator(".hit").first.click()
        expect(page.locator(".document-text")).to_contain_text("The index keeps no texts")


def test_the_page_recovers_when_the_server_was_gone(
    opened: Opened, address: str, words: list[str]
) -> None:
    with opened(address, "ERR_CONNECTION_REFUSED") as page:
        search(page, words[0])
        before = hits(page)
        page.route("**/*", lambda route: route.abort("connectionrefused"))
        page.locator("#query").fill(words[1])
        expect(page.get_by_role("alert")).to_have_text("The connection is lost; trying again …")
        assert hits(page) == before  # what was there stays
        page.unroute("**/*")
        expect(page.get_by_role("alert")).to_be_hidden()
        expect(page.locator(".hit mark").first).to_have_text(words[1])


def test_a_token_is_asked_for_and_used(opened: Opened, news: Path, words: list[str]) -> None:
    with (
        serving(news, Settings(token="open-sesame", map=False, seconds=600)) as address,
        opened(address, "status of 401") as page,
    ):
        page.goto(f"/#q={words[0]}")
        dialog = page.get_by_role("dialog", name="This server asks for a token")
        dialog.get_by_label("Token").fill("guess")
        dialog.get_by_role("button", name="Go on").click()
        expect(dialog).to_contain_text("That was not it")
        dialog.get_by_label("Token").fill("open-sesame")
        page.keyboard.press("Enter")
        expect(page.locator(".hit")).to_have_count(10)
        page.reload()
        expect(page.locator(".hit")).to_have_count(10)
        expect(dialog).to_be_hidden()
        page.goto("/docs")
        expect(page.locator("#contents a").first).to_be_visible()
        expect(page.locator(".curl").first).to_contain_text("Authorization: Bearer $TOKEN")
        page.evaluate("sessionStorage.clear()")
        page.goto("/")
        expect(dialog).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator("#message")).to_contain_text("A token is needed")


def test_a_busy_server_is_asked_again(opened: Opened, address: str, words: list[str]) -> None:
    held: list[Route] = []

    def answer(route: Route) -> None:
        held.append(route)
        if len(held) == 1:
            route.fulfill(
                status=503, headers={"retry-after": "2"}, json={"error": "too busy", "hint": ""}
            )

    with opened(address, "status of 503") as page:
        page.route("**/api/search", answer)
        page.goto(f"/#q={words[0]}")
        message = page.locator("#message")
        expect(message).to_contain_text("The server is busy")
        expect(message).to_contain_text("Trying again in 2 seconds")
        while len(held) < 2:
            page.wait_for_timeout(20)
        held[1].continue_()
        expect(page.locator(".hit")).to_have_count(10)

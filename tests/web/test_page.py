"""Searching on the page, in a real browser at a real server."""

import re
from contextlib import suppress

from browser_pages import Opened, hits, search, state, wait_for_map
from playwright.sync_api import Error, Page, Route, expect

from parabit import Document

pytest_plugins = ("browser_pages",)


def test_related_documents_appear_as_one_types(page: Page, words: list[str]) -> None:
    page.goto("/")
    box = page.get_by_role("textbox", name="Search the collection")
    expect(box).to_be_focused()
    box.press_sequentially(words[0])
    expect(page.locator(".hit")).to_have_count(10)
    expect(page.locator("#count")).to_contain_text("10 hits of 300 documents, ranked by hybrid")
    expect(page.locator("#notes")).to_be_hidden()
    # Old hits stay until new ones are there: the list never has less.
    page.evaluate("""() => {
        const list = document.getElementById("hits");
        window.fewest = list.children.length;
        new MutationObserver(() => { window.fewest = Math.min(window.fewest, list.children.length); })
            .observe(list, { childList: true });
    }""")
    before = hits(page)
    box.press_sequentially(f" {words[1]} {words[2]}")
    page.wait_for_function("before => document.querySelector('.hit').hit.score !== before", arg=before[0]["score"])
    page.wait_for_function("hash => decodeURIComponent(location.hash) === hash", arg=f"#q={'+'.join(words[:3])}")
    assert page.evaluate("window.fewest") == 10


def test_a_hit_shows_why_it_was_found(page: Page, words: list[str], topic_documents: list[Document]) -> None:
    search(page, " ".join(words[:4]))
    documents = {document.id: document for document in topic_documents}
    for place, (hit, shown) in enumerate(zip(hits(page), page.locator(".hit").all(), strict=True)):
        expect(shown.locator(".place")).to_have_text(str(place + 1))
        expect(shown.locator(".title")).to_have_text(hit["id"])
        expect(shown.locator(".chip")).to_have_text(list(documents[hit["id"]].labels))
        expect(shown.locator(".distance")).to_have_text(f"{hit['distance']} of 20 bits")
        expect(shown.locator(".score")).to_have_text(f"score {hit['score']:.3f}")
        expect(shown.locator(".foot")).to_contain_text(f"year {documents[hit['id']].fields['year']}")
        marks = shown.locator("mark").all_text_contents()
        assert marks
        assert set(marks) <= set(words[:4])
        drawn = shown.locator(".code .differs").evaluate_all("paths => paths.map((path) => path.getAttribute('d'))")
        assert sum(path.count("M") for path in drawn) == hit["distance"]
    assert page.locator("#own-code .code").get_attribute("aria-label") == "The query's code, 20 bits"


def test_a_late_answer_to_an_older_search_is_dropped(page: Page, words: list[str]) -> None:
    held: list[Route] = []
    page.goto("/")
    page.route("**/api/search", lambda route: held.append(route) if not held else route.continue_())
    box = page.locator("#query")
    box.fill(words[0])
    page.wait_for_timeout(200)
    box.fill(words[5])
    expect(page.locator(".hit mark").first).to_have_text(words[5])
    assert len(held) == 1
    with suppress(Error):  # the page has given it up
        held[0].continue_()
    page.wait_for_timeout(200)
    expect(page.locator(".hit mark").first).to_have_text(words[5])


def test_more_like_this_and_the_way_back(page: Page, words: list[str]) -> None:
    search(page, words[0])
    first, second = (hit["id"] for hit in hits(page)[:2])
    page.locator(".hit").nth(1).get_by_role("button", name="More like this").click()
    expect(page.locator("#trail")).to_contain_text(f"More like {second}")
    expect(page.locator(".title", has_text=re.compile(f"^{second}$"))).to_have_count(0)
    assert state(page) == f"#q={words[0]}&like={second}"
    third = hits(page)[0]["id"]
    page.locator(".hit").first.get_by_role("button", name="More like this").click()
    expect(page.locator("#trail")).to_contain_text(f"More like {third}")
    page.locator("#trail-back").click()
    expect(page.locator("#trail")).to_contain_text(f"More like {second}")
    page.go_back()
    page.go_back()
    expect(page.locator("#trail")).to_contain_text(f"More like {second}")
    page.get_by_role("button", name="Back to the search").click()
    expect(page.locator("#trail")).to_be_hidden()
    expect(page.locator(".title").first).to_have_text(first)


def test_a_document_opens_whole(page: Page, words: list[str], topic_documents: list[Document]) -> None:
    search(page, " ".join(words[:3]))
    hit = hits(page)[0]
    page.locator(".passage").first.click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("heading")).to_have_text(hit["id"])
    [text] = (document.text for document in topic_documents if document.id == hit["id"])
    expect(dialog.locator(".document-text")).to_have_text(text)
    assert set(dialog.locator("mark").all_text_contents()) <= set(words[:3])
    expect(dialog.locator("figcaption")).to_contain_text(f"{hit['distance']} of 20 bits differ from the query's")
    expect(dialog.locator(".fields")).to_contain_text("year")
    dialog.get_by_role("button", name="The next hit").click()
    expect(dialog.get_by_role("heading")).to_have_text(hits(page)[1]["id"])
    page.go_back()
    expect(dialog).to_be_hidden()
    assert hits(page)[0] == hit


def test_the_filter_by_label(page: Page, words: list[str]) -> None:
    search(page, words[0], "&k=100")
    page.get_by_role("button", name="All labels").click()
    panel = page.get_by_role("dialog", name="Labels")
    assert len(panel.get_by_role("checkbox").all()) == 4
    page.keyboard.type("TOPIC2")
    expect(panel.get_by_role("checkbox")).to_have_count(1)
    page.keyboard.press("Enter")
    page.wait_for_function(
        "() => [...document.querySelectorAll('.hit')].every((article) => article.hit.labels[0] === 'topic2')"
    )
    assert state(page).endswith("label=topic2")
    page.locator("#labels-search").fill("")
    panel.get_by_role("checkbox", name="topic0").check()
    page.wait_for_function(
        "() => new Set([...document.querySelectorAll('.hit')].map((article) => article.hit.labels[0])).size === 2"
    )
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(page.locator("#active-labels .chip")).to_have_text(["topic2", "topic0"])
    page.locator("#active-labels .chip", has_text="topic2").click()
    expect(page.locator("#labels-told")).to_have_text("topic0")
    page.wait_for_function(
        "() => [...document.querySelectorAll('.hit')].every((article) => article.hit.labels[0] === 'topic0')"
    )
    page.locator(".hit .chip").first.click()  # the chip of a hit takes its label off again
    expect(page.locator("#labels-told")).to_have_text("All labels")
    wait_for_map(page)
    page.locator("#legend").get_by_role("button", name="topic1").click()
    expect(page.locator("#labels-told")).to_have_text("topic1")


def test_radius_rank_and_the_number_of_hits(page: Page, words: list[str]) -> None:
    search(page, " ".join(words[:3]))
    page.get_by_label("Ranked by").select_option("hamming")
    expect(page.locator("#count")).to_contain_text("ranked by hamming")
    page.get_by_role("combobox", name="Hits").select_option("20")
    expect(page.locator(".hit")).to_have_count(20)
    page.get_by_role("button", name="Show 10 more").click()
    expect(page.locator(".hit")).to_have_count(30)
    page.get_by_role("combobox", name="Hits").select_option("100")
    expect(page.locator(".hit")).to_have_count(100)
    farthest = max(hit["distance"] for hit in hits(page))
    slider = page.get_by_role("slider")
    slider.focus()
    page.keyboard.press("Home")
    expect(page.locator("#radius-told")).to_have_text("the same code")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#radius-told")).to_have_text("1 bit")
    page.wait_for_function("() => [...document.querySelectorAll('.hit')].every((article) => article.hit.distance <= 1)")
    assert farthest > 1
    assert state(page) == f"#q={'+'.join(words[:3])}&k=100&radius=1&rank=hamming"
    page.keyboard.press("End")
    expect(page.locator("#radius-told")).to_have_text("any distance")


def test_nothing_found_says_why_and_what_to_do(page: Page, words: list[str]) -> None:
    page.goto(f"/#q={'+'.join(words[:2])}&radius=0&label=topic9")
    expect(page.locator("#message")).to_contain_text("No document with the same code with the label topic9.")
    page.get_by_role("button", name="With any label").click()
    page.wait_for_function("() => !location.hash.includes('label')")
    page.goto(f"/#q={words[0]}&label=topic9")
    expect(page.locator("#message")).to_contain_text("No document with the label topic9.")


def test_unknown_words_are_said_to_be_unknown(page: Page) -> None:
    page.goto("/#q=qwertz")
    expect(page.locator("#message")).to_contain_text(
        "No document has a word of qwertz. Use words that documents of this collection use."
    )
    expect(page.locator(".hit")).to_have_count(0)


def test_a_value_that_the_server_refuses_is_told_in_its_words(opened: Opened, address: str, words: list[str]) -> None:
    with opened(address, "status of 400") as page:
        page.goto(f"/#q={words[0]}&rank=magic")
        expect(page.locator("#message")).to_contain_text("This index cannot rank by 'magic'. It can by hybrid")


def test_the_address_holds_everything(page: Page, words: list[str]) -> None:
    search(page, words[0], "&k=20&radius=6&label=topic2&label=topic1&rank=words")
    shown = hits(page)
    page.reload()
    expect(page.locator(".hit").first).to_be_visible()
    assert hits(page) == shown
    assert page.locator("#query").input_value() == words[0]
    assert page.locator("#k").input_value() == "20"
    assert page.locator("#rank").input_value() == "words"
    expect(page.locator("#radius-told")).to_have_text("6 bits")
    expect(page.locator("#labels-told")).to_have_text("2 labels")
    page.locator("#query").fill(words[3])
    page.wait_for_function("word => location.hash.includes(word)", arg=words[3])
    page.go_back()
    expect(page.locator("#query")).to_have_value(words[0])
    page.go_forward()
    expect(page.locator("#query")).to_have_value(words[3])


def test_the_page_of_the_api_has_every_operation_and_tries_them(opened: Opened, address: str, words: list[str]) -> None:
    with opened(address, "status of 4") as page:
        page.goto("/docs")
        expect(page.locator("#contents a").first).to_be_visible()
        described = page.request.get("/openapi.json").json()["paths"]
        everything = [f"{method.upper()}{path}" for path, item in described.items() for method in item]
        assert page.locator("#contents a").all_text_contents() == everything
        assert page.locator(".operation h2").all_text_contents() == everything
        section = page.locator("#post-api-search")
        expect(section).to_contain_text("how many hits; 10 where it is left out")
        section.locator("textarea").fill(f'{{"query": "{words[0]}", "k": 3}}')
        section.get_by_role("button", name="Send").click()
        expect(section.get_by_role("status")).to_contain_text("200 OK")
        expect(section.locator(".answer")).to_contain_text('"rank": "hybrid"')
        expect(section.locator(".curl")).to_contain_text(f"""-d '{{"query": "{words[0]}", "k": 3}}'""")
        section.locator("textarea").fill("{}")
        section.get_by_role("button", name="Send").click()
        expect(section.get_by_role("status")).to_contain_text("400")
        section = page.locator("#get-api-document")
        section.get_by_label("id", exact=False).first.fill("post7")
        section.get_by_role("button", name="Send").click()
        expect(section.locator(".answer")).to_contain_text('"id": "post7"')
        section = page.locator("#get-metrics")
        section.get_by_role("button", name="Send").click()
        expect(section.locator(".answer")).to_contain_text("# HELP")

"""Searching on the page, in a real browser at a real server."""

import re
from contextlib import suppress

from browser_pages import Opened, hits, search, state, wait_for_map
from playwright.sync_api import Error, Page, Route, expect

from parabit import Document

pytest_plugins = ("browser_pages",)


def expect_hits(page: Page, test: str) -> None:
    """Wait until all hits are such."""
    page.wait_for_function(
        f"() => {{ const all = [...document.querySelectorAll('li > .hit')]; return all.length && all.every({test}); }}"
    )


def test_hits_appear_as_one_types(page: Page, words: list[str]) -> None:
    page.goto("/")
    box = page.get_by_role("textbox", name="Search the collection")
    expect(box).to_be_focused()
    box.press_sequentially(words[0])
    expect(page.locator(".hit")).to_have_count(10)
    expect(page.locator("#count")).to_contain_text("10 hits of 300 documents, by words and meaning")
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
    page.wait_for_function(
        "before => document.querySelector('.hit').hit.score !== before", arg=before[0]["score"]
    )
    page.wait_for_function(
        "hash => decodeURIComponent(location.hash) === hash", arg=f"#q={'+'.join(words[:3])}"
    )
    assert page.evaluate("window.fewest") == 10


def test_a_hit_has_its_title_first_and_its_id_to_copy(
    opened: Opened, address: str, words: list[str]
) -> None:
    allowed = {"permissions": ["clipboard-read", "clipboard-write"]}
    with opened(address, **allowed) as page:
        search(page, " ".join(words[:4]))
        for hit, shown in zip(hits(page), page.locator(".hit").all(), strict=True):
            expect(shown.locator(".title")).to_have_text(hit["title"])
            expect(shown.locator(".id code")).to_have_text(hit["id"])
            expect(shown.locator(".chip")).to_have_text(hit["fields"]["labels"])
            expect(shown.locator(".fact")).to_contain_text(f"Year {hit['fields']['year']}")
            marks = shown.locator("mark").all_text_contents()
            assert set(marks) <= set(words[:4])
            expect(shown.locator(".code")).to_have_count(0)
        page.locator(".copy").first.click()
        expect(page.locator(".copy[data-copied=Copied]")).to_have_count(1)
        assert page.evaluate("navigator.clipboard.readText()") == hits(page)[0]["id"]


def test_why_shows_the_share_of_each_word_and_how_near_the_code_is(
    page: Page, words: list[str]
) -> None:
    search(page, " ".join(words[:4]))
    hit, shown = hits(page)[0], page.locator(".hit").first
    answer = page.request.post(
        "/api/search", data={"query": " ".join(words[:4]), "why": True}
    ).json()
    shown.get_by_role("button", name="Why").click()
    why = answer["hits"][0]["why"]
    expect(shown.locator(".share-name")).to_have_text([*why["words"], "meaning (code)"])
    expect(shown.locator(".why")).to_contain_text(f"{hit['distance']} of 20 bits differ")
    expect(shown.locator(".why")).to_contain_text(f"Score {hit['score']:.3f}")
    drawn = shown.locator(".code .differs").evaluate_all(
        "paths => paths.map((path) => path.getAttribute('d'))"
    )
    assert sum(path.count("M") for path in drawn) == hit["distance"]
    shown.get_by_role("button", name="Why").click()
    expect(shown.locator(".why")).to_be_hidden()


def test_a_late_answer_to_an_older_search_is_dropped(page: Page, words: list[str]) -> None:
    held: list[Route] = []
    page.goto("/")
    page.route("**/api/search", lambda route: held.append(route) if not held else route.continue_())
    box = page.locator("#query")
    with page.expect_request("**/api/search"):
        box.fill(words[0])
    box.fill(words[5])
    expect(page.locator(".hit mark").first).to_have_text(words[5])
    assert len(held) == 1
    with suppress(Error):  # the page has given it up
        held[0].continue_()
    page.evaluate("fetch('/healthz')")  # whatever was on its way has come
    expect(page.locator(".hit mark").first).to_have_text(words[5])


def test_more_like_this_and_the_way_back(page: Page, words: list[str]) -> None:
    search(page, words[0])
    first, second = (hit["id"] for hit in hits(page)[:2])
    page.locator(".hit").nth(1).get_by_role("button", name="More like this").click()
    expect(page.locator("#trail")).to_contain_text(f"More like {second}")
    expect(page.locator(".id", has_text=re.compile(f"^{second}$"))).to_have_count(0)
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
    expect(page.locator(".id").first).to_contain_text(first)


def test_a_document_opens_whole(
    page: Page, words: list[str], topic_documents: list[Document]
) -> None:
    search(page, " ".join(words[:3]))
    hit = hits(page)[0]
    page.locator(".passage").first.click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("heading")).to_have_text(hit["title"])
    [text] = (document.text for document in topic_documents if document.id == hit["id"])
    expect(dialog.locator(".document-text")).to_have_text(text)
    assert set(dialog.locator("mark").all_text_contents()) <= set(words[:3])
    dialog.get_by_text("Its code of 20 bits").click()
    expect(dialog.locator("figcaption")).to_contain_text(
        f"{hit['distance']} of 20 bits differ from the query's"
    )
    expect(dialog.locator(".document-fields")).to_contain_text("Year")
    dialog.get_by_role("button", name="The next hit").click()
    expect(dialog.locator(".id")).to_contain_text(hits(page)[1]["id"])
    page.go_back()
    expect(dialog).to_be_hidden()
    assert hits(page)[0] == hit


def test_filters_by_choice_and_by_range(page: Page, words: list[str]) -> None:
    search(page, words[0], "&k=100")
    page.get_by_role("button", name="Labels").click()
    panel = page.get_by_role("dialog", name="Labels")
    expect(panel.get_by_role("checkbox")).to_have_count(4)
    panel.get_by_role("checkbox", name="topic2").check()
    expect_hits(page, "(one) => one.hit.fields.labels[0] === 'topic2'")
    assert state(page).endswith("in.labels=topic2")
    panel.get_by_role("checkbox", name="topic0").check()
    expect_hits(page, "(one) => ['topic0', 'topic2'].includes(one.hit.fields.labels[0])")
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(page.locator("#active .chip")).to_have_text(["Labels: topic2", "Labels: topic0"])
    page.get_by_role("button", name="Remove the filter Labels: topic2").click()
    expect_hits(page, "(one) => one.hit.fields.labels[0] === 'topic0'")
    page.locator(".hit .chip").first.click()  # the chip of a hit takes its label off again
    expect(page.locator("#active")).to_be_hidden()
    page.get_by_role("button", name="Year").click()
    page.get_by_label("Year from").fill("1991")
    page.get_by_label("Year to").fill("1992")
    expect_hits(page, "(one) => one.hit.fields.year === 1991 || one.hit.fields.year === 1992")
    expect(page.locator("#active .chip")).to_have_text(["Year 1991 to 1992"])
    assert state(page).endswith("min.year=1991&max.year=1992")
    wait_for_map(page)
    page.locator("#legend").get_by_role("button", name="topic1").click()
    expect(page.locator("#active .chip")).to_have_text(["Year 1991 to 1992", "Labels: topic1"])
    page.get_by_role("button", name="Clear all").click()
    expect(page.locator("#active")).to_be_hidden()


def test_radius_rank_and_the_number_of_hits(page: Page, words: list[str]) -> None:
    search(page, " ".join(words[:3]))
    page.get_by_role("button", name="Options").click()
    page.get_by_label("Ranked by").select_option("hamming")
    expect(page.locator("#count")).to_contain_text("by meaning: distance of codes")
    page.get_by_role("combobox", name="Hits").select_option("20")
    expect(page.locator(".hit")).to_have_count(20)
    page.get_by_role("button", name="Show 10 more").click()
    expect(page.locator(".hit")).to_have_count(30)
    page.get_by_role("button", name="Options").click()
    page.get_by_role("slider").focus()
    page.keyboard.press("Home")
    expect(page.locator("#radius-text")).to_have_text("0 bits (the same code)")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#radius-text")).to_have_text("1 bit")
    expect_hits(page, "(one) => one.hit.distance <= 1")
    assert state(page) == f"#q={'+'.join(words[:3])}&k=30&radius=1&rank=hamming"
    page.keyboard.press("End")
    expect(page.locator("#radius-text")).to_have_text("any distance")


def test_what_was_not_found_is_said(opened: Opened, address: str, words: list[str]) -> None:
    with opened(address, "status of 400") as page:
        page.goto(f"/#q={'+'.join(words[:2])}&radius=0&in.labels=topic9")
        message = page.locator("#message")
        expect(message).to_contain_text(
            "No document whose code differs in at most 0 bits (the same code) fits the"
        )
        expect(message).to_contain_text("filters (Labels: topic9)")
        page.get_by_role("button", name="Remove the filters").click()
        page.wait_for_function("() => !location.hash.includes('labels')")
        page.goto("/#q=qwertz")
        expect(message).to_contain_text("Nothing in this collection has a word of qwertz.")
        expect(page.locator(".hit")).to_have_count(0)
        page.goto(f"/#q={words[0]}x+qqqqqqqq")
        expect(page.locator("#notes")).to_contain_text(f"No document has {words[0]}x.")
        expect(page.locator("#notes")).to_contain_text("No document has qqqqqqqq.")
        expect(page.locator(".hit")).to_have_count(10)
        page.goto(f"/#q={words[0]}&rank=magic")
        expect(message).to_contain_text("This index cannot rank by 'magic'. It can by hybrid")


def test_the_address_holds_everything(page: Page, words: list[str]) -> None:
    search(
        page, words[0], "&k=20&radius=6&in.labels=topic2&in.labels=topic1&min.year=1990&rank=words"
    )
    shown = hits(page)
    page.reload()
    expect(page.locator(".hit").first).to_be_visible()
    assert hits(page) == shown
    assert page.locator("#query").input_value() == words[0]
    assert page.locator("#k").input_value() == "20"
    assert page.locator("#rank").input_value() == "words"
    expect(page.locator("#radius-text")).to_have_text("6 bits")
    expect(page.locator("#active .chip")).to_have_text(
        ["Labels: topic2", "Labels: topic1", "Year from 1990"]
    )
    page.locator("#query").fill(words[3])
    page.wait_for_function("word => location.hash.includes(word)", arg=words[3])
    page.go_back()
    expect(page.locator("#query")).to_have_value(words[0])
    page.go_forward()
    expect(page.locator("#query")).to_have_value(words[3])


def test_a_start_offers_examples_and_recent_documents(
    page: Page, topic_documents: list[Document]
) -> None:
    page.goto("/")
    expect(page.locator("h1")).to_contain_text("news")
    expect(page.locator("h1")).to_contain_text("300 documents")
    expect(page.locator("#query-note")).to_contain_text('"a phrase" +must -not begin* year:1990')
    expect(page.locator(".recent li")).to_have_count(6)
    expect(page.locator(".recent li").first).to_contain_text(topic_documents[-1].id)
    page.locator(".recent a").first.click()
    expect(page.get_by_role("dialog").locator(".id")).to_contain_text(topic_documents[-1].id)
    page.keyboard.press("Escape")
    example = page.locator(".example").first
    if example.count():
        text = example.inner_text()
        example.click()
        expect(page.locator(".hit").first).to_be_visible()
        expect(page.locator("#query")).to_have_value(text)


def test_the_page_of_the_api_has_every_operation_and_tries_them(
    opened: Opened, address: str, words: list[str]
) -> None:
    with opened(address, "status of 4") as page:
        page.goto("/docs")
        expect(page.locator("#contents a").first).to_be_visible()
        described = page.request.get("/openapi.json").json()["paths"]
        everything = [
            f"{method.upper()}{path}" for path, item in described.items() for method in item
        ]
        assert page.locator("#contents a").all_text_contents() == everything
        section = page.locator("#post-api-search")
        expect(section).to_contain_text("how many hits")
        section.locator("textarea").fill(f'{{"query": "{words[0]}", "k": 3}}')
        section.get_by_role("button", name="Send").click()
        expect(section.get_by_role("status")).to_contain_text("200 OK")
        expect(section.locator(".answer")).to_contain_text('"rank": "hybrid"')
        expect(section.locator(".curl")).to_contain_text(
            f"""-d '{{"query": "{words[0]}", "k": 3}}'"""
        )
        section.locator("textarea").fill("{}")
        section.get_by_role("button", name="Send").click()
        expect(section.get_by_role("status")).to_contain_text("400")
        section = page.locator("#get-api-document")
        section.get_by_label("id", exact=False).first.fill("post7")
        section.get_by_role("button", name="Send").click()
        expect(section.locator(".answer")).to_contain_text('"id": "post7"')

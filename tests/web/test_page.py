"""The search page in a real browser, at a real server."""

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser_chromium import browsing, watched
from browser_server import ServeProcess
from live_server import serving
from playwright.sync_api import Browser, Error, Page, expect

from parabit import Document, Index
from parabit.web import Settings
from topics import Topics

NO_MAP = Settings(map=False)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as browser:
        yield browser


@pytest.fixture(scope="module")
def address(_made: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of `parabit serve` with 300 documents of 20 bits; their map is drawn meanwhile."""
    folder = tmp_path_factory.mktemp("served") / "news.index"
    shutil.copytree(_made, folder)
    server = ServeProcess(folder)
    server.start()
    yield server.address
    server.stop()


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    with watched(browser, address) as page:
        yield page


@pytest.fixture
def opened(browser: Browser) -> Callable[..., AbstractContextManager[Page]]:
    """A watched page of any server."""

    def open_page(address: str, *expected: str, **options: Any) -> AbstractContextManager[Page]:
        return watched(browser, address, expected, **options)

    return open_page


@pytest.fixture(scope="module")
def words(topics: Topics) -> list[str]:
    """Words of the first document."""
    return topics.texts[0].split()


def search(page: Page, query: str, more: str = "") -> None:
    page.goto(f"/#q={query.replace(' ', '+')}{more}")
    expect(page.locator(".hit").first).to_be_visible()


def hits(page: Page) -> list[dict[str, Any]]:
    """The hits that are shown."""
    found: list[dict[str, Any]] = page.eval_on_selector_all(".hit", "found => found.map((article) => article.hit)")
    return found


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


# ------------------------------------------------------------------------------------------------- the map, and searching


def test_the_map_appears_by_itself_once_it_is_drawn(page: Page) -> None:
    page.goto("/")
    expect(page.locator("#message h1")).to_have_text("What are you looking for?")
    expect(page.locator(".facts")).to_contain_text("300")
    expect(page.locator(".facts")).to_contain_text("3bytes a document")
    wait_for_map(page)
    expect(page.locator("#legend button")).to_have_count(4)


def test_related_documents_appear_as_one_types(page: Page, words: list[str]) -> None:
    page.goto("/")
    box = page.get_by_role("textbox", name="Search the collection")
    expect(box).to_be_focused()
    box.press_sequentially(words[0])
    expect(page.locator(".hit")).to_have_count(10)
    expect(page.locator("#count")).to_contain_text("10 hits of 300 documents, ranked by hybrid")
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
    assert page.evaluate("window.fewest") == 10
    assert state(page) == f"#q={'+'.join(words[:3])}"


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
    held = []
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


def test_a_click_on_the_map_opens_a_document(page: Page) -> None:
    page.goto("/")
    wait_for_map(page)
    chart = page.request.get("/api/map").json()
    points = np.column_stack([chart["x"], chart["y"]]).astype(float)
    apart = np.linalg.norm(points[:, None] - points[None], axis=2)
    alone = int((apart + np.eye(len(points)) * 1e9).min(axis=1).argmax())
    x, y = on_screen(page, points[alone].tolist())
    page.mouse.move(x + 1, y)
    expect(page.locator("#map-tip")).to_contain_text(chart["ids"][alone])
    expect(page.locator("#map-tip")).to_contain_text(chart["labels"][chart["label"][alone]])
    page.mouse.click(x + 1, y)
    expect(page.get_by_role("dialog").get_by_role("heading")).to_have_text(chart["ids"][alone])
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_the_map_can_be_moved_and_zoomed(page: Page) -> None:
    page.emulate_media(reduced_motion="reduce")
    page.goto("/")
    wait_for_map(page)
    area = page.locator("#map")

    def view() -> list[float]:
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return [float(part) for part in str(area.get_attribute("data-view")).split()]

    x, y, scale = view()
    box = area.bounding_box()
    assert box is not None
    corner = (box["x"] + 100, box["y"] + 100)
    page.mouse.move(*corner)
    page.mouse.wheel(0, -300)
    nearer = view()
    assert nearer[2] > scale
    assert (nearer[0] < x, nearer[1] < y) == (True, True)  # it goes where the pointer is
    page.mouse.down()
    page.mouse.move(corner[0] + 80, corner[1] + 40)
    page.mouse.up()
    assert view() == pytest.approx([nearer[0] - 80 / nearer[2], nearer[1] - 40 / nearer[2], nearer[2]])
    expect(page.get_by_role("dialog")).to_be_hidden()  # a drag is no click
    page.get_by_role("button", name="Show the whole map").click()
    assert view() == pytest.approx([x, y, scale])
    page.locator("#map-marks").focus()
    page.keyboard.press("+")
    page.keyboard.press("ArrowRight")
    assert view()[2] == pytest.approx(scale * 1.6)
    assert view()[0] > x
    page.keyboard.press("0")
    page.keyboard.press("-")
    assert view()[2] < scale


def test_hits_light_up_on_the_map(page: Page, words: list[str]) -> None:
    page.goto("/")
    wait_for_map(page)
    page.locator("#query").fill(" ".join(words[:3]))
    expect(page.locator(".hit").first).to_be_visible()
    first = hits(page)[0]
    page.get_by_role("button", name="Zoom to the hits").click()
    page.wait_for_timeout(400)
    dot = page.locator(".hit .chip .dot").first.evaluate("(dot) => getComputedStyle(dot).backgroundColor")
    assert colour_at(page, first["position"]) == dot
    page.mouse.move(*on_screen(page, first["position"]))
    expect(page.locator("#map-tip")).to_be_visible()
    expect(page.locator(".hit.pointed")).to_have_count(1)
    page.locator("#clear").click()
    expect(page.locator(".hit")).to_have_count(0)
    page.mouse.move(5, 5)
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert colour_at(page, first["position"]) != dot


# ------------------------------------------------------------------------------------------------- filters and the address


def test_the_filter_by_label(page: Page, words: list[str]) -> None:
    search(page, words[0], "&k=50")
    page.get_by_role("button", name="All labels").click()
    panel = page.get_by_role("dialog", name="Labels")
    assert len(panel.get_by_role("checkbox").all()) == 4
    page.keyboard.type("TOPIC2")
    expect(panel.get_by_role("checkbox")).to_have_count(1)
    page.keyboard.press("Enter")
    page.wait_for_function("[...document.querySelectorAll('.hit')].every((article) => article.hit.labels[0] === 'topic2')")
    assert state(page).endswith("label=topic2")
    page.locator("#labels-search").fill("")
    panel.get_by_role("checkbox", name="topic0").check()
    page.wait_for_function("new Set([...document.querySelectorAll('.hit')].map((article) => article.hit.labels[0])).size === 2")
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(page.locator("#active-labels .chip")).to_have_text(["topic2", "topic0"])
    page.locator("#active-labels .chip", has_text="topic2").click()
    expect(page.locator("#labels-told")).to_have_text("topic0")
    page.locator(".hit .chip").first.click()  # the chip of a hit takes its label off again
    expect(page.locator("#labels-told")).to_have_text("All labels")
    wait_for_map(page)
    page.locator("#legend").get_by_role("button", name="topic1").click()
    expect(page.locator("#labels-told")).to_have_text("topic1")


def test_radius_rank_and_the_number_of_hits(page: Page, words: list[str]) -> None:
    search(page, " ".join(words[:3]))
    page.get_by_label("Ranked by").select_option("hamming")
    expect(page.locator("#count")).to_contain_text("ranked by hamming")
    page.get_by_label("Hits", exact=True).select_option("20")
    expect(page.locator(".hit")).to_have_count(20)
    page.get_by_role("button", name="Show 10 more").click()
    expect(page.locator(".hit")).to_have_count(30)
    farthest = max(hit["distance"] for hit in hits(page))
    slider = page.get_by_role("slider")
    slider.focus()
    page.keyboard.press("Home")
    expect(page.locator("#radius-told")).to_have_text("the same code")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#radius-told")).to_have_text("1 bit")
    page.wait_for_function("[...document.querySelectorAll('.hit')].every((article) => article.hit.distance <= 1)")
    assert farthest > 1
    assert state(page) == f"#q={'+'.join(words[:3])}&k=30&radius=1&rank=hamming"
    page.keyboard.press("End")
    expect(page.locator("#radius-told")).to_have_text("any distance")


def test_nothing_found_says_why_and_what_to_do(page: Page, words: list[str]) -> None:
    page.goto(f"/#q={'+'.join(words[:2])}&radius=0&label=topic9")
    expect(page.locator("#message")).to_contain_text("No document with the same code with the label topic9.")
    page.get_by_role("button", name="With any label").click()
    page.wait_for_function("!location.hash.includes('label')")
    page.goto(f"/#q={words[0]}&label=topic9")
    expect(page.locator("#message")).to_contain_text("No document with the label topic9.")


def test_unknown_words_are_said_to_be_unknown(page: Page) -> None:
    page.goto("/#q=qwertz")
    expect(page.locator("#message")).to_contain_text("The model knows no word of “qwertz”")
    expect(page.locator(".hit")).to_have_count(0)


def test_a_value_that_the_server_refuses_is_told_in_its_words(opened: Any, address: str, words: list[str]) -> None:
    with opened(address, "status of 400") as page:
        page.goto(f"/#q={words[0]}&rank=magic")
        expect(page.locator("#message")).to_contain_text("This index cannot rank by 'magic'. It can by hamming")


def test_the_address_holds_everything(page: Page, words: list[str]) -> None:
    search(page, words[0], "&k=20&radius=6&label=topic0&label=topic1&rank=tfidf")
    shown = hits(page)
    page.reload()
    expect(page.locator(".hit").first).to_be_visible()
    assert hits(page) == shown
    assert page.locator("#query").input_value() == words[0]
    assert page.locator("#k").input_value() == "20"
    assert page.locator("#rank").input_value() == "tfidf"
    expect(page.locator("#radius-told")).to_have_text("6 bits")
    expect(page.locator("#labels-told")).to_have_text("2 labels")
    page.locator("#query").fill(words[3])
    page.wait_for_function("word => location.hash.includes(word)", arg=words[3])
    page.go_back()
    expect(page.locator("#query")).to_have_value(words[0])
    page.go_forward()
    expect(page.locator("#query")).to_have_value(words[3])


# ------------------------------------------------------------------------------------------------- keys, screens and colours


def test_everything_goes_by_keyboard(page: Page, words: list[str]) -> None:
    page.goto("/")
    expect(page.locator("#message h1")).to_be_visible()
    page.locator("#theme-button").focus()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    expect(page.locator("#query")).to_be_focused()
    page.keyboard.type(" ".join(words[:3]))
    expect(page.locator(".hit")).to_have_count(10)
    found = [hit["id"] for hit in hits(page)]
    page.keyboard.press("ArrowDown")
    expect(page.locator(".hit").nth(0)).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".hit").nth(1)).to_be_focused()
    assert page.locator(".hit").nth(1).evaluate("(hit) => getComputedStyle(hit).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    document = page.locator("#document")
    expect(document.get_by_role("heading")).to_have_text(found[1])
    page.keyboard.press("ArrowRight")
    expect(document.get_by_role("heading")).to_have_text(found[2])
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
    expect(page.locator("#message h1")).to_be_visible()


def test_all_that_can_be_used_has_a_name(page: Page, words: list[str]) -> None:
    search(page, words[0])
    nameless = page.evaluate("""() => [...document.querySelectorAll("button, a, input, select, textarea, [tabindex]")]
        .filter((one) => !(one.getAttribute("aria-label") || one.labels?.length || one.textContent.trim() || one.closest("dialog")))
        .map((one) => one.outerHTML)""")
    assert nameless == []
    assert page.locator("#count").get_attribute("aria-live") == "polite"


@pytest.mark.parametrize("where", ["/", "/docs"])
def test_nothing_scrolls_sideways_on_a_narrow_screen(opened: Any, address: str, words: list[str], where: str) -> None:
    with opened(address, viewport={"width": 360, "height": 740}, has_touch=True) as page:
        sideways = "document.documentElement.scrollWidth > innerWidth"
        page.goto(where)
        expect(page.locator("h1").first).to_be_visible()
        assert not page.evaluate(sideways)
        if where == "/docs":
            return
        page.locator("#query").fill(" ".join(words[:20]))
        expect(page.locator(".hit").first).to_be_visible()
        assert not page.evaluate(sideways)
        page.get_by_role("button", name="Options").click()
        page.get_by_role("button", name="All labels").click()
        assert not page.evaluate(sideways)
        page.keyboard.press("Escape")
        page.get_by_role("tab", name="Map").click()
        wait_for_map(page)
        expect(page.locator(".hit").first).to_be_hidden()
        assert not page.evaluate(sideways)
        page.get_by_role("tab", name="Documents").click()
        page.get_by_role("button", name="Open").first.click()
        expect(page.locator("#document .document-text")).to_be_visible()
        assert not page.evaluate(sideways)
        assert page.locator("#document").evaluate("(one) => one.scrollWidth <= one.clientWidth")


CONTRAST = """() => {
    const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    const layers = (element) => (element ? [...layers(element.parentElement), getComputedStyle(element).backgroundColor] : ["white"]);
    const painted = (colours) => {
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
        if ((high + 0.05) / (low + 0.05) < 4.5) faint.add(`${element.tagName} ${element.className}: ${element.textContent.slice(0, 30)}`);
    }
    return [...faint];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_can_be_read(page: Page, words: list[str], scheme: Any) -> None:
    page.emulate_media(color_scheme=scheme)
    for where in ("/", f"/#q={words[0]}&label=topic0", f"/#q={words[0]}&like=post1&doc=post0", "/docs"):
        page.goto(where)
        page.reload()
        expect(page.locator("#document .document-text" if "doc=" in where else "h1, .hit, #contents").first).to_be_visible()
        assert page.evaluate(CONTRAST) == []


def test_light_and_dark(page: Page) -> None:
    page.emulate_media(color_scheme="dark")
    page.goto("/")
    brightness = "() => getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/g).reduce((sum, part) => sum + +part, 0)"
    assert page.evaluate(brightness) < 150
    page.get_by_role("button", name="Light page").click()
    assert page.evaluate(brightness) > 600
    page.reload()
    assert page.evaluate(brightness) > 600
    page.get_by_role("button", name="Dark page").click()
    assert page.evaluate(brightness) < 150
    page.emulate_media(color_scheme="light")  # at one with the system again, it follows it
    page.wait_for_function(f"({brightness})() > 600")


def test_twenty_thousand_points_are_drawn_within_a_frame(page: Page) -> None:
    page.goto("/")
    fastest = page.evaluate("""async () => {
        const { Painter } = await import("/static/map-points.js");
        const canvas = document.createElement("canvas");
        canvas.width = canvas.height = 1200;
        const painter = new Painter(canvas), count = 20000;
        const x = Float32Array.from({ length: count }, () => Math.random() * 65535), y = x.map(() => Math.random() * 65535);
        const points = Uint32Array.from(x, (_, place) => place);
        const groups = Array.from({ length: 12 }, (_, group) => ({
            points: points.filter((point) => point % 12 === group), colour: [group * 20, 90, 160], strength: 0.9, radius: 3,
        }));
        const times = Array.from({ length: 12 }, () => {
            const start = performance.now();
            painter.paint(x, y, groups, { scale: 1200 / 65536, left: 0, top: 0 }, [255, 255, 255]);
            return performance.now() - start;
        });
        return Math.min(...times);
    }""")
    assert fastest < 16


# ------------------------------------------------------------------------------------------------- indexes of all kinds


HOSTILE = [
    "<script>alert('text')</script>",
    '"><img src=x onerror=alert(1)>',
    "<img src='https://example.org/x.png' onerror=\"document.body.dataset.ran=1\">",
    "javascript:alert(2)//'\"`&amp;&lt;",
]


def test_a_hostile_document_is_shown_and_never_run(opened: Any, topic_model: Path, topics: Topics, tmp_path: Path) -> None:
    from parabit import ParagraphVectors

    documents = [
        Document(
            HOSTILE[number % 4] + str(number),
            f"{HOSTILE[number % 4]} {topics.texts[number]} {HOSTILE[(number + 1) % 4]}",
            (HOSTILE[number % 4], HOSTILE[(number + 2) % 4]),
            {HOSTILE[3]: HOSTILE[1], "title": HOSTILE[(number + 3) % 4], "url": "javascript:alert(3)"},
        )
        for number in range(12)
    ]
    folder = tmp_path / "<b onmouseover=alert(4)>.index"
    with Index.build(ParagraphVectors.load(topic_model), documents, folder) as index:
        index.keep_map(index.draw_map())
    word = topics.texts[1].split()[0]
    example = Settings(examples=("<img src=x onerror=alert(5)>",))
    with serving(folder, example) as address, opened(address) as page:
        page.goto("/")
        expect(page.locator(".example")).to_have_text("<img src=x onerror=alert(5)>")
        expect(page.locator("#collection")).to_contain_text("<b onmouseover=alert(4)>.index")
        wait_for_map(page)
        page.locator("#map-marks").hover()
        page.locator("#query").fill(f"{word} <script>alert(6)</script>")
        expect(page.locator(".hit")).to_have_count(10)
        for hit, shown in zip(hits(page), page.locator(".hit").all(), strict=True):
            expect(shown.locator(".id")).to_have_text(hit["id"])
            expect(shown.locator(".chip")).to_have_text(hit["labels"])
            expect(shown.locator(".title")).to_have_text(hit["fields"]["title"])
        page.get_by_role("button", name="All labels").click()
        expect(page.locator(".label-list .name").first).to_have_text(re.compile("script|img|javascript"))
        page.keyboard.press("Escape")
        page.locator(".hit .chip").first.click()
        expect(page.locator("#labels-button.set")).to_be_visible()
        page.locator(".hit .title").first.click()
        found = hits(page)[0]
        expect(page.locator("#document h2")).to_have_text(found["fields"]["title"])
        [whole] = (document.text for document in documents if document.id == found["id"])
        expect(page.locator(".document-text")).to_have_text(whole)
        expect(page.locator(".fields")).to_contain_text(HOSTILE[1])
        page.keyboard.press("m")
        expect(page.locator("#trail")).to_contain_text(found["id"][:40])
        page.reload()
        expect(page.locator("#trail")).to_contain_text(found["id"][:40])
        assert page.evaluate("document.body.dataset.ran") is None
        assert page.locator("main script, main img, dialog img, dialog script, main b[onmouseover]").count() == 0


def test_an_empty_index_says_how_to_fill_it_and_sees_when_it_is(
    opened: Any, _made: Path, topic_documents: list[Document], tmp_path: Path
) -> None:
    folder = tmp_path / "news.index"
    shutil.copytree(_made, folder)
    with Index.open(folder, write=True) as index:
        index.delete([document.id for document in topic_documents])
    with serving(folder) as address, opened(address) as page:
        page.goto("/")
        expect(page.locator("#message h1")).to_have_text("No documents yet")
        expect(page.locator("#message")).to_contain_text("parabit add news.index")
        expect(page.locator("#map")).to_be_hidden()
        with Index.open(folder, write=True) as index:
            index.add(topic_documents[:3])
        expect(page.locator("#message h1")).to_have_text("What are you looking for?")
        expect(page.locator(".facts")).to_contain_text("3")


def test_an_index_of_codes_is_browsed(opened: Any, tmp_path: Path) -> None:
    codes = np.random.default_rng(3).integers(256, size=(40, 4), dtype=np.uint8)
    folder = tmp_path / "codes.index"
    with Index.of_codes(codes, 32, folder, fields=[{"labels": [f"part {row % 2}"]} for row in range(40)]) as index:
        index.keep_map(index.draw_map())
    with serving(folder) as address, opened(address) as page:
        page.goto("/")
        expect(page.locator("#query")).to_be_disabled()
        expect(page.locator("#message")).to_contain_text("a text cannot be searched for here")
        wait_for_map(page)
        chart = page.request.get("/api/map").json()
        page.mouse.click(*on_screen(page, [chart["x"][7], chart["y"][7]]))
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("The index keeps no texts")
        expect(dialog.locator("figcaption")).to_have_text("Its code: 32 bits, 4 bytes.")
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
        expect(page.locator("#message h1")).to_have_text("A collection of codes")


def test_an_index_without_texts_or_map_looks_whole(
    opened: Any, topic_model: Path, topic_documents: list[Document], tmp_path: Path, words: list[str]
) -> None:
    from parabit import ParagraphVectors

    folder = tmp_path / "codes-only.index"
    Index.build(ParagraphVectors.load(topic_model), topic_documents[:50], folder, text=False).close()
    with serving(folder, NO_MAP) as address, opened(address) as page:
        search(page, words[0])
        expect(page.locator(".hit")).to_have_count(10)
        expect(page.locator(".passage")).to_have_count(0)
        expect(page.locator("#map")).to_be_hidden()
        expect(page.locator("#map-note")).to_have_text("There is no map: the server was started without a map.")
        page.locator(".hit").first.click()
        expect(page.locator(".document-text")).to_contain_text("The index keeps no texts")


# ------------------------------------------------------------------------------------------------- the server's troubles


def test_the_page_recovers_when_the_server_was_gone(opened: Any, _made: Path, tmp_path: Path, words: list[str]) -> None:
    folder = tmp_path / "news.index"
    shutil.copytree(_made, folder)
    server = ServeProcess(folder, "--no-map")
    server.start()
    try:
        with opened(server.address, "ERR_CONNECTION_REFUSED", "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE") as page:
            search(page, words[0])
            before = hits(page)
            server.kill()
            page.locator("#query").fill(words[1])
            expect(page.get_by_role("alert")).to_have_text("The connection is lost; trying again …")
            assert hits(page) == before  # what was there stays
            server.start()
            expect(page.get_by_role("alert")).to_be_hidden()
            expect(page.locator(".hit mark").first).to_have_text(words[1])
    finally:
        server.kill()


def test_a_token_is_asked_for_and_used(opened: Any, _made: Path, words: list[str]) -> None:
    with (
        serving(_made, Settings(token="open-sesame", map=False)) as address,
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


def test_a_busy_server_is_asked_again(opened: Any, _made: Path, words: list[str]) -> None:
    with (
        serving(_made, Settings(seconds=1e-9, map=False)) as address,
        opened(address, "status of 503") as page,
    ):
        page.goto(f"/#q={words[0]}")
        expect(page.locator("#message")).to_contain_text("The server is busy")
        expect(page.locator("#message")).to_contain_text("Trying again in 2 seconds")


# ------------------------------------------------------------------------------------------------- the page of the API


def test_the_page_of_the_api_has_every_operation_and_tries_them(opened: Any, address: str, words: list[str]) -> None:
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

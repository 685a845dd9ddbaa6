"""The map of the page, in a real browser at a real server."""

import pytest
from browser_pages import frame, on_screen, wait_for_map
from playwright.sync_api import Page, expect

pytest_plugins = ("browser_pages",)


def test_the_map_appears_by_itself_and_can_be_hidden(page: Page) -> None:
    page.goto("/")
    wait_for_map(page)
    expect(page.locator("#legend button")).to_have_count(4)
    page.get_by_role("button", name="Hide map").click()
    expect(page.locator("#map")).to_be_hidden()
    page.reload()
    expect(page.locator("#message h2")).to_be_visible()
    expect(page.locator("#map")).to_be_hidden()
    page.get_by_role("button", name="Show map").click()
    wait_for_map(page)


def test_names_on_the_map_stay_inside_and_apart(page: Page) -> None:
    page.goto("/")
    drawn = page.evaluate("""async () => {
        const { drawMarks } = await import("/static/map-marks.js");
        const count = 4000, side = 65535, names = [];
        let seed = 1;
        const random = () => { seed = (seed * 16807) % 2147483647; return seed / 2147483647; };
        const x = Float32Array.from({ length: count }, () => random() * side), y = x.map(() => random() * side);
        const homes = Array.from({ length: 40 }, (_, at) => ({ label: `a label ${at}`, x: x[at], y: y[at] }));
        const canvas = document.createElement("canvas"), context = canvas.getContext("2d");
        canvas.width = canvas.height = 600;
        context.fillText = (text, left, top) => names.push([text, left, top, context.measureText(text).width / 2]);
        const scale = 560 / side;
        const view = { width: 600, height: 600, scale, toScreen: (a, b) => [a * scale + 20, b * scale + 20] };
        const colours = { halo: "white", ink: "black", accent: "blue" };
        drawMarks(context, view, colours, { homes, hits: [], query: null, x, y, tools: [546, 0, 600, 170] }, 1);
        return names;
    }""")
    boxes = [(x - half, y - 7, x + half, y + 7) for _, x, y, half in drawn]
    assert len(boxes) > 10
    for place, one in enumerate(boxes):
        assert min(one) >= 0
        assert max(one) <= 600
        for other in [*boxes[:place], (546, 0, 600, 170)]:
            assert (
                one[0] >= other[2] or other[0] >= one[2] or one[1] >= other[3] or other[1] >= one[3]
            )


def test_the_map_can_be_moved_and_zoomed(page: Page) -> None:
    page.emulate_media(reduced_motion="reduce")
    page.goto("/")
    wait_for_map(page)
    area = page.locator("#map")

    def view() -> list[float]:
        frame(page)
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
    assert view() == pytest.approx(
        [nearer[0] - 80 / nearer[2], nearer[1] - 40 / nearer[2], nearer[2]]
    )
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


def test_hits_light_up_on_the_map(page: Page, words: list[str]) -> None:
    page.goto("/")
    wait_for_map(page)
    page.locator("#query").fill(" ".join(words[:3]))
    expect(page.locator(".hit").first).to_be_visible()
    chart = page.request.get("/api/map").json()
    point = chart["ids"].index(page.locator(".hit").first.evaluate("(article) => article.hit.id"))
    place = [chart["x"][point], chart["y"][point]]
    page.emulate_media(reduced_motion="reduce")
    page.get_by_role("button", name="Zoom to the hits").click()
    frame(page)
    dot = page.locator(".hit .chip .dot").first.evaluate(
        "(dot) => getComputedStyle(dot).backgroundColor"
    )
    assert colour_at(page, place) == dot
    page.mouse.move(*on_screen(page, place))
    expect(page.locator("#map-tip")).to_contain_text(chart["titles"][point])
    expect(page.locator("#map-tip")).to_contain_text(chart["labels"][chart["label"][point]])
    expect(page.locator(".hit.pointed")).to_have_count(1)
    page.locator("#clear").click()
    expect(page.locator(".hit")).to_have_count(0)
    page.mouse.move(5, 5)
    frame(page)
    assert colour_at(page, place) != dot

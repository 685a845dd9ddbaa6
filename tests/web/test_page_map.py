"""The map of the page, in a real browser at a real server."""

import numpy as np
import pytest
from browser_pages import colour_at, frame, on_screen, wait_for_map
from playwright.sync_api import Page, expect

pytest_plugins = ("browser_pages",)


def test_the_map_appears_by_itself_once_it_is_drawn(page: Page) -> None:
    page.goto("/")
    expect(page.locator("#message h1")).to_have_text("What are you looking for?")
    expect(page.locator(".facts")).to_contain_text("300")
    expect(page.locator(".facts")).to_contain_text("3bytes a document")
    wait_for_map(page)
    expect(page.locator("#legend button")).to_have_count(4)


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
    place = page.locator(".hit").first.evaluate("(article) => article.hit.position")
    page.get_by_role("button", name="Zoom to the hits").click()
    page.wait_for_timeout(400)
    dot = page.locator(".hit .chip .dot").first.evaluate("(dot) => getComputedStyle(dot).backgroundColor")
    assert colour_at(page, place) == dot
    page.mouse.move(*on_screen(page, place))
    expect(page.locator("#map-tip")).to_be_visible()
    expect(page.locator(".hit.pointed")).to_have_count(1)
    page.locator("#clear").click()
    expect(page.locator(".hit")).to_have_count(0)
    page.mouse.move(5, 5)
    frame(page)
    assert colour_at(page, place) != dot


def test_twenty_thousand_points_are_drawn_within_a_frame(page: Page) -> None:
    page.goto("/")
    fastest = page.evaluate("""async () => {
        const { Painter } = await import("/static/map-points.js");
        const canvas = document.createElement("canvas");
        canvas.width = canvas.height = 1200;
        const painter = new Painter(canvas), count = 20000;
        const x = Float32Array.from({ length: count }, () => Math.random() * 65535);
        const y = x.map(() => Math.random() * 65535);
        const points = Uint32Array.from(x, (_, place) => place);
        const groups = Array.from({ length: 12 }, (_, group) => ({
            points: points.filter((point) => point % 12 === group), colour: [group * 20, 90, 160], radius: 3,
        }));
        const times = Array.from({ length: 12 }, () => {
            const start = performance.now();
            painter.paint(x, y, groups, { scale: 1200 / 65536, left: 0, top: 0 }, [255, 255, 255]);
            return performance.now() - start;
        });
        return Math.min(...times);
    }""")
    assert fastest < 16

"""Takes the pictures of the search page: `python docs/page_pictures.py INDEX` writes docs/images/page-*.png.

INDEX is that of `parabit demo`, the documentation of the Python packages installed here. It needs a Chromium, as the
tests of the page do: the system's, or the one that PARABIT_CHROMIUM names.
"""

import os
import shutil
import socket
import sys
import threading
from pathlib import Path

import uvicorn
from PIL import Image
from playwright.sync_api import sync_playwright

from parabit.web import Settings, create_app

IMAGES = Path(__file__).parent / "images"
QUERIES = (
    "shortest path between two nodes",
    "solve a sparse linear system",
    "send an e-mail over smtp",
    "parse a date",
)
QUERY = QUERIES[1].replace(" ", "+")
SHOWN = {  # name: width, height, pixels per point, colours, page
    "page-desktop-light": (1400, 900, 1, "light", f"/#q={QUERY}"),
    "page-desktop-dark": (1400, 900, 1, "dark", f"/#q={QUERY}"),
    "page-phone-light": (400, 800, 2, "light", "/"),
    "page-phone-dark": (400, 800, 2, "dark", f"/#q={QUERY}"),
}


def take(address: str) -> None:
    """Take all pictures of a server's page."""
    program = (
        os.environ.get("PARABIT_CHROMIUM")
        or shutil.which("chromium")
        or shutil.which("google-chrome")
    )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for name, (width, height, scale, scheme, where) in SHOWN.items():
            page = browser.new_page(
                viewport={"width": width, "height": height},
                device_scale_factor=scale,
                color_scheme=scheme,
            )
            page.goto(address + where)
            page.wait_for_selector(".recent" if where == "/" else ".hit", timeout=60_000)
            if width > 900:
                page.wait_for_selector("#map.ready[data-view]", timeout=600_000)
                page.locator(".why-button").first.click()
                page.wait_for_selector(".share")
                page.mouse.move(width / 2, 2)
            path = IMAGES / f"{name}.png"
            page.screenshot(path=path, animations="disabled")
            colours = (
                Image.open(path).convert("RGB").quantize(255, method=Image.Quantize.MAXCOVERAGE)
            )
            colours.save(path, optimize=True)
            page.close()
        browser.close()


def main(folder: str) -> None:
    """Serve an index and take its pictures."""
    app = create_app(folder, Settings(title="Python documentation", examples=QUERIES))
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    take(f"http://127.0.0.1:{listener.getsockname()[1]}")
    server.should_exit = True
    thread.join()


if __name__ == "__main__":
    main(sys.argv[1])

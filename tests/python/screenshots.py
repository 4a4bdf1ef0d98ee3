"""Takes the pictures of the hub's pages that the README shows: `cargo xtask screenshots`."""

import pathlib
import sys
import tempfile

from hub_process import Demo, Hub
from PIL import Image
from playwright.sync_api import sync_playwright
from test_browser import ARGUMENTS, CHROMIUM

LARGEST = 200_000
DESK = {"width": 1180, "height": 860}
PHONE = {"width": 390, "height": 800}


def take(browser, address, path, screen, scheme):
    context = browser.new_context(viewport=screen, color_scheme=scheme)
    page = context.new_page()
    page.goto(address)
    page.screenshot(path=path)
    context.close()
    Image.open(path).convert("RGB").save(path, optimize=True)
    size = path.stat().st_size
    assert size < LARGEST, f"{path} has {size} bytes"
    print(f"{path}: {size} bytes")


def main():
    target = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        folder = pathlib.Path(folder)
        hub = Hub(folder)
        try:
            study = f"{hub.address}/studies/{Demo(folder / 'demo').publish(hub)}"
            explore = f"{study}/explore?label=pressure"
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
            take(browser, study, target / "hub-study.png", DESK, "light")
            take(browser, explore, target / "hub-explorer.png", DESK, "light")
            take(browser, explore, target / "hub-explorer-dark.png", DESK, "dark")
            take(browser, explore, target / "hub-explorer-phone.png", PHONE, "light")
            browser.close()
        finally:
            hub.stop()


if __name__ == "__main__":
    main()

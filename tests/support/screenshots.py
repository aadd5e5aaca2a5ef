"""Write screenshots of six pages in light and dark: `python tests/support/screenshots.py docs/images`.

With EVERY_PAGE=1 in the environment of all pages, in three widths and both languages, from top to bottom.
"""

from __future__ import annotations

import os
import sys
import tempfile
from itertools import product
from pathlib import Path
from typing import Literal

from PIL import Image
from playwright.sync_api import Page, ViewportSize, sync_playwright

from page_store import CHROMIUM, MIRA, filled, store_url
from service_processes import served

SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
SHOTS = {
    "memory": f"{MIRA}/memory",
    "fact": "",
    "session": f"{MIRA}/sessions/trip",
    "review": f"{MIRA}/review",
    "context": f"{MIRA}/context?q=Which+seat+should+I+book%3F",
    "own-data": f"{MIRA}/mine",
}
MORE = {
    "search": f"{MIRA}/memory?q=where+do+I+live",
    "runs": f"{MIRA}/runs",
    "run": f"{MIRA}/runs/2",
    "operations": "/pages/operations",
    "forget": f"{MIRA}/forget?session=trip",
    "sessions": f"{MIRA}/sessions",
    "nothing-found": f"{MIRA}/memory?q=zzzz",
    "not-there": f"{MIRA}/facts/nothing",
    "not-understood": f"{MIRA}/memory?as_of=nonsense",
    "empty": "/pages/default/user/nobody/memory",
}
WIDTHS, LANGUAGES = (320, 768, 1440), ("en-GB", "de-DE")


def shoot(page: Page, address: str, shots: dict[str, str], target: Path, ending: str, *, is_full: bool) -> None:
    """Write a picture of each page."""
    for name, path in shots.items():
        if name == "fact":
            page.goto(f"{address}{MIRA}/memory?status=superseded")
            path = page.locator(".facts a").first.get_attribute("href") or ""
        page.goto(f"{address}{path}")
        picture = target / f"{name}{ending}.png"
        page.screenshot(path=picture, full_page=is_full)
        Image.open(picture).quantize(64).save(picture, optimize=True)


def main(target: Path, *, is_full: bool) -> None:
    """Fill a store, serve it, and write the pictures."""
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        keys = filled(Path(folder))
        with served(store_url(Path(folder)), Path(folder)) as (_, address):
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            sizes = product(LANGUAGES, WIDTHS) if is_full else [("en-GB", 1100)]
            for (language, width), scheme in product(sizes, SCHEMES):
                size = ViewportSize(width=width, height=900)
                context = browser.new_context(
                    viewport=size, color_scheme=scheme, timezone_id="Europe/Oslo", locale=language
                )
                page = context.new_page()
                page.goto(f"{address}/pages/")
                page.fill("#key", keys.admin)
                page.click("main button")
                ending = f"-{language[:2]}-{scheme}-{width}" if is_full else f"-{scheme}"
                shoot(page, address, {**SHOTS, **MORE} if is_full else SHOTS, target, ending, is_full=is_full)
                context.close()
            browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), is_full=bool(os.environ.get("EVERY_PAGE")))

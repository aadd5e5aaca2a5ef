"""The site and the reference: built strictly, without a network, with a search that asks no other host; complete."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from generator.reference import PAGES, write_pages
from generator.staging import place_of, stage
from page_store import CHROMIUM
from pages import all_pages, broken_links

SCRIPTS_AND_STYLES = re.compile(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=\"?(https?://[^\" >]+)")


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture(scope="module")
def built(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the configuration with the pages and the site beside it."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copy(repository / "mkdocs.yml", folder)
    stage(repository, folder / "build" / "pages")
    write_pages(folder / "build" / "pages")
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    # A proxy that nobody serves: a request to any host would fail.
    environment = {**os.environ, "https_proxy": "http://127.0.0.1:9", "http_proxy": "http://127.0.0.1:9"}
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, timeout=120)
    return folder


def test_the_pages_link_to_each_other(built: Path) -> None:
    assert broken_links(sorted((built / "build" / "pages").rglob("*.md"))) == []


def test_every_page_is_in_the_navigation(built: Path, repository: Path) -> None:
    def listed(node: object) -> Iterator[str]:
        if isinstance(node, str):
            yield node
        for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
            yield from listed(inner)

    navigation = list(listed(yaml.safe_load((built / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]))
    assert len(navigation) == len(set(navigation))
    written = {place_of(page.relative_to(repository)).as_posix() for page in all_pages(repository)}
    assert set(navigation) == written | set(PAGES)
    for page in navigation:
        place = Path(page).with_suffix("")
        name = "index.html" if page == "index.md" else f"{place}/index.html"
        assert (built / "build" / "site" / name).exists(), page


def test_no_page_loads_anything_from_another_host(built: Path) -> None:
    pages = list((built / "build" / "site").rglob("*.html"))
    assert len(pages) > 40
    assert {url for page in pages for url in SCRIPTS_AND_STYLES.findall(page.read_text(encoding="utf-8"))} == set()


@pytest.mark.skipif(CHROMIUM is None and "CI" not in os.environ, reason="no chromium: `make browser` installs Debian's")
def test_the_search_finds_a_page_and_asks_no_other_host(built: Path) -> None:
    from playwright.sync_api import expect, sync_playwright

    handler = partial(QuietHandler, directory=str(built / "build" / "site"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server, sync_playwright() as playwright:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        asked: list[str] = []
        page = browser.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{address}/index.html")
        page.get_by_role("button", name="Search").first.click()
        page.keyboard.type("tombstone")
        expect(page.get_by_role("option").first.locator("mark").first).to_contain_text("ombstone")
        browser.close()
        server.shutdown()
    assert {url for url in asked if not url.startswith((f"{address}/", "data:", "blob:"))} == set()

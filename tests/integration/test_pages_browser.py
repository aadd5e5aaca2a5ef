"""The pages in a real browser on a real server: journeys by keyboard alone, accessibility, other hosts, weight."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Playwright,
    Request,
    Route,
    expect,
    sync_playwright,
)

from page_store import CHROMIUM, MIRA, Keys, filled, filled_for, store_url
from service_processes import served

IS_MISSING = CHROMIUM is None and "CI" not in os.environ
pytestmark = [
    pytest.mark.begun_first,
    pytest.mark.skipif(IS_MISSING, reason="no chromium: `make browser` installs Debian's"),
]

MOST_BYTES = 150_000
WEIGH = "performance.getEntries().filter(e => e.encodedBodySize).reduce((sum, e) => sum + e.encodedBodySize, 0)"
LONGEST_MS = 120_000
WITHOUT_GRAPHICS = ("--disable-gpu", "--disable-software-rasterizer", "--disable-gpu-compositing")
"""A processor that draws what a graphics card would draw takes a fifth of the time of a page."""
USUAL: dict[str, Any] = {"viewport": {"width": 1000, "height": 800}, "locale": "en-GB"}
AXE = Path(__file__).parent.parent / "support" / "vendored" / "axe.min.js"


@dataclass
class Tab:
    """A tab of the browser, and what it did that no page may do."""

    page: Page
    address: str
    faults: list[str] = field(default_factory=list)
    expected_status: int | None = None
    """The status of answers that this test brings about: the browser tells of them in its console, at its own time."""

    def note(self, message: ConsoleMessage) -> None:
        """Note an error of the console."""
        if message.type == "error":
            self.faults.append(f"{message.text}: {message.location['url']}")

    def unexpected(self) -> list[str]:
        """Return what no page may do and no test has brought about."""
        return [fault for fault in self.faults if f"status of {self.expected_status}" not in fault]

    def open(self, path: str) -> Page:
        """Open a page."""
        self.page.goto(f"{self.address}{path}")
        return self.page

    def reach(self, selector: str) -> None:
        """Move the focus to an element by the tabulator key alone."""
        for _ in range(200):
            if self.page.evaluate("selector => document.activeElement.matches(selector)", selector):
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"{selector} cannot be reached by keyboard")

    def press(self, selector: str) -> None:
        """Reach a link or button by keyboard and press it."""
        self.reach(selector)
        with self.page.expect_navigation():
            self.page.keyboard.press("Enter")

    def write(self, selector: str, text: str) -> None:
        """Reach a field by keyboard and write into it."""
        self.reach(selector)
        self.page.keyboard.press("Control+a")
        self.page.keyboard.type(text)

    def wait_for_htmx(self) -> None:
        """Wait for the script that comes after the page is shown.

        A function is needed: Playwright evaluates an expression again at each try, and the pages forbid `eval`.
        """
        self.page.wait_for_function("() => window.htmx")

    def sign_in(self, key: str) -> None:
        """Sign in without the page for it: one test does that by keyboard."""
        target, origin = f"{self.address}/pages/sign-in", {"Origin": self.address}
        answer = self.page.request.post(target, form={"key": key}, headers=origin, max_redirects=0)
        self.open(answer.headers["location"])


@pytest.fixture(scope="module")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="module")
def browser(playwright: Playwright) -> Iterator[Browser]:
    launched = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", *WITHOUT_GRAPHICS])
    expect.set_options(timeout=LONGEST_MS)
    yield launched
    launched.close()


@pytest.fixture(scope="module")
def filled_store(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Keys]:
    """A store with something for every page, of which tests get a copy, and its keys."""
    folder = tmp_path_factory.mktemp("filled")
    return folder, filled(folder)


@pytest.fixture
def keys(filled_store: tuple[Path, Keys]) -> Keys:
    return filled_store[1]


@pytest.fixture
def own_store(filled_store: tuple[Path, Keys], tmp_path: Path) -> str:
    """The address of a copy of the store that a test may change."""
    shutil.copytree(filled_store[0], tmp_path, dirs_exist_ok=True)
    return store_url(tmp_path)


@pytest.fixture(scope="module")
def served_folder(filled_store: tuple[Path, Keys], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the store that the service of the tests serves."""
    folder = tmp_path_factory.mktemp("served")
    shutil.copytree(filled_store[0], folder, dirs_exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def address(served_folder: Path) -> Iterator[str]:
    with served(store_url(served_folder), served_folder) as (_, serving):
        yield serving


@pytest.fixture
def own_key(served_folder: Path, request: pytest.FixtureRequest) -> str:
    """The key of a person who has what mira has, for a test that changes it. The person is called like the test."""
    return filled_for(served_folder, own_name(request))


def own_name(request: pytest.FixtureRequest) -> str:
    return str(request.node.name).removeprefix("test_")


@contextmanager
def watched(page: Page, address: str) -> Iterator[Tab]:
    """Yield a tab; every request to another host and every error in the console is a failure."""
    tab = Tab(page, address)

    def check(request: Request) -> None:
        if not request.url.startswith((f"{address}/", "data:")):
            tab.faults.append(f"asked {request.url}")

    page.on("request", check)
    page.on("console", tab.note)
    page.on("pageerror", lambda error: tab.faults.append(str(error)))
    yield tab
    page.close()
    assert not tab.unexpected()


@contextmanager
def opened(browser: Browser, address: str, **options: Any) -> Iterator[Tab]:
    """Yield a tab in a context of its own."""
    with browser.new_context(**{**USUAL, **options}) as context, watched(context.new_page(), address) as tab:
        yield tab


@pytest.fixture(scope="module")
def context(browser: Browser) -> Iterator[BrowserContext]:
    """The context of the tests that need no other. Its blank tab keeps the process alive that shows their pages."""
    with browser.new_context(**USUAL) as shared:
        shared.new_page()
        yield shared


@pytest.fixture
def tab(context: BrowserContext, address: str) -> Iterator[Tab]:
    context.clear_cookies()
    with watched(context.new_page(), address) as made:
        yield made


def text_of(page: Page) -> str:
    return page.locator("main").inner_text()


def test_sign_in_search_and_sign_out(tab: Tab, keys: Keys) -> None:
    tab.open("/pages/")
    tab.write("#key", keys.mira)
    with tab.page.expect_navigation():
        tab.page.keyboard.press("Enter")
    assert "What is remembered about mira" in text_of(tab.page)
    assert "Decisions that wait" in text_of(tab.page)
    tab.page.keyboard.press("/")
    tab.page.keyboard.type("Which seat do I prefer?")
    tab.page.keyboard.press("Enter")
    expect(tab.page.locator("#results h2").first).to_contain_text("Matches")
    assert "aisle seats" in text_of(tab.page)
    assert "score" in text_of(tab.page)
    assert "q=Which" in tab.page.url, "a search has an address of its own"
    tab.press("button.link")
    assert "Sign in" in text_of(tab.page)
    tab.open(f"{MIRA}/memory")
    assert "Sign in" in text_of(tab.page)


def test_a_search_shows_that_it_runs_and_why_it_fails(tab: Tab, keys: Keys) -> None:
    tab.sign_in(keys.mira)
    tab.expected_status = 503
    page, results, waiting = tab.page, tab.page.locator("#results"), list[Route]()
    tab.wait_for_htmx()
    page.route("**/memory?*", lambda route: waiting.append(route))
    tab.write("input[name=q]", "seat")
    page.keyboard.press("Enter")
    expect(results).to_have_css("opacity", "0.5")
    for _ in range(LONGEST_MS // 20):  # the browser shows that it searches before the request comes in here
        if waiting:
            break
        page.wait_for_timeout(20)
    waiting[0].continue_()
    expect(results).to_have_css("opacity", "1")
    assert len(waiting) == 1, "one search asks once"
    page.unroute("**/memory?*")
    with page.expect_response("**/memory?*kind=preference*"):
        page.select_option("select[name=kind]", "preference")
    # A page without an icon makes the browser ask for one, which no service has.
    failed = '<link rel="icon" href="data:,">It does not answer now.'
    page.route("**/memory?*", lambda route: route.fulfill(status=503, body=failed, content_type="text/html"))
    tab.write("input[name=q]", "window")
    page.keyboard.press("Enter")
    expect(page.locator("body")).to_have_text("It does not answer now.")
    page.unroute("**/memory?*")
    tab.open(f"{MIRA}/memory")
    tab.wait_for_htmx()
    page.context.clear_cookies(name="afterword_session")
    tab.write("input[name=q]", "aisle")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert "Sign in" in text_of(page)


def test_a_search_takes_the_place_of_one_that_still_runs(tab: Tab, keys: Keys) -> None:
    tab.sign_in(keys.mira)
    page, waiting = tab.page, list[Route]()
    tab.wait_for_htmx()
    page.route("**/memory?*", lambda route: waiting.append(route))
    for number, text in enumerate(("zanzibar", "seat"), 1):
        tab.write("input[name=q]", text)
        page.keyboard.press("Enter")
        wait_for(page, waiting, number)
    for route in waiting:
        route.continue_()
    page.wait_for_url("**/memory?*q=seat*")
    expect(page.locator("#results")).to_contain_text("aisle seats")
    page.unroute("**/memory?*")
    waiting.clear()
    page.route("**/memory?*", lambda route: waiting.append(route))
    for number, kind in enumerate(("preference", "decision"), 1):
        page.select_option("select[name=kind]", kind)
        wait_for(page, waiting, number)
    for route in waiting:
        route.continue_()
    page.wait_for_url("**/memory?*kind=decision*")
    expect(page.locator("#results")).to_have_css("opacity", "1")


def wait_for(page: Page, waiting: Sequence[Route], number: int) -> None:
    """Wait until the page has sent so many requests, which wait for an answer."""
    for _ in range(200):
        if len(waiting) >= number:
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"{len(waiting)} requests were sent")


def test_what_comes_later_and_fails_keeps_its_link(tab: Tab, keys: Keys) -> None:
    """A large memory counts its decisions after the page is shown."""
    tab.sign_in(keys.mira)
    tab.expected_status = 503
    page, part = tab.page, f'<section hx-get="{MIRA}/waiting" hx-trigger="load" hx-swap="outerHTML" '

    def answer(route: Route) -> None:
        got = route.fetch()
        route.fulfill(response=got, body=got.text().replace("<section ", part, 1))

    page.route(f"**{MIRA}/memory", answer)
    page.route("**/waiting", lambda route: route.fulfill(status=503, body="<main>It does not answer now.</main>"))
    with page.expect_response("**/waiting"):
        tab.open(f"{MIRA}/memory")
    expect(page.locator("main")).to_have_count(1)
    assert "Decisions that wait" in text_of(page)


def test_any_former_day(tab: Tab, keys: Keys) -> None:
    tab.sign_in(keys.mira)
    assert "lives in Porto" not in tab.page.locator(".group").all_inner_texts().__str__()
    tab.write("input[name=as_of]", "03032026")
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_url("**as_of=2026-03-03*")
    expect(tab.page.locator("#results")).not_to_contain_text("Oslo")
    assert "The user lives in Porto." in text_of(tab.page)
    assert "Oslo" not in text_of(tab.page)


def test_correct_and_take_back(tab: Tab, own_key: str) -> None:
    tab.sign_in(own_key)
    tab.press(".facts a:first-child")
    tab.page.keyboard.press("e")
    tab.page.keyboard.press("Control+a")
    tab.page.keyboard.type("The user prefers aisle seats on night flights.")
    tab.press("form[action$='/edit'] button")
    assert "Corrected." in text_of(tab.page)
    assert "night flights" in text_of(tab.page)
    tab.press(".notice button")
    assert "What undoing it changed" in text_of(tab.page)


def test_this_is_about_somebody_else(tab: Tab, own_key: str) -> None:
    tab.sign_in(own_key)
    tab.press(".facts a:first-child")
    tab.write("input[name=about]", "Ana")
    tab.press("form[action$='/edit'] button")
    assert "about Ana" in re.sub(r"\s+", " ", text_of(tab.page))


def test_confirm_and_withdraw_with_single_keys(tab: Tab, own_key: str) -> None:
    tab.sign_in(own_key)
    tab.press(".facts a:first-child")
    for key, text in (("c", "Confirmed."), ("w", "Withdrawn.")):
        with tab.page.expect_navigation():
            tab.page.keyboard.press(key)
        assert text in text_of(tab.page)


def test_shortcuts_can_be_turned_off(tab: Tab, keys: Keys) -> None:
    tab.sign_in(keys.mira)
    tab.reach("footer summary")
    tab.page.keyboard.press("Enter")
    tab.reach("input[name=keys]")
    tab.page.keyboard.press("Space")
    tab.press("footer button")
    tab.press(".facts a:first-child")
    at = tab.page.url
    tab.page.keyboard.press("c")
    tab.page.wait_for_timeout(200)
    assert tab.page.url == at
    assert not tab.page.locator("kbd").first.is_visible()


def test_forget_after_a_preview(tab: Tab, own_key: str) -> None:
    tab.sign_in(own_key)
    tab.press(".facts a:first-child")
    with tab.page.expect_navigation():
        tab.page.keyboard.press("f")
    assert "These sentences go" in text_of(tab.page)
    tab.press("button.danger")
    assert "Forgotten" in text_of(tab.page)
    tab.press("main a[href$='/mine']")
    assert "forgot" in text_of(tab.page)


def test_a_session_and_reading_it_again(tab: Tab, own_key: str) -> None:
    tab.sign_in(own_key)
    tab.press("header a[href$='/sessions']")
    tab.press("main a[href$='/sessions/trip']")
    assert tab.page.locator("mark").first.inner_text() == "I live in Porto."
    assert "Said off the record: not kept." in text_of(tab.page)
    assert "[redacted: password]" in text_of(tab.page)
    tab.press("form[action$='/again'] button")
    assert "Read again: the difference" in text_of(tab.page)


def test_what_an_agent_is_told(tab: Tab, keys: Keys) -> None:
    tab.sign_in(keys.reader)
    tab.press("header a[href$='/context']")
    tab.write("input[name=q]", "Which seat?")
    tab.write("input[name=budget]", "90")
    tab.press("main form button")
    assert re.search(r"\d+ of 90 tokens", text_of(tab.page))
    assert "no room in the budget" in text_of(tab.page)


def test_the_review_is_worked_off_with_single_keys(tab: Tab, own_key: str) -> None:
    tab.sign_in(own_key)
    tab.press("header a[href$='/review']")
    before = int(re.findall(r"1 of (\d+)", text_of(tab.page))[0])
    with tab.page.expect_navigation():
        tab.page.keyboard.press("j")
    assert f"2 of {before}" in text_of(tab.page)
    with tab.page.expect_navigation():
        tab.page.keyboard.press("k")
    for _ in range(before):
        if "Nothing waits" in text_of(tab.page):
            break
        with tab.page.expect_navigation():
            tab.page.keyboard.press("r")
    assert "Nothing waits" in text_of(tab.page)


def test_undo_and_redo(tab: Tab, own_key: str) -> None:
    tab.sign_in(own_key)
    tab.press("header a[href$='/runs']")
    runs = [link.get_attribute("href") or "" for link in tab.page.locator("main a[href*='/runs/']").all()]
    second = sorted(runs, key=lambda href: int(href.rpartition("/")[2]))[1]
    tab.press(f"main a[href='{second}']")
    assert "Oslo" in text_of(tab.page)
    for title in ("What undoing it changed", "What redoing it changed"):
        with tab.page.expect_navigation():
            tab.page.keyboard.press("u")
        assert title in text_of(tab.page)


def test_everything_about_me(tab: Tab, own_key: str, request: pytest.FixtureRequest) -> None:
    tab.sign_in(own_key)
    tab.press("header a[href$='/mine']")
    tab.reach("a[href$='memory.md']")
    with tab.page.expect_download() as download:
        tab.page.keyboard.press("Enter")
    assert "aisle seats" in Path(download.value.path()).read_text(encoding="utf-8")
    tab.press("form[action$='/pause'] button")
    assert "Conversations are not kept since" in text_of(tab.page)
    tab.press("form[action$='/resume'] button")
    tab.press("a[href$='everything=yes']")
    tab.write("input[name=name]", own_name(request))
    tab.press("button.danger")
    assert "you are signed out" in text_of(tab.page)
    tab.press("main a[href$='/memory']")
    assert "Sign in" in text_of(tab.page)


def test_operations(tab: Tab, keys: Keys) -> None:
    tab.sign_in(keys.admin)
    tab.press("header a[href$='/operations']")
    for text in ("default/user/noor", "No session failed.", "Costs by day and memory", "Who did what"):
        assert text in text_of(tab.page)
    tab.press("main a[href$='/noor/memory']")
    assert "Rome" in text_of(tab.page)


def test_everything_changes_without_javascript(browser: Browser, address: str, own_key: str) -> None:
    with opened(browser, address, java_script_enabled=False) as tab:
        page = tab.open("/pages/")
        page.fill("#key", own_key)
        page.click("main button")
        page.fill("input[name=q]", "seat")
        page.click(".filters button")
        page.click(".hits a >> nth=0")
        page.fill("textarea[name=statement]", "The user prefers any seat.")
        page.click("form[action$='/edit'] button")
        assert "Corrected." in text_of(page)
        page.click("a[href*='/forget']")
        page.click("button.danger")
        assert "Forgotten" in text_of(page)


def test_a_link_opens_the_pages_without_a_key(browser: Browser, own_store: str, tmp_path: Path) -> None:
    options = ("--no-browser", "--user", "mira")
    with served(own_store, tmp_path, "inspect", *options) as (_, link):
        address = link.split("/pages")[0]
        with opened(browser, address) as tab:
            tab.page.goto(link)
            tab.page.wait_for_url(f"{address}{MIRA}/memory")
            assert "What is remembered about mira" in text_of(tab.page)
        with opened(browser, address) as other:
            assert "Sign in" in text_of(other.open("/pages/"))
            assert other.page.request.get(link).status == 403


NOT_THERE = f"{MIRA}/facts/nothing"
ALL_PAGES: tuple[str, ...] = (
    *("memory", "memory?q=seat", "memory?status=all", "review", "sessions", "sessions/trip", "context?q=seat"),
    *("runs", "runs/2", "mine", "forget?everything=yes", "forget?session=trip"),
)
EMPTY = ("memory", "review", "sessions", "context", "runs")


def paths(tab: Tab) -> list[str]:
    """Return the address of every page."""
    fact = tab.open(f"{MIRA}/memory").locator(".facts a").first.get_attribute("href") or ""
    old = tab.open(f"{MIRA}/memory?status=superseded").locator(".facts a").first.get_attribute("href") or ""
    of_review = tab.open(f"{MIRA}/review").locator("details a").all()
    decisions = [link.get_attribute("href") or "" for link in of_review]
    empty = MIRA.replace("mira", "nobody")
    own, theirs = ([f"{base}/{name}" for name in names] for base, names in ((MIRA, ALL_PAGES), (empty, EMPTY)))
    return ["/pages/operations", fact, old, *decisions, *own, *theirs, NOT_THERE]


COLOUR_RULES = ("color-contrast", "link-in-text-block")


def hindrances(page: Page, *, with_colours: bool) -> list[str]:
    """Return what axe-core finds in each colour scheme, and whether something is cut off on a narrow screen.

    A scheme sets colours and nothing else, so in the second one only the rules about colours are looked at again.
    Without colours those rules and the second scheme are left out.
    """
    without = {"rules": {rule: {"enabled": False} for rule in COLOUR_RULES}}
    rules_by_scheme = {"light": {}, "dark": {"runOnly": COLOUR_RULES}} if with_colours else {"light": without}
    run = """async rules => (await axe.run({resultTypes: ["violations"], ...rules})).violations
        .map(v => v.id + ": " + v.nodes.map(n => n.html).join(" | "))"""
    hindering: list[str] = []
    for scheme, rules in rules_by_scheme.items():
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        hindering += [f"{scheme}: {violation}" for violation in page.evaluate(run, rules)]
    page.set_viewport_size({"width": 320, "height": 800})
    if page.evaluate("document.documentElement.scrollWidth") > 320:
        hindering.append("wider than 320 pixels")
    page.set_viewport_size(USUAL["viewport"])
    return hindering


@pytest.mark.parametrize("language", ["en-GB", "de-DE"])
def test_no_page_hinders_anybody_or_is_heavy(browser: Browser, address: str, keys: Keys, language: str) -> None:
    """Every page in each language. A language changes no colour: the colours of each scheme are checked in one of them.

    The scheme is changed on the opened page and without delay. `watched` fails where a page asks another host.
    """
    with_colours = language == "en-GB"
    with opened(browser, address, locale=language, reduced_motion="reduce") as tab:
        tab.expected_status = 404  # the page of an error is one
        tab.page.context.add_init_script(path=AXE)
        tab.open("/pages/")
        by_path = {"/pages/sign-in": hindrances(tab.page, with_colours=with_colours)}
        tab.sign_in(keys.admin)
        for path in paths(tab):
            tab.open(path)
            assert 0 < tab.page.evaluate(WEIGH) < MOST_BYTES, path
            tab.page.evaluate("document.querySelectorAll('details').forEach(element => element.open = true)")
            by_path[path] = hindrances(tab.page, with_colours=with_colours)
        session = tab.open(f"{MIRA}/sessions/trip")
        with session.expect_navigation():
            session.click("form[action$='/again'] button")
        by_path["proposal"] = hindrances(tab.page, with_colours=with_colours)
        assert {path: hindering for path, hindering in by_path.items() if hindering} == {}

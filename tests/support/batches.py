"""A folder of invented sessions, processes that run it and may be killed, and what must hold of a store afterwards."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from _pytest.mark import ParameterSet
from sqlmodel import Session, col, select

from afterword.extractors.rules import RulesExtractor
from afterword.facts.scopes import Scope
from afterword.facts.validity.timeline import fact_histories
from afterword.pipeline.batch import run_batch
from afterword.pipeline.sources.folders import find_sessions
from afterword.store import lookup, runs, scope_rows, sessions
from afterword.store.database.engine import Store
from afterword.store.ledger import RunStatus, session_run_source
from afterword.store.tables import RunWindowRow, WindowRow
from commands import clean_environment
from nursery import Child
from programs import run_command

Dump = list[tuple[object, ...]]
Canonical = Callable[[Store, Scope], Awaitable[Dump]]

USERS = ("mira", "jon", "lena")
SCOPES = tuple(Scope.user(name) for name in USERS)
SESSIONS_EACH = 6
LONGEST_S = 120.0

_SAID = (
    ("I live in Graz.", "I'm vegetarian.", "I prefer the window seat."),
    ("I moved to Linz.", "I am allergic to peanuts.", "My sister Ana lives in Porto."),
    ("I moved to Wels.", "I'm no longer vegetarian.", "I prefer the aisle seat now."),
    ("I moved to Steyr.", "I work as a nurse.", "We decided to use Postgres for the app."),
    ("I moved to Villach.", "I now work as a teacher.", "Actually, we will use SQLite instead of Postgres."),
    ("I moved to Graz.", "Please always answer in German.", "Forget what I said about the aisle seat."),
)


@dataclass(frozen=True, slots=True)
class Calm:
    """What undisturbed runs of the folder give: of each scope, what is held after none, one ... all of its sessions.

    `records` is what is kept besides; `working_s` is how long a process works once it has begun.
    """

    folder: Path
    working_s: float
    stages: dict[Scope, list[Dump]]
    records: dict[Scope, Dump]


def write_batch(folder: Path) -> Path:
    """Write the saved states of three users, who change their minds from session to session, and their manifest."""
    manifest = []
    for place, user in enumerate(USERS):
        (folder / user).mkdir(parents=True)
        for number in range(SESSIONS_EACH):
            said = _SAID[(number + place) % SESSIONS_EACH]
            at = datetime(2026, 1 + number, 3 + place, 10, tzinfo=UTC).isoformat()
            name = f"{user}-{number}"
            (folder / user / f"{name}.json").write_text(json.dumps(state(*said)))
            entry = {"session_id": name, "user_id": user, "path": f"{user}/{name}.json"}
            manifest.append(entry | {"started_at": at, "ended_at": at})
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def state(*said: str) -> dict[str, Any]:
    """Return the saved state of an AssistantAgent to whom these things were said."""
    messages = [{"content": text, "source": "user", "type": "UserMessage"} for text in said]
    return {"type": "AssistantAgentState", "version": "1.0.0", "llm_context": {"messages": messages}}


def start(url: str, folder: Path, *arguments: str, program: Callable[[Sequence[str]], None] = run_command) -> Child:
    """Start a program on the store at the URL, by default `afterword` itself. What it prints is kept in the folder."""
    log = folder / f"process-{uuid4().hex}.txt"
    environment = {**clean_environment(), "AFTERWORD_STORE__URL": url}
    return Child(arguments, environment, log, program=program, errors=log.with_suffix(".errors"))


def start_run(url: str, folder: Path) -> Child:
    """Start `afterword run` over the folder."""
    return start(url, folder.parent, "run", str(folder), "--json")


def ended(*processes: Child) -> list[str]:
    """Wait for the processes and return what each printed; all must have ended well."""
    for process in processes:
        assert process.wait() == 0, process.printed() + process.log.with_suffix(".errors").read_text()
    return [process.printed() for process in processes]


def results(*processes: Child) -> list[str]:
    """Wait for processes of `afterword run` and return what became of each session in each of them."""
    return [session["result"] for printed in ended(*processes) for session in json.loads(printed)]


def killed(process: Child, has_begun: Callable[[], bool], after_s: float) -> bool:
    """Kill a process so long after it has begun to work; return whether it was still at it."""
    wait_until(lambda: process.poll() is not None or has_begun())
    time.sleep(after_s)
    is_alive = process.poll() is None
    process.kill()
    process.wait()
    return is_alive


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    until = time.monotonic() + LONGEST_S
    while not holds():
        assert time.monotonic() < until, "it did not come to pass in time"
        time.sleep(0.002)


def moments(count: int, seed: int) -> list[float]:
    """Return random moments of a run, as parts of its length: one in each of so many equal stretches."""
    dice = random.Random(seed)
    return [(place + dice.random()) / count for place in range(count)]


def few_moments(count: int, seed: int, *, outside_soak: int) -> list[ParameterSet]:
    """Return these moments as parameters; all but the first few belong to the soak."""
    return [
        pytest.param(moment, marks=() if number < outside_soak else pytest.mark.soak)
        for number, moment in enumerate(moments(count, seed))
    ]


async def stages_of(folder: Path, canonical: Canonical) -> dict[Scope, list[Dump]]:
    """Return what each scope holds after none, one ... all of its sessions, one process and one session at a time."""
    async with Store("sqlite://") as store:
        await store.migrate()
        stages = {scope: [await canonical(store, scope)] for scope in SCOPES}
        for saved in find_sessions([folder]):
            await run_batch(store, [saved], extractor=RulesExtractor())
            stages[saved.scope].append(await canonical(store, saved.scope))
        return stages


def calm_of(folder: Path, url: str, has_begun: Callable[[], bool], canonical: Canonical) -> Calm:
    """Run the folder undisturbed in a process of its own, on an empty store, and return what it gives."""
    process = start_run(url, folder)
    wait_until(lambda: process.poll() is not None or has_begun())
    begun = time.monotonic()
    assert set(results(process)) == {"done"}
    working_s = time.monotonic() - begun

    async def read() -> Calm:
        stages = await stages_of(folder, canonical)
        async with Store(url) as store:
            return Calm(folder, working_s, stages, {scope: await records(store, scope) for scope in SCOPES})

    return asyncio.run(read())


async def records(store: Store, scope: Scope) -> Dump:
    """Return what a scope keeps besides its facts (sessions, turns, runs, what is live), without times and keys."""
    with store.reading() as db:
        known = lookup.read_knowledge(db, scope)
        kept = sessions.read_sessions(db, scope=scope)
        turns = [(one.session_id, turn) for one in kept for turn in sessions.read_turns(db, scope, one.session_id)]
        made = runs.read_runs(db, scope)
    dump: Dump = [("revision", known.revision)]
    dump += [("session", one.session_id, one.progress, one.failure, one.humans, one.started_at) for one in kept]
    dump += [("turn", *one) for one in turns]
    dump += [("run", one.source, one.purpose, one.status, one.calls, sorted(one.counts.items())) for one in made]
    dump += [("assertion", one) for one in known.assertions] + [("verdict", one) for one in known.verdicts]
    return sorted(dump, key=repr)


async def sessions_done(store: Store) -> dict[Scope, int]:
    """Return how many sessions of each scope are done."""
    with store.reading() as db:
        found = sessions.read_sessions(db)
    done = [one.scope for one in found if one.progress is sessions.Progress.DONE]
    return {scope: done.count(scope) for scope in SCOPES}


async def faults(store: Store) -> list[str]:
    """Return what is half done in a store: sessions not done, runs not applied, facts that do not follow."""
    found: list[str] = []
    with store.reading() as db:
        for scope in scope_rows.read_scopes(db):
            found += _faults_of_sessions(db, scope) + _faults_of_facts(db, scope)
        ties = select(RunWindowRow.window_id)
        loose = db.exec(select(WindowRow.key).where(col(WindowRow.id).not_in(ties))).all()
    return found + [f"the window {key} belongs to no run" for key in loose]


def _faults_of_sessions(db: Session, scope: Scope) -> list[str]:
    made = runs.read_runs(db, scope)
    found = [f"run {one.id} of {scope} is {one.status}" for one in made if one.status != RunStatus.APPLIED]
    for one in sessions.read_sessions(db, scope=scope):
        if one.progress is not sessions.Progress.DONE:
            found.append(f"{one.session_id} is {one.progress}")
        if session_run_source(one.session_id) not in {run.source for run in made}:
            found.append(f"{one.session_id} is kept without a run")
    return found


def _faults_of_facts(db: Session, scope: Scope) -> list[str]:
    live = lookup.read_knowledge(db, scope)
    kept = lookup.read_histories(db, scope)
    derived = fact_histories(live.assertions, live.verdicts)
    return [] if _by_id(kept) == _by_id(derived) else [f"the facts of {scope} do not follow from what is live"]


def _by_id(found: Sequence[Any]) -> dict[str, Any]:
    return {course.id: course for course in found}


async def differences(store: Store, calm: Calm, canonical: Canonical) -> list[str]:
    """Return in which scopes a store holds other facts than its done sessions give when nothing disturbs them."""
    done = await sessions_done(store)
    return [str(scope) for scope in SCOPES if await canonical(store, scope) != calm.stages[scope][done[scope]]]

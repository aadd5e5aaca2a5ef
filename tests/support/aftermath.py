"""What must hold of a store after the chaos, and what a calm run of the same sessions gives."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing

from sqlmodel import select

from afterword.extractors.model.client import ModelClient, ModelSettings
from afterword.extractors.model.extractor import ModelExtractor
from afterword.extractors.model.judge import ModelJudge
from afterword.extractors.testing import ScriptedEndpoint
from afterword.facts.scopes import Scope
from afterword.pipeline.batch import run_batch
from afterword.pipeline.intake import Saved
from afterword.pipeline.session_outcome import SessionOutcome
from afterword.store import jobs, lookup, runs, scope_rows, sessions
from afterword.store.costs import CallStatus
from afterword.store.database.engine import Store
from afterword.store.ledger import RunStatus
from afterword.store.tables import SpendingRow
from batches import faults
from small_talk import Talk, right_reply

Dump = list[tuple[object, ...]]
Canonical = Callable[[Store, Scope], Awaitable[Dump]]
Held = dict[Scope, Dump]

DECIDED = ("windows", "assertions")
"""What is counted of a run whatever happened on the way."""


async def held(store: Store, scope: Scope, canonical: Canonical) -> Dump:
    """Return what a scope holds: facts, what is live, and its done sessions with their turns and runs.

    Of verdicts only what they make of the facts: which restatements are compared depends on who arrived first.
    """
    facts = await canonical(store, scope)
    with store.reading() as db:
        known = lookup.read_knowledge(db, scope)
        done = [one for one in sessions.read_sessions(db, scope=scope) if one.progress is sessions.Progress.DONE]
        turns = [(one.session_id, turn) for one in done for turn in sessions.read_turns(db, scope, one.session_id)]
        made = [one for one in runs.read_runs(db, scope) if one.purpose == "session"]
    dump: Dump = [("fact", *one) for one in facts] + [("assertion", one) for one in known.assertions]
    dump += [("session", one.session_id, one.failure, one.humans, one.started_at, one.layout) for one in done]
    dump += [("turn", *one) for one in turns]
    dump += [("run", one.source, one.status, *(one.counts[name] for name in DECIDED)) for one in made]
    return sorted(dump, key=repr)


def unlike(found: Dump, calm: Dump) -> list[str]:
    """Return what only one of two dumps has."""
    more = [f"more: {one}" for one in found if one not in calm]
    return more + [f"less: {one}" for one in calm if one not in found]


class Calms:
    """What undisturbed runs give, of a model that is well; the same sessions are run once."""

    def __init__(self) -> None:
        self._known: dict[frozenset[str], Held] = {}

    async def of(self, told: Sequence[Talk], canonical: Canonical) -> Held:
        """Return what each scope holds after an undisturbed run of these sessions."""
        key = frozenset(one.session_id for one in told)
        if key not in self._known:
            self._known[key] = await _calm_run(told, canonical)
        return self._known[key]


async def _calm_run(told: Sequence[Talk], canonical: Canonical) -> Held:
    found = [Saved(one.scope, one.session_id, state=one.state) for one in told]
    with ScriptedEndpoint(right_reply) as endpoint:
        chosen = ModelSettings("scripted", endpoint.base_url, "key")
        async with Store("sqlite://") as store, ModelClient(chosen) as client:
            await store.migrate()
            ended = await run_batch(store, found, extractor=ModelExtractor(client), judge=ModelJudge(client))
            assert all(isinstance(one, SessionOutcome) and one.applied and not one.unjudged for one in ended), ended
            return {scope: await held(store, scope, canonical) for scope in {one.scope for one in told}}


async def tallied(store: Store) -> Counter[sessions.Progress]:
    """Return how many sessions have come how far."""
    with store.reading() as db:
        return Counter(one.progress for one in sessions.read_sessions(db))


async def half_done(store: Store) -> list[str]:
    """Return what is half done or twice: sessions that are set aside with their reason aside."""
    with store.reading() as db:
        aside = {f"{one.session_id} is {one.progress}" for one in sessions.failed_sessions(db) if one.failure}
        unread = {f"{one.session_id} is kept without a run" for one in sessions.failed_sessions(db)}
        made = [one for scope in scope_rows.read_scopes(db) for one in runs.read_runs(db, scope)]
    twice = Counter((one.scope, one.source) for one in made if one.status == RunStatus.APPLIED)
    found = [f"{source} of {scope} counts {count} times" for (scope, source), count in twice.items() if count > 1]
    if store.path is not None:
        with closing(sqlite3.connect(store.path)) as plain:
            found += [told for (told,) in plain.execute("PRAGMA integrity_check") if told != "ok"]
    return found + [one for one in await faults(store) if one not in aside | unread]


async def ledger_faults(store: Store, asked: int) -> list[str]:
    """Return what is wrong with what was spent, where a model was asked so many requests.

    A question stays open where its process was killed; then it counts as two requests, and may have been four.
    """
    with store.reading() as db:
        entries = db.exec(select(SpendingRow)).all()
        made = [one for scope in scope_rows.read_scopes(db) for one in runs.read_runs(db, scope)]
    answered = {one.source for one in entries if one.status == CallStatus.ANSWERED}
    read = {one.source for one in made if one.purpose == "session"}
    cut = [one for one in entries if one.status == CallStatus.OPEN]
    settled = sum(one.calls for one in entries) - sum(one.calls for one in cut)
    found = [f"{source} was read, and no answer to it is entered" for source in sorted(read - answered)]
    found += [f"entry {one.id} is negative" for one in entries if min(one.calls, one.prompt_tokens) < 0]
    if asked > settled + 4 * len(cut):
        found.append(f"{asked} requests came, {settled} are entered, and {len(cut)} questions are open")
    return found


async def leases(store: Store) -> list[str]:
    """Return the jobs that somebody still holds although their lease is over."""
    with store.reading() as db:
        return [one.name for one in jobs.read_store_wide_jobs(db) if one.holder is not None]

"""The commands for those who run afterword: status, migrate, doctor."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any

from sqlmodel import Session

from afterword import doctor as checks
from afterword import settings
from afterword.cli import embedding, fleet
from afterword.cli.app import FAILED
from afterword.cli.output import console, instant, iso, opened, print_json, table
from afterword.cli.spending import money, spent_json
from afterword.cli.spending import told as told_spent
from afterword.composition import open_extractor_and_judge
from afterword.facts.fact import Status
from afterword.facts.scopes import Scope
from afterword.pipeline.consolidation import judging_coverage
from afterword.privacy.policy import OFF_THE_RECORD, SECRETS_MASKED
from afterword.store import costs, jobs, lookup, scope_rows, sessions
from afterword.store import runs as ledger_runs
from afterword.store.costs import Spending
from afterword.store.database.engine import Store
from afterword.store.forgetting import erasure
from afterword.store.jobs import JobState
from afterword.store.ledger import RunStatus
from afterword.store.sessions import SavedSession

DAYS_SHOWN = 14


def status(*, as_json: bool) -> None:
    """Show what the store holds, what waits, and what failed and why."""
    told, spent = asyncio.run(_told())
    if as_json:
        print_json(told)
        return
    out = console()
    out.print(f"store: {told['store']}")
    names = ("scope", "current", "all", "sessions", "contested", "pending", "held", "to_forget", "pairs", "judged")
    rows = [(*(one.get(name) for name in names), money(spent.scopes[one["scope"]])) for one in told["scopes"]]
    out.print(table("memories", (*names, "cost"), rows))
    if any(one["to_forget"] for one in told["scopes"]):
        out.print("to_forget: hidden since people asked for it; `afterword forget --asked` erases it for good")
    out.print(f"sessions: {', '.join(f'{count} {name}' for name, count in told['sessions'].items()) or 'none'}")
    if told["secrets_masked"] or told["turns_off_the_record"]:
        out.print(
            f"privacy: {told['secrets_masked']} secrets masked, {told['turns_off_the_record']} turns off the record"
        )
    if told["vectors"]:
        made = [tuple(one.values()) for one in told["vectors"]]
        out.print(table("vectors", ("model", "dimension", "configured", "vectors", "lacking"), made))
    if told["queue"]["waiting"]:
        waiting, age_s = told["queue"]["waiting"], told["queue"]["oldest_age_s"]
        out.print(f"queue: {waiting} waiting, the oldest for {timedelta(seconds=round(age_s))}")
    if told["reasons"]:
        out.print(f"failures: {', '.join(f'{count} {reason}' for reason, count in told['reasons'].items())}")
    parts = ("scope", "session_id", "progress", "tries", "next_try_at", "reason")
    failed = [tuple(one[part] for part in parts) for one in told["failed"]]
    if failed:
        title = "failed: tried again after a pause, files when their path is given again; set aside: `afterword retry`"
        out.print(table(title, ("scope", "session", "state", "tries", "next try", "reason"), failed))
    if told["jobs"]:
        done = [tuple(one.values()) for one in told["jobs"]]
        out.print(table("schedule", ("job", "last done", "held until", "failure"), done))
    _show_days(spent.days)


@dataclass(frozen=True, slots=True)
class _Costs:
    """What was spent on each scope, and on each day."""

    scopes: Mapping[str, Spending]
    days: Mapping[date, Spending]


async def _told() -> tuple[dict[str, Any], _Costs]:
    configured = settings.load()
    async with opened() as store, open_extractor_and_judge(configured.extractor, configured.model) as workers:
        told = await _status(store)
        scope_costs, days = await store.read(lambda db: (costs.spending_by_scope(db), costs.spending_by_day(db)))
        by_scope = {str(scope): spent for scope, spent in scope_costs.items()}
        told["vectors"] = await embedding.coverage(
            store, configured, [Scope.parse(one["scope"]) for one in told["scopes"]]
        )
        spent = _Costs(defaultdict(Spending, by_scope), days)
        for one in told["scopes"]:
            covered = await judging_coverage(store, Scope.parse(one["scope"]), workers.judge)
            one |= {"pairs": covered.required, "judged": covered.judged}
            one |= {"spent": spent_json(spent.scopes[one["scope"]])}
    by_day = {day.isoformat(): spent_json(one) for day, one in days.items()}
    told["spent"] = {"total": spent_json(sum(days.values(), start=Spending())), "days": by_day}
    return told, spent


def _show_days(days: Mapping[date, Spending]) -> None:
    if not days:
        return
    rows = [
        (day, spent.calls, spent.prompt_tokens, spent.completion_tokens, money(spent)) for day, spent in days.items()
    ]
    shown = rows[-DAYS_SHOWN:]
    more = f" (the last {len(shown)} of {len(rows)}; all with --json)" if len(shown) < len(rows) else ""
    names = ("day", "calls", "prompt tokens", "completion tokens", "cost")
    console().print(table(f"spent by day, UTC{more}", names, shown))
    console().print(f"spent in all: {told_spent(sum(days.values(), start=Spending()))}")


def _kept_in(
    db: Session, at: datetime
) -> tuple[list[SavedSession], list[SavedSession], list[JobState], list[dict[str, Any]]]:
    scopes = []
    saved = sessions.read_sessions(db)
    for scope in scope_rows.read_scopes(db):
        held = lookup.read_facts(db, scope, at=at)
        waiting = ledger_runs.read_runs(db, scope, statuses=[RunStatus.HELD])
        scopes.append(
            {
                "scope": str(scope),
                "current": sum(fact.is_served for fact in held),
                "all": len(held),
                "sessions": sum(one.scope == scope for one in saved),
                "contested": sum(fact.status is Status.CONTESTED for fact in held),
                "pending": sum(fact.status is Status.PENDING for fact in held),
                "held": len(waiting),
                "to_forget": len(erasure.requested_ids(db, scope)),
            }
        )
    return saved, sessions.waiting_sessions(db), jobs.read_jobs(db), scopes


async def _status(store: Store) -> dict[str, Any]:
    at = instant(None)
    known, queue, scheduled, scopes = await store.read(partial(_kept_in, at=at))
    return {
        "store": store.shown_url,
        "scopes": scopes,
        "secrets_masked": sum(one.skipped.get(SECRETS_MASKED, 0) for one in known),
        "turns_off_the_record": sum(one.skipped.get(OFF_THE_RECORD, 0) for one in known),
        "sessions": dict(Counter(str(one.progress) for one in known)),
        "queue": queue_json(queue, at),
        "reasons": dict(Counter(kind_of(one.failure) for one in known if one.failure).most_common()),
        "failed": [
            {
                "scope": str(one.scope),
                "session_id": one.session_id,
                "reason": one.failure,
                "progress": str(one.progress),
                "tries": one.attempts,
                "next_try_at": iso(one.next_try_at),
            }
            for one in known
            if one.failure
        ],
        "jobs": [
            {
                "job": one.name,
                "last_success_at": iso(one.last_success_at),
                "held_until": iso(one.leased_until) if one.holder else None,
                "failure": one.failure,
            }
            for one in scheduled
        ],
    }


def queue_json(waiting: Sequence[sessions.SavedSession], at: datetime) -> dict[str, Any]:
    """Return how many recorded sessions wait to be processed, and since when the oldest does."""
    oldest = min((one.updated_at for one in waiting), default=None)
    age_s = max(0.0, (at - oldest).total_seconds()) if oldest else None
    return {"waiting": len(waiting), "oldest_since": iso(oldest), "oldest_age_s": age_s}


def kind_of(failure: str) -> str:
    """Return the kind of a failure: its reason without what differs from session to session."""
    return failure.partition(":")[0]


def migrate(*, as_json: bool) -> None:
    """Bring the tables up to date and say from which version to which."""

    async def work() -> tuple[str | None, str]:
        async with Store(settings.load().store.url) as store:
            versions = await store.migrate()
            if store.dialect == "postgresql" and fleet.is_installed():
                from afterword.pipeline.background.workers import create_queue_tables

                await create_queue_tables(store)
            return versions

    before, after = asyncio.run(work())
    if as_json:
        print_json({"before": before, "after": after})
    else:
        console().print(f"tables: {before or 'none'} -> {after}" if before != after else f"tables: {after}, up to date")


def doctor(*, probe: bool, as_json: bool) -> None:
    """Print every check, and exit with 1 where one fails."""
    found = asyncio.run(checks.examine(probe=probe))
    if as_json:
        print_json([{"check": one.name, "ok": one.ok, "found": one.finding, "mend": one.fix} for one in found])
    else:
        rows = [("ok" if one.ok else "FAILS", one.name, one.finding, "" if one.ok else one.fix) for one in found]
        console().print(table("afterword", ("", "check", "found", "mend"), rows))
    if not all(one.ok for one in found):
        sys.exit(FAILED)

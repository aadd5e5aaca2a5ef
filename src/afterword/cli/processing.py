"""The commands that process: run, reprocess, consolidate."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlmodel import Session

from afterword import settings
from afterword.cli import embedding, estimating, taking
from afterword.cli.endings import Ended, end, handed_back, show_end, show_waiting
from afterword.cli.output import UsageInvalid, chosen_scope, console, fact_json, opened, print_json, table, told_skipped
from afterword.cli.progress import interruptible, reporting
from afterword.cli.spending import spent_json
from afterword.composition import configured_tracker, open_extractor_and_judge
from afterword.extractors.grounding import Reason
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import TimeBasis
from afterword.pipeline.batch import Failure, NotDue, NotStarted, run_batch
from afterword.pipeline.budget import CostTracker
from afterword.pipeline.consolidation import CONSOLIDATION, ConsolidationResult, consolidate_scope
from afterword.pipeline.forget_requests import erase_and_compare
from afterword.pipeline.intake import Saved
from afterword.pipeline.resolution import Changes
from afterword.pipeline.session import SessionOutcome
from afterword.pipeline.session_telemetry import outcome_name
from afterword.settings import Settings
from afterword.store import runs as ledger_runs
from afterword.store import scope_rows, sessions
from afterword.store.database.engine import Store
from afterword.store.ledger import RunStatus, session_source


def run(
    paths: Sequence[Path],
    *,
    session: str | None,
    user: str | None,
    scope: str | None,
    manifest: Path | None,
    extractor: str | None,
    dry_run: bool,
    only_estimate: bool = False,
    concurrency: int | None = None,
    as_json: bool,
) -> None:
    """Process the sessions at the paths, or the queued ones; exit with 1 where any failed, 3 or 130 where stopped."""
    configured = settings.load()
    found = taking.found(paths, session=session, whose=chosen_scope(user, scope), manifest=manifest)
    kind = extractor or configured.extractor
    if only_estimate:
        estimating.show(None if found is None else found.sessions, kind, configured, as_json=as_json)
        return
    spending = configured_tracker(configured, kind)
    configured.concurrency = concurrency or configured.concurrency
    ended = asyncio.run(_run(found, kind, configured, spending, dry_run=dry_run, quiet=as_json))
    _end(ended, spending, dry_run=dry_run, as_json=as_json)


def _end(ended: Sequence[Ended], spending: CostTracker, *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        print_json([_spent_json(one, spending) for one in ended])
    else:
        done = [one for one in ended if isinstance(one, SessionOutcome | Failure)]
        if done or not ended:
            show(done, dry_run=dry_run)
        show_waiting([one for one in ended if isinstance(one, NotDue)])
        show_end(ended, spending)
    end(ended, spending)


async def _run(
    found: taking.Found | None,
    kind: str,
    configured: Settings,
    spending: CostTracker,
    *,
    dry_run: bool,
    quiet: bool,
) -> list[Ended]:
    async with opened(create=True) as store, open_extractor_and_judge(kind, configured.model) as workers:
        taken, waiting = await taking.due_now(store, found)
        erases = configured.privacy.erases and not dry_run
        with interruptible() as stop, reporting(len(taken), spending, quiet=quiet) as report:
            try:
                ended = await run_batch(
                    store,
                    taken,
                    extractor=workers.extractor,
                    judge=workers.judge,
                    apply=not dry_run,
                    budget=spending,
                    stop=stop,
                    on_done=report,
                    retries=configured.retry.policy(),
                    concurrency=configured.concurrency,
                    is_brief=True,
                )
                if erases:
                    taken_up = [one.scope for one in ended]
                    await erase_and_compare(store, taken_up, judge=workers.judge, at=datetime.now(UTC))
                if not dry_run:
                    stored = [one.scope for one in ended if isinstance(one, SessionOutcome)]
                    await embedding.refresh(store, configured, stored, spending=spending, stop=stop)
            except asyncio.CancelledError:
                if stop.reason is None:
                    raise
                return [*handed_back(taken, report.ended, stop.reason), *waiting]
            return [*ended, *waiting]


def reprocess(
    session_id: str | None,
    user: str | None,
    scope: str | None,
    *,
    extractor: str | None,
    now: bool,
    as_json: bool,
) -> None:
    """Read a session's kept turns again, or list the sessions that another extractor has read."""
    configured, whose = settings.load(), chosen_scope(user, scope)
    kind = extractor or configured.extractor

    spending = configured_tracker(configured, kind)

    async def work() -> list[Ended] | list[tuple[Scope, str, str]]:
        async with opened() as store, open_extractor_and_judge(kind, configured.model) as workers:
            if session_id is None:
                return await outdated(store, workers.extractor.version, whose)
            one = Saved(whose or await _whose(store, session_id), session_id, reread=True)
            extractor, judge = workers.extractor, workers.judge
            retries = configured.retry.policy()
            batch: Sequence[Ended] = await run_batch(
                store, [one], extractor=extractor, judge=judge, apply=now, budget=spending, retries=retries
            )
            if now:
                await embedding.refresh(store, configured, [one.scope], spending=spending)
            return [*batch]

    found = asyncio.run(work())
    ended = [one for one in found if isinstance(one, Ended)]
    if session_id is not None:
        _end(ended, spending, dry_run=not now, as_json=as_json)
        return
    rows = [one for one in found if isinstance(one, tuple)]
    if as_json:
        print_json([{"scope": str(of), "session_id": name, "extractor": by} for of, name, by in rows])
    else:
        console().print(table("read by another extractor or prompt", ("scope", "session", "read by"), rows))


async def _whose(store: Store, session_id: str) -> Scope:
    found = await store.read(lambda db: sessions.read_sessions(db, session_id=session_id))
    if len(found) != 1:
        raise UsageInvalid(f"{len(found)} memories have a session {session_id!r}; say whose with --user or --scope")
    return found[0].scope


async def outdated(store: Store, version: str, whose: Scope | None) -> list[tuple[Scope, str, str]]:
    """Return (scope, session, extractor) of the sessions whose last applied reading is of another extractor."""

    def work(db: Session) -> list[tuple[Scope, str, str]]:
        found = []
        for scope in [whose] if whose else scope_rows.read_scopes(db):
            last = {one.source: one for one in ledger_runs.read_runs(db, scope, statuses=[RunStatus.APPLIED])}
            old = (one for one in last.values() if one.purpose == "session" and one.extractor != version)
            found += [(scope, one.source.removeprefix("session:"), one.extractor) for one in old]
        return found

    return await store.read(work)


def consolidate(user: str | None, scope: str | None, *, dry_run: bool, as_json: bool) -> None:
    """Judge what is unjudged in one scope, or in every one."""
    configured, whose = settings.load(), chosen_scope(user, scope)
    spending = configured_tracker(configured, configured.extractor)

    async def work() -> list[ConsolidationResult]:
        async with opened() as store, open_extractor_and_judge(configured.extractor, configured.model) as workers:
            scopes = await store.read(lambda db: [whose] if whose else scope_rows.read_scopes(db))
            judge = workers.judge
            ended = [
                await consolidate_scope(store, one, judge=judge, apply=not dry_run, budget=spending) for one in scopes
            ]
            if not dry_run:
                await embedding.refresh(store, configured, scopes, spending=spending)
            return ended

    ended = asyncio.run(work())
    if as_json:
        print_json([_consolidated_json(one, spending) for one in ended])
    else:
        for one in ended:
            _show_consolidated(one)
        show_end([], spending)
    end([], spending)


def _show_consolidated(one: ConsolidationResult) -> None:
    state = "nothing was open" if one.run_id is None and not one.unjudged else f"run {one.run_id or 'none'}"
    held = ", held for `afterword review`" if one.held else ""
    console().print(f"{one.scope}: {state}{held}; {one.judged} pairs judged, {one.unjudged} left")
    for line in _moves(one.changes):
        console().print(line)


def _consolidated_json(one: ConsolidationResult, spending: CostTracker) -> dict[str, Any]:
    return {
        "scope": str(one.scope),
        "run": one.run_id,
        "held": one.held,
        "judged": one.judged,
        "unjudged": one.unjudged,
        **_changes_json(one.changes),
        "calls": one.usage.calls,
        "spent": spent_json(spending.spent_on(one.scope, CONSOLIDATION)),
    }


def _spent_json(one: Ended, spending: CostTracker) -> dict[str, Any]:
    """Return what became of a session with what it cost this run, whatever became of it."""
    spent = spent_json(spending.spent_on(one.scope, session_source(one.session_id)))
    if isinstance(one, NotStarted | NotDue):
        whose = {"scope": str(one.scope), "session_id": one.session_id}
        result = "left" if isinstance(one, NotStarted) else "waiting"
        return {**whose, "result": result, "reason": one.reason, "spent": spent}
    return {**outcome_json(one), "spent": spent}


def outcome_json(one: SessionOutcome | Failure) -> dict[str, Any]:
    """Return what became of a session as machines get it."""
    whose = {"scope": str(one.scope), "session_id": one.session_id}
    if isinstance(one, Failure):
        return {**whose, "result": "failed", "reason": one.reason}
    return {
        **whose,
        "result": outcome_name(one),
        "run": one.run_id,
        "turns": one.turns,
        "layout": one.transcript.layout,
        "time_basis": str(one.transcript.time_basis) if one.transcript.time_basis else None,
        "humans": list(one.transcript.humans),
        "assumed": list(one.transcript.assumed),
        "owner": list(one.owners),
        "skipped": dict(one.transcript.skipped),
        "refused": dict(one.rejected),
        **_changes_json(one.changes),
        "unjudged": one.unjudged,
        "splits": one.splits,
        "calls": one.usage.calls,
        "prompt_tokens": one.usage.prompt_tokens,
        "completion_tokens": one.usage.completion_tokens,
    }


def _changes_json(moved: Changes) -> dict[str, Any]:
    return {
        "learned": [fact_json(fact) for fact in moved.learned],
        "repeated": [fact_json(fact) for fact in moved.repeated],
        "retired": [{"fact": fact_json(old), "by": fact_json(new) if new else None} for old, new in moved.retired],
        "contested": [fact_json(fact) for fact in moved.contested],
        "hidden": moved.hidden,
    }


def show(ended: Sequence[SessionOutcome | Failure], *, dry_run: bool) -> None:
    """Print what became of each session, what failed and why, and what the user should know about the times."""
    out = console()
    names = ("scope", "session", "result", "turns", "people", "learned", "again", "retired", "refused", "tokens")
    rows = [_row(one) for one in ended]
    if not rows:
        out.print("nothing to do: no session is queued; give a path to process saved files")
        return
    out.print(table("proposed, nothing counts yet" if dry_run else "processed", names, rows))
    for one in ended:
        if isinstance(one, Failure):
            out.print(f"failed: {one.session_id} of {one.scope}: {one.reason}")
        else:
            _show_changes(one)
    guessed = sum(isinstance(one, SessionOutcome) and one.transcript.time_basis is TimeBasis.FILE for one in ended)
    if guessed:
        out.print(
            f"{guessed} of {len(ended)} sessions carry no times: their files' times were taken, and a guess retires "
            "nothing. A manifest with started_at mends that."
        )


def _row(one: SessionOutcome | Failure) -> list[object]:
    if isinstance(one, Failure):
        return [one.scope, one.session_id, "failed"]
    moved = one.changes
    people = ", ".join(_person(name, one) for name in one.transcript.humans)
    counts = [len(moved.learned), len(moved.repeated), len(moved.retired), sum(one.rejected.values())]
    tokens = one.usage.prompt_tokens + one.usage.completion_tokens
    return [one.scope, one.session_id, outcome_name(one), one.turns, people or "none", *counts, tokens]


def _person(name: str, one: SessionOutcome) -> str:
    if name in one.owners:
        return f"{name} (owner)"
    return f"{name} (assumed)" if name in one.transcript.assumed else name


def _show_changes(one: SessionOutcome) -> None:
    told = [*_moves(one.changes), *_remarks(one)]
    for line in [f"{one.session_id} of {one.scope}", *told] if told else ():
        console().print(line)


def _moves(moved: Changes) -> Iterator[str]:
    for fact in moved.learned:
        yield f"  + {fact.statement}"
    for old, new in moved.retired:
        yield f"  - {old.statement} ({old.status}{f': {new.statement}' if new else ''})"
    for fact in moved.contested:
        yield f"  ? {fact.statement} (contested)"
    if moved.hidden:
        yield f"  x {moved.hidden} facts are hidden: somebody asked for them to be forgotten"


def _remarks(one: SessionOutcome) -> Iterator[str]:
    if one.held:
        yield "  ! held for `afterword review` by the policy of this memory"
    if one.unjudged:
        yield f"  ! {one.unjudged} pairs are left to `afterword consolidate`"
    if one.splits:
        yield f"  . read in {one.splits} halves more: too long for the model at once"
    if quarantined := one.rejected.get(Reason.QUARANTINED):
        yield f"  ! {quarantined} quarantined: like instructions to an assistant; see `afterword why {one.session_id}`"
    for reason, count in sorted(one.transcript.skipped.items()):
        yield f"  . {told_skipped(reason, count)}"

"""Commands for operators of a store: its state, memories, background work, migrations, checks, and settings."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from afterword.cli.app import FAILED, Json, app, call_store
from afterword.cli.printing import (
    cost_text,
    count_with_noun,
    date_text,
    print_json,
    print_lines,
    print_result,
    spending_text,
    table,
)
from afterword.client.forms.memory_forms import fact_json, iso_instant
from afterword.client.forms.store_forms import status_json

if TYPE_CHECKING:
    from afterword import Afterword, FactChange, SavedSession, Scope, ScopeStatus, StoreCosts, StoreStatus
    from afterword.client.values import JobReport, JobResult, JobState


DAYS_SHOWN = 14


@app.command(name="status")
def status_command(as_json: Json = False) -> None:
    """Show what the store holds, what waits and what failed.

    It also shows why sessions failed, what the schedule did last, and what models cost.
    """
    status = call_store(lambda store: store.status())
    print_result(
        status_json(status), *_memory_lines(status), *_work_lines(status), *_cost_lines(status.costs), as_json=as_json
    )


def _memory_lines(status: StoreStatus) -> Iterator[object]:
    yield f"store: {status.store}"
    names = ("scope", "current", "all", "sessions", "contested", "pending", "held", "to_forget", "pairs", "judged")
    yield table("memories", (*names, "cost"), list(map(_scope_row, status.scopes)))
    yield from _erasure_and_pause_lines(status.scopes)
    yield f"sessions: {', '.join(f'{count} {name}' for name, count in status.sessions.items()) or 'none'}"
    masked, off_the_record = status.secrets_masked, status.turns_off_the_record
    if masked or off_the_record:
        yield f"privacy: {masked} secrets masked, {off_the_record} turns off the record"
    made = [
        (vectors.model, vectors.dimension, vectors.is_configured, vectors.vectors, vectors.lacking)
        for vectors in status.vectors
    ]
    if made:
        yield table("vectors", ("model", "dimension", "configured", "vectors", "lacking"), made)


def _scope_row(scope: ScopeStatus) -> tuple[object, ...]:
    return (
        *(scope.scope, scope.current, scope.facts, scope.sessions, scope.contested, scope.pending),
        *(scope.held_runs, scope.to_forget, scope.pairs, scope.judged_pairs, cost_text(scope.spent)),
    )


def _erasure_and_pause_lines(scopes: Sequence[ScopeStatus]) -> Iterator[str]:
    if any(scope.to_forget for scope in scopes):
        yield "to_forget: requests in `afterword review`; `afterword forget --asked` carries them out"
    yield from (
        f"to_forget: {scope.scope}: erased by itself from {iso_instant(scope.erase_due_at)} on; "
        "`afterword review` shows it, and `--reject` stops it"
        for scope in scopes
        if scope.erase_due_at
    )
    yield from (
        f"paused: {scope.scope} since {date_text(scope.pause.paused_at)}, "
        f"{count_with_noun(scope.pause.sessions_not_kept, 'session')} not kept; see `afterword resume`"
        for scope in scopes
        if scope.pause
    )


def _work_lines(status: StoreStatus) -> Iterator[object]:
    if status.queue.waiting:
        age = timedelta(seconds=round(status.queue.oldest_age_s or 0))
        yield f"queue: {status.queue.waiting} waiting, the oldest for {age}"
    if status.failures:
        yield f"failures: {', '.join(f'{count} {reason}' for reason, count in status.failures.items())}"
    if status.failed:
        title = "failed: tried again after a pause, files when their path is given again; set aside: `afterword retry`"
        names = ("scope", "session", "state", "tries", "next try", "reason")
        yield table(title, names, list(map(_failed_session_row, status.failed)))
    if status.jobs:
        names = ("job", "ended", "did", "last done", "in progress until", "failure")
        yield table("schedule", names, list(map(_job_row, status.jobs)))


def _failed_session_row(session: SavedSession) -> tuple[object, ...]:
    return (
        *(session.scope, session.session_id, session.progress, session.attempts),
        *(iso_instant(session.next_try_at), session.failure),
    )


def _job_row(job: JobState) -> tuple[object, ...]:
    return (
        *(job.name, iso_instant(job.ended_at), ", ".join(f"{count} {name}" for name, count in job.counts.items())),
        iso_instant(job.last_success_at) if job.last_success_at != job.ended_at else None,
        *(iso_instant(job.leased_until) if job.holder else None, job.failure),
    )


def _cost_lines(costs: StoreCosts) -> Iterator[object]:
    rows = [
        (date, spent.calls, spent.prompt_tokens, spent.completion_tokens, cost_text(spent))
        for date, spent in costs.by_day.items()
    ]
    if rows:
        shown = rows[-DAYS_SHOWN:]
        more = f" (the last {len(shown)} of {len(rows)}; all with --json)" if len(shown) < len(rows) else ""
        names = ("day", "calls", "prompt tokens", "completion tokens", "cost")
        yield table(f"spent by day, UTC{more}", names, shown)
        yield f"spent in all: {spending_text(costs.total)}"


@app.command(name="scopes")
def scopes_command(
    prefix: Annotated[
        str, typer.Argument(help="Only memories whose name, or full name tenant/kind/id, begins with this text.")
    ] = "",
    as_json: Json = False,
) -> None:
    """List the memories in the store by their full names."""
    page = call_store(lambda store: store.scopes(prefix=prefix))
    names = list(map(str, page.scopes))
    print_result(names, *names, count_with_noun(page.total, "memory"), as_json=as_json)


@app.command(name="schedule")
def schedule_command(
    once: Annotated[bool, typer.Option("--once", help="Do what is due now, then end; for cron and the like.")] = False,
    as_json: Json = False,
) -> None:
    """Run the periodic jobs until stopped: process and retry sessions, and consolidate memories.

    Several processes that do this share the work. With --once the exit code is 1 if anything failed.
    """
    reports = call_store(lambda store: _run_schedule(store, once=once, as_json=as_json), create=True)
    if as_json and once:
        from afterword.client.background import job_report_json

        print_json({report.name: job_report_json(report) for report in reports})
    else:
        for report in reports:
            _print_report(report, as_json=False)
    if any(report.has_failures for report in reports):
        sys.exit(FAILED)


async def _run_schedule(store: Afterword, *, once: bool, as_json: bool) -> Sequence[JobReport]:
    """Run the periodic jobs until a signal stops them, and print each report; with `once` return the reports."""
    from afterword.cli.progress import handling_signals
    from afterword.client.values import Halt

    halt = Halt()

    def print_or_halt(report: JobReport) -> None:
        try:
            _print_report(report, as_json=as_json)
        except BrokenPipeError:
            halt.stop("the reader of the output has gone")

    def print_begin(shown_url: str) -> None:
        print_lines(f"scheduling on {shown_url}; SIGTERM or Ctrl-C stops it", to_errors=as_json)

    with handling_signals(lambda stopped_by: halt.stop(stopped_by.name), signal.SIGTERM, signal.SIGINT):
        if once:
            return await store.run_due_jobs(halt=halt)
        await store.schedule(halt=halt, on_begin=print_begin, on_end=print_or_halt)
    return ()


def _print_report(report: JobReport, *, as_json: bool) -> None:
    if as_json:
        from afterword.client.background import job_report_json

        typer.echo(json.dumps({"job": report.name, **job_report_json(report)}, ensure_ascii=False))
        return
    result = ", ".join(filter(None, (str(report.ending), _counts_and_failures_text(report))))
    print_lines(f"{iso_instant(report.at)} {report.name}: {result}")
    sys.stdout.flush()


@app.command(name="worker")
def worker_command(
    concurrency: Annotated[int, typer.Option(min=1, help="The largest number of sessions at once.")] = 4,
    once: Annotated[bool, typer.Option("--once", help="End when the queue is empty.")] = False,
    as_json: Json = False,
) -> None:
    """Process the queue of the workers (PostgreSQL).

    `afterword run --defer` and `afterword schedule` fill the queue. Workers need afterword[workers].
    With --once the exit code is 1 if a session failed.
    """
    result = call_store(
        lambda store: store.run_worker(
            concurrency=concurrency,
            once=once,
            on_begin=lambda shown_url: print_lines(
                f"working on {shown_url}; SIGTERM or Ctrl-C stops it", to_errors=as_json
            ),
        )
    )
    counts = {"counts": dict(result.counts), "failures": dict(result.failures)}
    print_result(counts, _counts_and_failures_text(result), as_json=as_json)
    if once and result.failures:
        sys.exit(FAILED)


def _counts_and_failures_text(result: JobReport | JobResult) -> str:
    counts = [f"{count} {_singular(name) if count == 1 else name}" for name, count in result.counts.items()]
    return ", ".join([*counts, *(f"{count} failed: {reason}" for reason, count in result.failures.items())])


def _singular(name: str) -> str:
    """Return the name of a count with its noun in the singular: "session processed", "memory consolidated"."""
    noun, blank, rest = name.partition(" ")
    noun = f"{noun.removesuffix('ies')}y" if noun.endswith("ies") else noun.removesuffix("s")
    return f"{noun}{blank}{rest}"


@app.command(name="migrate")
def migrate_command(as_json: Json = False) -> None:
    """Bring the tables of the store up to date, and show the memories that were merged and the facts that changed."""

    async def migrate(
        store: Afterword,
    ) -> tuple[tuple[str | None, str], tuple[Scope, ...], Mapping[Scope, tuple[FactChange, ...]]]:
        return await store.migrate(), await store.merge_scope_forms(), await store.derive_facts()

    (before, after), merged, changes = call_store(migrate)
    changed = [(scope, change) for scope, changes_of_scope in changes.items() for change in changes_of_scope]
    rows = [_change_row(scope, change) for scope, change in changed]
    forms = [{"from": str(scope), "into": str(scope.normal)} for scope in merged]
    facts = [_change_json(scope, change) for scope, change in changed]
    print_result(
        {"before": before, "after": after, "merged": forms, "changed": facts},
        f"tables: {before or 'none'} -> {after}" if before != after else f"tables: {after}, up to date",
        *(f"merged {str(scope)!a} into {scope.normal}: the same name in another form" for scope in merged),
        table("changed by new rules", ("memory", "fact", "before", "after"), rows) if rows else None,
        as_json=as_json,
    )


def _change_row(scope: Scope, change: FactChange) -> tuple[object, ...]:
    statement = next(fact.statement for fact in (change.after, change.before) if fact)
    before = change.before.status if change.before else "new"
    return (str(scope), statement, before, change.after.status if change.after else "gone")


def _change_json(scope: Scope, change: FactChange) -> dict[str, Any]:
    before, after = (fact_json(fact) if fact else None for fact in (change.before, change.after))
    return {"scope": str(scope), "before": before, "after": after}


@app.command(name="doctor")
def doctor_command(
    probe: Annotated[
        bool, typer.Option("--probe", help="Also send small requests to the model and the embedder.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Check the setup, and say how to fix what fails."""
    from afterword.doctor import run_checks

    checks = [replace(check, fix="") if check.ok else check for check in asyncio.run(run_checks(probe=probe))]
    listed = [{"check": check.name, "ok": check.ok, "found": check.finding, "mend": check.fix} for check in checks]
    rows = [("ok" if check.ok else "FAILS", check.name, check.finding, check.fix) for check in checks]
    print_result(listed, table("afterword", ("", "check", "result", "how to fix it"), rows), as_json=as_json)
    if not all(check.ok for check in checks):
        sys.exit(FAILED)


@app.command(name="config")
def config_command(as_json: Json = False) -> None:
    """Show each setting, its value, and where the value comes from. Keys are not shown."""
    from afterword.settings import settings_with_sources

    settings = settings_with_sources()
    rows = [(setting.name, setting.value, setting.source) for setting in settings]
    listed = table("settings", ("setting", "value", "source"), rows)
    print_result([asdict(setting) for setting in settings], listed, as_json=as_json)


@app.command(name="init")
def init_command(
    path: Annotated[Path, typer.Argument(help="The profile to write.")] = Path("afterword.toml"),
) -> None:
    """Write a profile that shows every setting with its default. An existing file is not changed."""
    from afterword.errors import FileInvalid
    from afterword.settings import commented_profile

    try:
        with path.open("x", encoding="utf-8") as profile:
            profile.write(commented_profile())
    except FileExistsError:
        raise FileInvalid(f"{path} exists already; name another file, or change it by hand") from None
    except OSError as error:
        raise FileInvalid(f"{path} cannot be written: {error.strerror}; name another file") from None
    print_lines(f"{path} written; remove the # of what you change, then look at `afterword config`")

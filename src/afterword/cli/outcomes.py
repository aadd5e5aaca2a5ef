"""Long commands: show their progress, stop at Ctrl-C, and print their results and costs."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from afterword import (
    Afterword,
    ConsolidationReport,
    CostEstimate,
    CostRange,
    Failure,
    NotDue,
    NotStarted,
    ProcessedSession,
    ProcessingOptions,
    ProcessingReport,
    SessionOutcome,
    Spending,
)
from afterword.cli.app import (
    FAILED,
    INTERRUPTED,
    MAY_BE_PERSON,
    NO_FACT_FOUND,
    NO_PERSON,
    OUT_OF_BUDGET,
    call_store,
    console,
    counted,
    money,
    print_lines,
    print_result,
    skipped_text,
    spending_text,
    status_text,
    table,
)
from afterword.cli.terminal import ResponsiveTable, terminal_line
from afterword.client.forms.memory_forms import changes_json, processed_json, spending_json
from afterword.client.forms.store_forms import SESSION_STATES
from afterword.client.values import Changes, Halt, TimeBasis

LINES = 10
"""How many lines show the progress of a run if there is no terminal for a bar."""


def process_interruptibly(
    process: Callable[[Afterword, ProcessingOptions], Awaitable[ProcessingReport]],
    options: ProcessingOptions,
    *,
    is_quiet: bool,
) -> ProcessingReport:
    """Process sessions, and return the results. Show the progress unless `is_quiet`, and stop at Ctrl-C."""

    async def process_with_progress(store: Afterword) -> ProcessingReport:
        with interruptible() as stop, showing_progress(is_quiet=is_quiet) as progress:
            shown = replace(options, stop=stop, on_begin=progress.begin, on_done=progress.advance)
            return await process(store, shown)

    return call_store(process_with_progress, create=True)


class RunProgress:
    """Shows how many sessions have ended: in a bar, and with `has_lines` in a line after each tenth of them."""

    def __init__(self, bar: Progress, *, has_lines: bool) -> None:
        self._bar, self._has_lines, self._failed = bar, has_lines, 0
        self._task = bar.add_task("sessions", total=None, state="")

    def begin(self, total: int) -> None:
        """Set how many sessions will be processed."""
        self._bar.reset(self._task, total=total)

    def advance(self, result: SessionOutcome | Failure, spent: Spending) -> None:
        """Count a session that has ended, and show the rate, the cost and the failures so far."""
        task = self._bar.tasks[0]
        done, total, minutes = int(task.completed) + 1, int(task.total or 1), (task.elapsed or 0) / 60
        self._failed += isinstance(result, Failure)
        rate = done / minutes if minutes else 0.0
        pace = f"{rate:.0f} a minute" if rate >= 1 or not rate else f"{60 * rate:.0f} an hour"
        state = f"{pace}, {money(spent)}, {self._failed} failed"
        self._bar.update(self._task, advance=1, state=state)
        if self._has_lines and done * LINES // total != (done - 1) * LINES // total:
            self._bar.console.print(f"{done} of {total} sessions, {state}")


@contextmanager
def showing_progress(*, is_quiet: bool) -> Iterator[RunProgress]:
    """Show the progress of a run on standard error, unless `is_quiet`: as a bar on a terminal, otherwise as lines."""
    out, state = console(to_errors=True), TextColumn("{task.fields[state]}")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), state, TimeElapsedColumn())
    with Progress(*columns, console=out, transient=True, disable=is_quiet or not out.is_terminal) as bar:
        yield RunProgress(bar, has_lines=not is_quiet and not out.is_terminal)


@contextmanager
def interruptible() -> Iterator[Halt]:
    """Handle Ctrl-C: the first one lets sessions in progress finish and stops, the second one cancels the task."""
    task, halt = asyncio.current_task(), Halt()

    def on_signal(_signal: signal.Signals) -> None:
        if halt() is None:
            halt.stop("interrupted")
            advice = "press Ctrl-C again to leave them for the next run"
            print_lines(f"stopping: sessions in progress are finished; {advice}", to_errors=True)
        elif task is not None:
            task.cancel()

    with handling_signals(on_signal, signal.SIGINT):
        yield halt


@contextmanager
def handling_signals(handle: Callable[[signal.Signals], None], *signals: signal.Signals) -> Iterator[None]:
    """Call `handle` for these signals inside the block. On Windows and outside the main thread, nothing changes."""
    loop = asyncio.get_running_loop()
    can_handle = sys.platform != "win32" and threading.current_thread() is threading.main_thread()
    handled = signals if can_handle else ()
    for number in handled:
        loop.add_signal_handler(number, handle, number)
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)


def finish_run(report: ProcessingReport, *, is_proposal: bool, as_json: bool) -> None:
    """Print the result of each session. Exit with 1, 3 or 130 after a failure, a reached budget, or Ctrl-C."""
    results = [processed.result for processed in report.sessions]
    left = [result for result in results if isinstance(result, NotStarted)]
    shown = [session for session in report.sessions if isinstance(session.result, SessionOutcome | Failure)]
    retried = f"tried again now: {counted(report.retried, 'session')} that had failed"
    print_result(
        [processed_json(processed) for processed in report.sessions],
        retried if report.retried else None,
        *(outcome_lines(shown, is_proposal=is_proposal) if shown or not report.sessions else ()),
        *_waiting_lines([result for result in results if isinstance(result, NotDue)]),
        f"cost: {spending_text(report.spent)}" if report.sessions or report.spent.calls else None,
        _stop_line(report.budget_reached, left),
        as_json=as_json,
    )
    if left and not report.budget_reached:
        sys.exit(INTERRUPTED)
    exit_by_budget(report.budget_reached)
    if any(isinstance(result, Failure) for result in results):
        sys.exit(FAILED)


def _waiting_lines(waiting: Sequence[NotDue]) -> Iterator[str]:
    yield from (f"waiting: {terminal_line(result.session_id)} of {result.scope}: {result.reason}" for result in waiting)
    if waiting:
        yield "`afterword run --retry` tries them now (give the same path again)"


def _stop_line(budget_reached: str | None, left: Sequence[NotStarted]) -> str | None:
    reason = budget_reached or (left[0].reason if left else None)
    return reason and f"stopped: {reason}; {counted(len(left), 'session')} left, run it again to go on"


def exit_by_budget(budget_reached: str | None) -> None:
    """Exit with 3 if a budget was reached."""
    if budget_reached:
        sys.exit(OUT_OF_BUDGET)


def outcome_lines(processed: Sequence[ProcessedSession], *, is_proposal: bool) -> Iterator[object]:
    """Yield a table of the sessions, their changes, failures with reasons, and how many sessions have no times."""
    names = ("scope", "session", "result", "turns", "people", "learned", "again", "retired", "refused", "tokens")
    rows = [_row(session) for session in processed]
    if not rows:
        yield "nothing to do: no session is queued; give a path to process saved files"
        return
    yield table("proposed, nothing counts yet" if is_proposal else "processed", names, rows)
    undated = 0
    for result in (session.result for session in processed):
        if isinstance(result, SessionOutcome):
            undated += result.transcript.time_basis is TimeBasis.FILE
            lines = [*_change_lines(result.changes), *_remarks(result)]
            yield from [f"{terminal_line(result.session_id)} of {result.scope}", *lines] if lines else ()
        else:
            yield f"failed: {terminal_line(result.session_id)} of {result.scope}: {result.reason}"
    if undated:
        yield (
            f"without times: {undated} of {len(rows)} sessions. The times of their files are used. Such guessed times "
            "end no fact. Give the times as started_at in a manifest."
        )


def _row(processed: ProcessedSession) -> list[object]:
    result = processed.result
    cells: list[object] = [result.scope, terminal_line(result.session_id), processed.result_name]
    if not isinstance(result, SessionOutcome):
        return cells
    changes, assumed = result.changes, result.transcript.assumed
    marks = {**dict.fromkeys(assumed, " (assumed)"), **dict.fromkeys(result.owners, " (owner)")}
    people = ", ".join(f"{name}{marks.get(name, '')}" for name in result.transcript.humans)
    counts = [len(changes.learned), len(changes.repeated), len(changes.retired), sum(result.rejected.values())]
    tokens = result.usage.prompt_tokens + result.usage.completion_tokens
    return [*cells, result.turns, people or "none", *counts, tokens]


def _change_lines(changes: Changes) -> Iterator[str]:
    for fact in changes.learned:
        yield f"  + {fact.statement}"
    for old, new in changes.retired:
        yield f"  - {old.statement} ({status_text(old)}{f': {new.statement}' if new else ''})"
    for fact in changes.contested:
        yield f"  ? {fact.statement} (contested)"
    for fact in changes.unclear:
        told = "told to agents with this doubt" if fact.is_flagged else "told to no agent"
        yield f"  ? {fact.statement} ({told} until `afterword review` says which {fact.subject} is meant)"
    if changes.hidden:
        yield f"  x {counted(changes.hidden, 'fact')} hidden: somebody asked for this to be forgotten"
    if changes.unfound:
        yield f"  x {counted(changes.unfound, 'request')}: {NO_FACT_FOUND}; see `afterword review`"


def _remarks(outcome: SessionOutcome) -> Iterator[str]:
    if outcome.held:
        reason = outcome.held_reason
        yield f"  ! held for `afterword review`{f': {reason}' if reason else ' by the policy of this memory'}"
    if outcome.unjudged:
        yield f"  ! {outcome.unjudged} pairs of statements are not compared yet; `afterword consolidate` compares them"
    if outcome.splits:
        yield f"  . {outcome.splits} parts were too long for the model and were read in halves"
    if quarantined := outcome.rejected.get("quarantined"):
        reason = "they read like instructions to an assistant"
        yield f"  ! {quarantined} quarantined: {reason}; see `afterword why {outcome.session_id}`"
    if surplus := outcome.rejected.get("too_many"):
        yield f"  ! {surplus} statements are left out: the session says more than the setting facts_per_session allows"
    for reason, count in sorted(outcome.transcript.skipped.items()):
        yield f"  {'!' if reason in (NO_PERSON, MAY_BE_PERSON) else '.'} {skipped_text(reason, count)}"


def finish_consolidation(report: ConsolidationReport, *, as_json: bool) -> None:
    """Print what a consolidation did in each scope, and exit with 3 if a budget was reached."""
    listed: list[dict[str, object]] = []
    lines: list[str] = []
    for consolidated in report.scopes:
        result, spent = consolidated.result, spending_json(consolidated.spent)
        counts = {"run": result.run_id, "held": result.held, "judged": result.judged, "unjudged": result.unjudged}
        changes = {**changes_json(result.changes), "calls": result.usage.calls, "spent": spent}
        listed.append({"scope": str(result.scope), **counts, **changes})
        is_idle = result.run_id is None and not result.unjudged
        state = "nothing was open" if is_idle else f"run {result.run_id or 'none'}"
        held = ", held for `afterword review`" if result.held else ""
        lines.append(f"{result.scope}: {state}{held}; {result.judged} pairs compared, {result.unjudged} left")
        lines += _change_lines(result.changes)
    cost = f"cost: {spending_text(report.spent)}" if report.spent.calls else None
    print_result(listed, *lines, cost, _stop_line(report.budget_reached, []), as_json=as_json)
    exit_by_budget(report.budget_reached)


def estimate_table(estimate: CostEstimate) -> ResponsiveTable:
    """Return a table of what processing would cost, by scope and in total."""
    rows = [_estimate_row(str(scope), costs) for scope, costs in estimate.by_scope.items()]
    rows.append(_estimate_row("all", estimate.total))
    names = ("scope", *SESSION_STATES, "windows", "calls", "prompt tokens", "completion tokens", "cost")
    title = f"requests to {estimate.model}" if estimate.model else "no model is asked: offline rules"
    return table(f"estimate, {title}; nothing was asked or stored", names, rows)


def _estimate_row(name: str, costs: CostRange) -> list[object]:
    least, most = costs.least, costs.most
    counts = [(getattr(least, name), getattr(most, name)) for name in ("calls", "prompt_tokens", "completion_tokens")]
    is_certain = most.usd is None or least.usd == most.usd
    return [
        name,
        *(costs.sessions.get(state, 0) for state in SESSION_STATES),
        costs.windows,
        *(f"{high:,}" if low == high else f"{low:,} to {high:,}" for low, high in counts),
        money(most) if is_certain else f"{money(least)} to {money(most)}",
    ]

"""Printing the results of processed sessions and their cost, and choosing the exit code."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from afterword.cli.app import FAILED, INTERRUPTED, OUT_OF_BUDGET
from afterword.cli.output import (
    NO_PERSON,
    console,
    counted,
    money,
    print_json,
    skipped_text,
    spending_text,
    status_text,
    table,
)
from afterword.client.json_forms import SESSION_STATES, changes_json, processed_json, spending_json
from afterword.client.results import (
    ConsolidatedScope,
    ConsolidationReport,
    ProcessedSession,
    ProcessingReport,
)
from afterword.client.store_results import CostEstimate, CostRange
from afterword.client.values import (
    Changes,
    Failure,
    NotDue,
    NotStarted,
    Scope,
    SessionOutcome,
    Spending,
    TimeBasis,
)

QUARANTINED, TOO_MANY = "quarantined", "too_many"


def finish_run(report: ProcessingReport, *, is_proposal: bool, as_json: bool) -> None:
    """Print what became of each session, and exit with 1, 3 or 130 unless all went well."""
    results = [processed.result for processed in report.sessions]
    left = [result for result in results if isinstance(result, NotStarted)]
    if as_json:
        print_json([processed_json(processed) for processed in report.sessions])
    else:
        if report.retried:
            console().print(f"tried again now: {counted(report.retried, 'session')} that had failed")
        _show_report(report, left, is_proposal=is_proposal)
    if left and not report.budget_reached:
        sys.exit(INTERRUPTED)
    exit_by_budget(report.budget_reached)
    if any(isinstance(result, Failure) for result in results):
        sys.exit(FAILED)


def _show_report(report: ProcessingReport, left: Sequence[NotStarted], *, is_proposal: bool) -> None:
    processed = [session for session in report.sessions if isinstance(session.result, SessionOutcome | Failure)]
    if processed or not report.sessions:
        show_outcomes(processed, is_proposal=is_proposal)
    for session in report.sessions:
        if isinstance(session.result, NotDue):
            console().print(f"waiting: {session.result.session_id} of {session.result.scope}: {session.result.reason}")
    if any(isinstance(session.result, NotDue) for session in report.sessions):
        console().print("`afterword run --retry` tries them now (give the same path again)")
    if report.sessions or report.spent.calls:
        console().print(f"cost: {spending_text(report.spent)}")
    _show_stop(report.budget_reached or (left[0].reason if left else None), len(left))


def _show_stop(reason: str | None, sessions_left: int) -> None:
    if reason is not None:
        console().print(f"stopped: {reason}; {counted(sessions_left, 'session')} left, run it again to go on")


def exit_by_budget(budget_reached: str | None) -> None:
    """Exit with 3 if a budget was reached."""
    if budget_reached:
        sys.exit(OUT_OF_BUDGET)


def show_outcomes(processed: Sequence[ProcessedSession], *, is_proposal: bool) -> None:
    """Print what became of each session, what failed and why, and how many sessions carry no times."""
    out = console()
    names = ("scope", "session", "result", "turns", "people", "learned", "again", "retired", "refused", "tokens")
    rows = [_row(session) for session in processed]
    if not rows:
        out.print("nothing to do: no session is queued; give a path to process saved files")
        return
    out.print(table("proposed, nothing counts yet" if is_proposal else "processed", names, rows))
    undated = 0
    for session in processed:
        result = session.result
        if isinstance(result, SessionOutcome):
            undated += result.transcript.time_basis is TimeBasis.FILE
            lines = [*_change_lines(result.changes), *_remarks(result)]
            for line in [f"{result.session_id} of {result.scope}", *lines] if lines else ():
                out.print(line)
        else:
            out.print(f"failed: {result.session_id} of {result.scope}: {result.reason}")
    if undated:
        out.print(
            f"{undated} of {len(rows)} sessions carry no times, so the times of their files are used. Such guessed "
            "times end no fact. Give the times as started_at in a manifest."
        )


def _row(processed: ProcessedSession) -> list[object]:
    result = processed.result
    cells: list[object] = [result.scope, result.session_id, processed.result_name]
    if not isinstance(result, SessionOutcome):
        return cells
    changes = result.changes
    people = ", ".join(_person(name, result) for name in result.transcript.humans)
    counts = [len(changes.learned), len(changes.repeated), len(changes.retired), sum(result.rejected.values())]
    return [
        *cells,
        result.turns,
        people or "none",
        *counts,
        result.usage.prompt_tokens + result.usage.completion_tokens,
    ]


def _person(name: str, outcome: SessionOutcome) -> str:
    if name in outcome.owners:
        return f"{name} (owner)"
    return f"{name} (assumed)" if name in outcome.transcript.assumed else name


def _change_lines(changes: Changes) -> Iterator[str]:
    for fact in changes.learned:
        yield f"  + {fact.statement}"
    for old, new in changes.retired:
        yield f"  - {old.statement} ({status_text(old)}{f': {new.statement}' if new else ''})"
    for fact in changes.contested:
        yield f"  ? {fact.statement} (contested)"
    if changes.hidden:
        yield f"  x {counted(changes.hidden, 'fact')} hidden: somebody asked for this to be forgotten"


def _remarks(outcome: SessionOutcome) -> Iterator[str]:
    if NO_PERSON in outcome.transcript.skipped:
        yield f"  ! {skipped_text(NO_PERSON, 1)}"
    if outcome.held:
        reason = outcome.held_reason
        yield f"  ! held for `afterword review`{f': {reason}' if reason else ' by the policy of this memory'}"
    if outcome.unjudged:
        yield f"  ! {outcome.unjudged} pairs of statements are not compared yet; `afterword consolidate` compares them"
    if outcome.splits:
        yield f"  . {outcome.splits} parts were too long for the model and were read in halves"
    if quarantined := outcome.rejected.get(QUARANTINED):
        reason = "they read like instructions to an assistant"
        yield f"  ! {quarantined} quarantined: {reason}; see `afterword why {outcome.session_id}`"
    if surplus := outcome.rejected.get(TOO_MANY):
        yield f"  ! {surplus} facts are left out: the session says more than the setting facts_per_session allows"
    for reason, count in sorted(outcome.transcript.skipped.items()):
        yield f"  . {skipped_text(reason, count)}"


def finish_consolidation(report: ConsolidationReport, *, as_json: bool) -> None:
    """Print what a consolidation did in each scope."""
    if as_json:
        print_json([_consolidated_json(consolidated) for consolidated in report.scopes])
        return
    out = console()
    for consolidated in report.scopes:
        result = consolidated.result
        is_idle = result.run_id is None and not result.unjudged
        state = "nothing was open" if is_idle else f"run {result.run_id or 'none'}"
        held = ", held for `afterword review`" if result.held else ""
        out.print(f"{result.scope}: {state}{held}; {result.judged} pairs compared, {result.unjudged} left")
        for line in _change_lines(result.changes):
            out.print(line)
    if report.spent.calls:
        out.print(f"cost: {spending_text(report.spent)}")
    _show_stop(report.budget_reached, 0)


def _consolidated_json(consolidated: ConsolidatedScope) -> dict[str, object]:
    result = consolidated.result
    return {
        "scope": str(result.scope),
        "run": result.run_id,
        "held": result.held,
        "judged": result.judged,
        "unjudged": result.unjudged,
        **changes_json(result.changes),
        "calls": result.usage.calls,
        "spent": spending_json(consolidated.spent),
    }


def show_estimate(estimate: CostEstimate) -> None:
    """Print what processing would cost, by scope and in all."""
    rows = [_estimate_row(scope, costs) for scope, costs in estimate.by_scope.items()]
    rows.append(_estimate_row("all", estimate.total))
    names = ("scope", *SESSION_STATES, "windows", "calls", "prompt tokens", "completion tokens", "cost")
    title = f"requests to {estimate.model}" if estimate.model else "no model is asked: offline rules"
    console().print(table(f"estimate, {title}; nothing was asked or stored", names, rows))


def _estimate_row(scope: Scope | str, costs: CostRange) -> list[object]:
    least, most = costs.least, costs.most
    return [
        scope,
        *(costs.sessions.get(state, 0) for state in SESSION_STATES),
        costs.windows,
        _span(least.calls, most.calls),
        _span(least.prompt_tokens, most.prompt_tokens),
        _span(least.completion_tokens, most.completion_tokens),
        _cost_span(least, most),
    ]


def _cost_span(least: Spending, most: Spending) -> str:
    return money(most) if most.usd is None or least.usd == most.usd else f"{money(least)} to {money(most)}"


def _span(least: int, most: int) -> str:
    return f"{most:,}" if least == most else f"{least:,} to {most:,}"

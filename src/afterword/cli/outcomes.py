"""What commands that process or compare sessions print at their end, and the codes with which they exit."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from afterword import (
    ConsolidationReport,
    CostEstimate,
    CostRange,
    Failure,
    NotDue,
    NotStarted,
    ProcessedSession,
    ProcessingReport,
    SessionOutcome,
)
from afterword.cli.app import FAILED, INTERRUPTED, OUT_OF_BUDGET
from afterword.cli.printing import (
    MAY_BE_PERSON,
    NO_FACT_FOUND,
    NO_PERSON,
    cost_text,
    count_with_noun,
    print_result,
    skipped_text,
    spending_text,
    status_text,
    table,
)
from afterword.cli.terminal import ResponsiveTable, terminal_safe_line
from afterword.client.forms.memory_forms import changes_json, processed_json, spending_json
from afterword.client.forms.store_forms import SESSION_STATES
from afterword.client.values import Changes, TimeBasis


def finish_processing_command(report: ProcessingReport, *, is_proposal: bool, as_json: bool) -> None:
    """Print the result of each session. Exit with 1, 3 or 130 after a failure, a reached budget, or Ctrl-C."""
    forms = [processed_json(processed) for processed in report.sessions]
    print_result(forms, *_report_lines(report, is_proposal=is_proposal), as_json=as_json)
    results = [processed.result for processed in report.sessions]
    exit_if_budget_reached(report.budget_reached)
    if any(isinstance(result, NotStarted) for result in results):
        sys.exit(INTERRUPTED)
    if any(isinstance(result, Failure) for result in results):
        sys.exit(FAILED)


def _report_lines(report: ProcessingReport, *, is_proposal: bool) -> Iterator[object]:
    if report.retried:
        yield f"tried again now: {count_with_noun(report.retried, 'session')} that had failed"
    ended = [session for session in report.sessions if isinstance(session.result, SessionOutcome | Failure)]
    if ended or not report.sessions:
        yield from outcome_lines(ended, is_proposal=is_proposal)
    results = [processed.result for processed in report.sessions]
    yield from _waiting_lines([result for result in results if isinstance(result, NotDue)])
    if report.sessions or report.spent.calls:
        yield f"cost: {spending_text(report.spent)}"
    yield _stop_line(report.budget_reached, [result for result in results if isinstance(result, NotStarted)])


def _waiting_lines(waiting: Sequence[NotDue]) -> Iterator[str]:
    yield from (
        f"waiting: {terminal_safe_line(result.session_id)} of {result.scope}: {result.reason}" for result in waiting
    )
    if waiting:
        yield "`afterword run --retry` tries them now (give the same path again)"


def _stop_line(budget_reached: str | None, not_started: Sequence[NotStarted]) -> str | None:
    reason = budget_reached or (not_started[0].reason if not_started else None)
    return reason and f"stopped: {reason}; {count_with_noun(len(not_started), 'session')} left, run it again to go on"


def exit_if_budget_reached(budget_reached: str | None) -> None:
    """Exit with 3 if a budget was reached."""
    if budget_reached:
        sys.exit(OUT_OF_BUDGET)


def outcome_lines(processed: Sequence[ProcessedSession], *, is_proposal: bool) -> Iterator[object]:
    """Yield a table of the sessions, their changes, failures with reasons, and how many sessions have no times."""
    names = ("scope", "session", "result", "turns", "people", "learned", "again", "retired", "refused", "tokens")
    rows = [_outcome_row(session) for session in processed]
    if not rows:
        yield "nothing to do: no session is queued; give a path to process saved files"
        return
    yield table("proposed, nothing counts yet" if is_proposal else "processed", names, rows)
    undated = 0
    for result in (session.result for session in processed):
        if isinstance(result, SessionOutcome):
            undated += result.transcript.time_basis is TimeBasis.FILE
            lines = [*_change_lines(result.changes), *_remark_lines(result)]
            yield from [f"{terminal_safe_line(result.session_id)} of {result.scope}", *lines] if lines else ()
        else:
            yield f"failed: {terminal_safe_line(result.session_id)} of {result.scope}: {result.reason}"
    if undated:
        yield (
            f"without times: {undated} of {len(rows)} sessions. The times of their files are used. Such guessed times "
            "end no fact. Give the times as started_at in a manifest."
        )


def _outcome_row(processed: ProcessedSession) -> list[object]:
    result = processed.result
    cells: list[object] = [result.scope, terminal_safe_line(result.session_id), processed.result_name]
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
        yield f"  x {count_with_noun(changes.hidden, 'fact')} hidden: somebody asked for this to be forgotten"
    if changes.unfound:
        yield f"  x {count_with_noun(changes.unfound, 'request')}: {NO_FACT_FOUND}; see `afterword review`"


def _remark_lines(outcome: SessionOutcome) -> Iterator[str]:
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


def finish_consolidation_command(report: ConsolidationReport, *, as_json: bool) -> None:
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
    exit_if_budget_reached(report.budget_reached)


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
        cost_text(most) if is_certain else f"{cost_text(least)} to {cost_text(most)}",
    ]

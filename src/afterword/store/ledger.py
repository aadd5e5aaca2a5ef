"""The write side: runs are proposed, applied and undone; facts follow.

Nothing here deletes an assertion. A run that is undone is left out, and the facts are derived again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any

from sqlalchemy import bindparam, delete, update
from sqlalchemy.orm.attributes import set_committed_value
from sqlmodel import Session, col, select

from afterword.errors import NotFound, ScopeMoved
from afterword.facts.assertions import Assertion
from afterword.facts.knowledge import Knowledge
from afterword.facts.scopes import Scope
from afterword.facts.timeline import FactHistory, fact_histories
from afterword.facts.transcripts import Transcript
from afterword.store.database.inserts import insert_missing, insert_rows
from afterword.store.database.statements import fetch_rows
from afterword.store.lookup import (
    CHUNK,
    assertions_by_id,
    knowledge_after_runs,
    read_knowledge,
    revision_of,
    scope_row,
    select_columns,
    select_where_in,
)
from afterword.store.proposals import Proposal, store_verdicts, store_window
from afterword.store.rows import (
    Values,
    fact_values,
    member_values,
    pack_transcript,
)
from afterword.store.tables import (
    FactAssertionRow,
    FactRow,
    RunRow,
    RunWindowRow,
    ScopeRow,
    WindowAssertionRow,
    WindowRow,
)
from afterword.telemetry import Stage, staged


class RunStatus(StrEnum):
    """Where a run stands: proposed by a dry run, held for a person, or decided."""

    PROPOSED = "proposed"
    HELD = "held"
    APPLIED = "applied"
    UNDONE = "undone"
    REJECTED = "rejected"


UNDECIDED = (RunStatus.PROPOSED, RunStatus.HELD)


def session_source(session_id: str) -> str:
    """Return the source of the runs that read a session."""
    return f"session:{session_id}"


def ensure_scope(transaction: Session, scope: Scope) -> int:
    """Return the key of the scope's row, which is made where it is missing."""
    row = scope_row(transaction, scope)
    if row is None:
        values = {"tenant": scope.tenant, "kind": str(scope.kind), "name": scope.id, "revision": 0, "policy": "auto"}
        insert_missing(transaction, ScopeRow, [values])
        row = scope_row(transaction, scope)
    if row is None or row.id is None:
        raise NotFound(f"the scope {scope} could not be made")
    return row.id


def read_windows(transaction: Session, scope: Scope, source: str) -> dict[str, tuple[Assertion, ...]]:
    """Return the windows of a source that were ever read: of each key its assertions."""
    row = scope_row(transaction, scope)
    if row is None:
        return {}
    kept = fetch_rows(transaction, _windows_of(), {"scope_id": row.id, "source": source})
    windows = {one.id: one.key for one in kept}
    if not windows:
        return {}
    found: dict[str, list[str]] = {key: [] for key in windows.values()}
    for tie in fetch_rows(transaction, select_where_in(WindowAssertionRow, "window_id"), {"keys": list(windows)}):
        found[windows[tie.window_id]].append(tie.assertion_id)
    said = assertions_by_id(transaction, scope, [one for ids in found.values() for one in ids])
    return {key: tuple(said[one] for one in ids) for key, ids in found.items()}


@cache
def _windows_of() -> Any:
    of = (col(WindowRow.scope_id) == bindparam("scope_id"), col(WindowRow.source) == bindparam("source"))
    return select_columns(WindowRow).where(*of)


def last_window_keys(transaction: Session, scope: Scope, source: str) -> list[str] | None:
    """Return the keys of the windows that the last run over a source read, dry runs aside; None without a run."""
    row = scope_row(transaction, scope)
    if row is None:
        return None
    last = fetch_rows(transaction, _last_run(), {"scope_id": row.id, "source": source})
    if not last:
        return None
    of_run = (col(WindowRow.id) == col(RunWindowRow.window_id), RunWindowRow.run_id == last[0].id)
    return list(transaction.exec(select(WindowRow.key).where(*of_run).order_by(col(RunWindowRow.ordinal))))


@cache
def _last_run() -> Any:
    of = (col(RunRow.scope_id) == bindparam("scope_id"), col(RunRow.source) == bindparam("source"))
    found = select(RunRow.id).where(*of, RunRow.status != RunStatus.PROPOSED)
    return found.order_by(col(RunRow.id).desc()).limit(1)


@staged(Stage.PROPOSE)
def propose_run(
    transaction: Session,
    proposal: Proposal,
    *,
    session_pk: int | None = None,
    is_held: bool = False,
    transcript: Transcript | None = None,
) -> int:
    """Store a proposal and return its run's id. Nothing of it counts before it is applied.

    With `is_held` it waits for a person. `transcript` is what a dry run has read, for when it is applied.

    `session_pk` is the key of the session that it reads, None where the application or a person speaks.
    """
    scope_id = lock_scope(transaction, proposal.scope)
    run = RunRow(
        scope_id=scope_id,
        session_pk=session_pk,
        source=proposal.source,
        purpose=proposal.purpose,
        status=RunStatus.HELD if is_held else RunStatus.PROPOSED,
        extractor=proposal.extractor,
        judge=proposal.judge,
        started_at=proposal.started_at,
        calls=proposal.calls,
        prompt_tokens=proposal.prompt_tokens,
        completion_tokens=proposal.completion_tokens,
        counts={**proposal.counts, "revision": proposal.revision},
        transcript=pack_transcript(transcript) if transcript else None,
    )
    transaction.add(run)
    transaction.flush()
    if run.id is None:
        raise NotFound("the run got no id")
    transaction.info[RunRow] = run  # read again when applied in this transaction
    windows = [store_window(transaction, scope_id, proposal, reading) for reading in proposal.readings]
    read = [{"run_id": run.id, "ordinal": ordinal, "window_id": key} for ordinal, key in enumerate(windows)]
    insert_rows(transaction, RunWindowRow, read)
    store_verdicts(transaction, scope_id, run.id, proposal)
    return run.id


@staged(Stage.APPLY, "scope", "run_id")
def apply_run(transaction: Session, scope: Scope, run_id: int, at: datetime) -> int:
    """Let a proposed run count; return the scope's new revision.

    Raises `ScopeMoved` where the scope has changed since the run was judged, and `NotFound` where there is no such
    proposal: then nothing is changed.
    """
    run = _run(transaction, scope, run_id, *UNDECIDED)
    if revision_of(transaction, scope) != run.counts.get("revision", revision_of(transaction, scope)):
        raise ScopeMoved(f"{scope} has changed since run {run_id} was judged; judge it again")
    before = read_knowledge(transaction, scope)
    revision = _moved_on(transaction, run.scope_id)
    run.status, run.applied_at, run.applied_revision = RunStatus.APPLIED, at, revision
    transaction.add(run)
    transaction.flush()
    _follow(transaction, scope, run.scope_id, before, _latest_of(transaction, run))
    return revision


@staged(Stage.UNDO, "scope", "run_id")
def undo_run(transaction: Session, scope: Scope, run_id: int, at: datetime) -> int:
    """Leave an applied run out, as if it had never been; return the scope's new revision.

    Raises `NotFound` where there is no such applied run.
    """
    run = _run(transaction, scope, run_id, RunStatus.APPLIED)
    before, latest = read_knowledge(transaction, scope), _latest_of(transaction, run)
    revision = _moved_on(transaction, run.scope_id)
    run.status, run.undone_at = RunStatus.UNDONE, at
    transaction.add(run)
    transaction.flush()
    _follow(transaction, scope, run.scope_id, before, latest)
    return revision


def _latest_of(transaction: Session, run: RunRow) -> list[int]:
    """Return the applied runs of a run's source of which one counts, or does when the other is undone."""
    found = fetch_rows(transaction, _applied(), {"scope_id": run.scope_id, "source": run.source})
    return [one.id for one in found]


@cache
def _applied() -> Any:
    of = (col(RunRow.scope_id) == bindparam("scope_id"), col(RunRow.source) == bindparam("source"))
    found = select(RunRow.id).where(*of, RunRow.status == RunStatus.APPLIED)
    return found.order_by(col(RunRow.applied_revision).desc()).limit(2)


def _follow(transaction: Session, scope: Scope, scope_id: int, before: Knowledge, runs: Sequence[int]) -> None:
    """Lay out what hangs together with what these runs say and judge, and write its facts."""
    after, ids = knowledge_after_runs(transaction, scope, before, revision_of(transaction, scope), runs)
    touched = after.affected_ids(before, ids)
    kept: list[str] = []
    members = list(touched)
    for start in range(0, len(members), CHUNK):
        ties = fetch_rows(
            transaction, select_where_in(FactAssertionRow, "assertion_id"), {"keys": members[start : start + CHUNK]}
        )
        kept += [tie.fact_id for tie in ties]
    _write(transaction, scope_id, list(dict.fromkeys(kept)), fact_histories(*after.excerpt(touched)))


def derive_facts(transaction: Session, scope: Scope) -> None:
    """Lay out all that is live and write the facts that differ from the kept ones, whatever was held in memory."""
    row = scope_row(transaction, scope)
    if row is None or row.id is None:
        return
    live = read_knowledge(transaction, scope, afresh=True)
    kept = transaction.exec(select(FactRow.id).where(FactRow.scope_id == row.id))
    _write(transaction, row.id, list(kept), fact_histories(live.assertions, live.verdicts))


def _write(transaction: Session, scope_id: int, kept: Sequence[str], laid_out: Sequence[FactHistory]) -> None:
    """Let these courses take the place of the kept facts; rows that say the same are left as they are."""
    wanted = {course.id: course for course in laid_out}
    rows: dict[str, Values] = {}
    ties: dict[str, list[str]] = defaultdict(list)
    for start in range(0, len(kept), CHUNK):
        ids = kept[start : start + CHUNK]
        for row in fetch_rows(transaction, select_where_in(FactRow, "id"), {"keys": ids}):
            rows[row.id] = dict(row._mapping)
        members = fetch_rows(transaction, select_where_in(FactAssertionRow, "fact_id"), {"keys": ids})
        for tie in sorted(members, key=lambda tie: tie.ordinal):
            ties[tie.fact_id].append(tie.assertion_id)
    same = {
        name
        for name, course in wanted.items()
        if (rows.get(name), ties[name]) == (fact_values(course, scope_id), [one.id for one in course.members])
    }
    gone = [name for name in rows if name not in same]
    _rewrite(transaction, scope_id, gone, [course for name, course in wanted.items() if name not in same])


def _rewrite(transaction: Session, scope_id: int, gone: list[str], new: list[FactHistory]) -> None:
    for start in range(0, len(gone), CHUNK):
        ids = gone[start : start + CHUNK]
        transaction.exec(delete(FactAssertionRow).where(col(FactAssertionRow.fact_id).in_(ids)))
        transaction.exec(delete(FactRow).where(col(FactRow.id).in_(ids)))
    if new:
        insert_rows(transaction, FactRow, [fact_values(course, scope_id) for course in new])
        insert_rows(transaction, FactAssertionRow, [values for course in new for values in member_values(course)])


def reject_run(transaction: Session, scope: Scope, run_id: int) -> None:
    """Set a proposal aside for good. Raises `NotFound` where there is no such proposal."""
    run = _run(transaction, scope, run_id, *UNDECIDED)
    run.status = RunStatus.REJECTED
    transaction.add(run)
    transaction.flush()


def _run(transaction: Session, scope: Scope, run_id: int, *statuses: str) -> RunRow:
    row = scope_row(transaction, scope)
    run = transaction.get(RunRow, run_id)
    if row is None or run is None or run.scope_id != row.id:
        raise NotFound(f"no run {run_id} in {scope}; see `afterword runs`")
    if run.status not in statuses:
        raise NotFound(f"run {run_id} of {scope} is {run.status}, not {' or '.join(statuses)}")
    return run


def lock_scope(transaction: Session, scope: Scope) -> int:
    """Let every other writer of the scope wait until this transaction ends; return the key of the scope's row.

    Whoever writes words of a scope does this, whether or not they count: what was forgotten since this transaction
    began, and so unseen by it, would come back with them. Where something was, the transaction is refused.
    """
    scope_id = ensure_scope(transaction, scope)
    _moved_on(transaction, scope_id, by=0)
    return scope_id


def _moved_on(transaction: Session, scope_id: int, *, by: int = 1) -> int:
    """Count up the revision of a scope and return it. Writing it makes two writers of one scope queue up here, and not
    at their commits."""
    ((revision,),) = fetch_rows(transaction, _counting_up(), {"scope_key": scope_id, "by": by})
    row = transaction.get(ScopeRow, scope_id)
    if row is None:
        raise NotFound(f"scope {scope_id} is gone")
    set_committed_value(row, "revision", revision)
    return int(revision)


@cache
def _counting_up() -> Any:
    counted = update(ScopeRow).where(col(ScopeRow.id) == bindparam("scope_key"))
    return counted.values(revision=col(ScopeRow.revision) + bindparam("by")).returning(col(ScopeRow.revision))

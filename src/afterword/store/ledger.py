"""Functions that propose, apply, undo and reject runs, and derive the facts from the live runs.

None of them deletes an assertion. When a run is undone, the facts are derived again without it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import bindparam, delete, insert, update
from sqlmodel import Session, col, select

from afterword import telemetry
from afterword.errors import NotFound, ScopeMoved, StateConflict
from afterword.facts.fact import Fact
from afterword.facts.knowledge import Knowledge
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Transcript
from afterword.facts.validity.fact_history import FactHistory
from afterword.facts.validity.timeline import fact_histories
from afterword.privacy.prompt_injection import is_instruction
from afterword.store.access.audit import note_run
from afterword.store.database.statements import (
    chunks,
    expire_loaded_row,
    fetch_rows,
    fetch_where_in,
    insert_rows,
    select_columns,
)
from afterword.store.lookup import cache_knowledge, knowledge_after_runs, read_knowledge
from afterword.store.proposals import KnowledgeChange, Proposal, RunEffect, effect_of, store_verdicts, store_window
from afterword.store.rows import Values, fact_search_terms, fact_values, member_values, pack_transcript
from afterword.store.runs import read_run, read_runs
from afterword.store.scope_rows import (
    lock_scope,
    raise_revision,
    record_changed_facts,
    revision_and_stamp_of,
    revision_of,
    scope_key,
)
from afterword.store.tables import FactAssertionRow, FactRow, RunRow, RunWindowRow, WindowRow
from afterword.telemetry import Stage, stage, staged

_log = telemetry.logs(__name__)


class RunStatus(StrEnum):
    """The state of a run: proposed by a dry run, held for a person's approval, or decided.

    A satisfied run is no longer needed: a session says what an agent requested, a newer held run has read the same
    session, or it was approved and judged again, as another run. It is never applied itself.
    """

    PROPOSED = "proposed"
    HELD = "held"
    APPLIED = "applied"
    UNDONE = "undone"
    REJECTED = "rejected"
    SATISFIED = "satisfied"


UNDECIDED = (RunStatus.PROPOSED, RunStatus.HELD)

# Statements that run often are built only once: building one takes longer than executing it.
_NEW_RUN = insert(RunRow).returning(col(RunRow.id))
_RUN = select_columns(RunRow).where(col(RunRow.id) == bindparam("run_id"))
_CHANGED_RUN = update(RunRow).where(col(RunRow.id) == bindparam("run_id"))
_RUNS_OF_SOURCE = select(RunRow.id).where(
    col(RunRow.scope_id) == bindparam("scope_id"), col(RunRow.source) == bindparam("source")
)
_LAST_RUN = _RUNS_OF_SOURCE.where(RunRow.status != RunStatus.PROPOSED).order_by(col(RunRow.id).desc()).limit(1)
_LAST_APPLIED = (
    _RUNS_OF_SOURCE.where(RunRow.status == RunStatus.APPLIED).order_by(col(RunRow.applied_revision).desc()).limit(2)
)
_HELD_RUNS = _RUNS_OF_SOURCE.where(RunRow.status == RunStatus.HELD)
_IDS: Any = bindparam("ids", expanding=True)
_REMOVED_TIES = delete(FactAssertionRow).where(col(FactAssertionRow.fact_id).in_(_IDS))
_REMOVED_FACTS = delete(FactRow).where(col(FactRow.id).in_(_IDS))


def session_run_source(session_id: str) -> str:
    """Return the value that `source` has in the runs that read a session."""
    return f"session:{session_id}"


def last_window_keys(transaction: Session, scope: Scope, source: str) -> list[str] | None:
    """Return the keys of the windows of the last run over a source, None if there is no run. Dry runs are ignored."""
    values = {"scope_id": scope_key(transaction, scope), "source": source}
    last_runs = fetch_rows(transaction, _LAST_RUN, values)
    if not last_runs:
        return None
    query = select(WindowRow.key).where(
        col(WindowRow.id) == col(RunWindowRow.window_id), RunWindowRow.run_id == last_runs[0].id
    )
    return list(transaction.exec(query.order_by(col(RunWindowRow.ordinal))))


def propose_run(
    transaction: Session,
    proposal: Proposal,
    *,
    session_pk: int | None = None,
    is_held: bool = False,
    transcript: Transcript | None = None,
) -> int:
    """Store a proposal and return the id of its run. Nothing of it counts before it is applied.

    With `is_held` it waits for a person's approval. It then takes the place of a held run of the same source, since it
    has everything that the session has said by now. `transcript` is what a dry run has read, to be stored when the run
    is applied. `session_pk` is the key of the session that was read, None for a run of an application or a person.
    """
    if is_held:
        values = {"scope_id": scope_key(transaction, proposal.scope), "source": proposal.source}
        for row in fetch_rows(transaction, _HELD_RUNS, values):
            satisfy_run(transaction, proposal.scope, row.id)
    run_id, _ = _add_run_with_parts(
        transaction,
        proposal,
        session_pk=session_pk,
        status=RunStatus.HELD if is_held else RunStatus.PROPOSED,
        transcript=pack_transcript(transcript) if transcript else None,
    )
    return run_id


@staged(Stage.PROPOSE)
def _add_run_with_parts(transaction: Session, proposal: Proposal, **columns: Any) -> tuple[int, bool]:
    """Store a run. Return its id, and True if none of its windows, assertions and verdicts was stored before."""
    scope_id = lock_scope(transaction, proposal.scope)
    run = {
        "scope_id": scope_id,
        "source": proposal.source,
        "purpose": proposal.purpose,
        "extractor": proposal.extractor,
        "judge": proposal.judge,
        "started_at": proposal.started_at,
        "calls": proposal.calls,
        "prompt_tokens": proposal.prompt_tokens,
        "completion_tokens": proposal.completion_tokens,
        "counts": {**proposal.counts, "revision": proposal.revision},
        **columns,
    }
    run_id = int(fetch_rows(transaction, _NEW_RUN, run)[0].id)
    note_run(transaction, run_id, next((said.id for read in proposal.readings for said in read.assertions), None))
    windows = [store_window(transaction, scope_id, proposal, reading) for reading in proposal.readings]
    ties = [{"run_id": run_id, "ordinal": ordinal, "window_id": key} for ordinal, (key, _) in enumerate(windows)]
    insert_rows(transaction, RunWindowRow, ties)
    are_verdicts_new = store_verdicts(transaction, scope_id, run_id, proposal)
    return run_id, are_verdicts_new and all(is_new for _, is_new in windows)


@staged(Stage.APPLY, "scope", "run_id")
def apply_run(transaction: Session, scope: Scope, run_id: int, at: datetime) -> KnowledgeChange:
    """Apply a proposed run and return what changed.

    Raises `ScopeMoved` if the scope has changed since the run was judged, `NotFound` if there is no such run, and
    `StateConflict` if it is no proposal. After an error nothing is changed.
    """
    run = _require_run(transaction, scope, run_id, *UNDECIDED)
    before, revision = _begin_revision(transaction, scope, run.counts.get("revision"))
    _change_run(transaction, run_id, status=RunStatus.APPLIED, applied_at=at, applied_revision=revision)
    return _change_knowledge(
        transaction, scope, run.source, before, _last_applied_run_ids(transaction, scope, run.source)
    )


def propose_and_apply(
    transaction: Session,
    proposal: Proposal,
    *,
    at: datetime | None = None,
    session_pk: int | None = None,
    caused_by: int | None = None,
    expected: KnowledgeChange | None = None,
) -> tuple[int, KnowledgeChange]:
    """Store a proposal and apply it at once; return the id of its run, and what changed.

    `expected` is the change as the caller has computed it before. It is used if it starts from what is known now and no
    part of the proposal was stored before; otherwise the change is computed from the stored rows. `caused_by` is the id
    of the undone run that made this run necessary. Raises `ScopeMoved` as `apply_run` does.
    """
    scope = proposal.scope
    lock_scope(transaction, scope)
    before, revision = _begin_revision(transaction, scope, proposal.revision)
    applied = {"status": RunStatus.APPLIED, "applied_at": at or proposal.started_at, "applied_revision": revision}
    run_id, is_new = _add_run_with_parts(transaction, proposal, session_pk=session_pk, caused_by=caused_by, **applied)
    with stage(Stage.APPLY, scope=scope, run_id=run_id):
        run_ids = _last_applied_run_ids(transaction, scope, proposal.source)
        if expected is None or expected.before is not before or not is_new or run_ids != [run_id]:
            return run_id, _change_knowledge(transaction, scope, proposal.source, before, run_ids)
        cache_knowledge(transaction, scope, expected.after)
        _update_facts(transaction, scope, proposal.source, expected)
    return run_id, expected


def _begin_revision(transaction: Session, scope: Scope, judged_at: int | None) -> tuple[Knowledge, int]:
    """Raise the revision of a scope; return what was known before, and the new revision.

    Raises `ScopeMoved` unless `judged_at` is None or the present revision.
    """
    if judged_at not in (None, revision_of(transaction, scope)):
        raise ScopeMoved(f"{scope} has changed since the run was judged; judge it again")
    before = read_knowledge(transaction, scope)
    return before, raise_revision(transaction, scope_key(transaction, scope))


def propose_and_apply_with_effect(
    transaction: Session, proposal: Proposal, concerns: Callable[[Fact], bool] = lambda _: False
) -> RunEffect:
    """Store a proposal and apply it at once; return its run and the facts that changed or that `concerns` selects."""
    run_id, change = propose_and_apply(transaction, proposal)
    # No two statements have the same time, so that of the later one may be slightly ahead of the clock.
    at = max([proposal.started_at, *(assertion.said_at for assertion in proposal.assertions)])
    return effect_of(transaction, run_id, change, at, concerns)


def apply_or_hold_if_instruction(
    transaction: Session, proposal: Proposal, concerns: Callable[[Fact], bool] = lambda _: False
) -> RunEffect:
    """Store and apply a proposal with new words of an application or a person; hold it if it reads like an instruction.

    A held run waits for a review. If an equal run is held already, that run is returned.
    """
    said = proposal.assertions
    if not any(is_instruction(each.subject, each.attribute, each.value, each.statement) for each in said):
        return propose_and_apply_with_effect(transaction, proposal, concerns)
    for run in read_runs(transaction, proposal.scope, statuses=[RunStatus.HELD]):
        if proposal.is_same_as(transaction, run):
            return RunEffect(run)
    message = "an entry of %s reads like an instruction to an assistant: see `afterword review`"
    _log.warning(message, telemetry.scope_mark(proposal.scope))
    held = propose_run(transaction, replace(proposal, counts={"quarantined": 1}), is_held=True)
    return RunEffect(read_run(transaction, held))


@staged(Stage.UNDO, "scope", "run_id")
def revert_run(transaction: Session, scope: Scope, run_id: int, at: datetime) -> KnowledgeChange:
    """Undo an applied run, as if it had never been applied; return what changed.

    Raises `NotFound` if there is no such run, and `StateConflict` if it is not applied.
    """
    run = _require_run(transaction, scope, run_id, RunStatus.APPLIED)
    last_applied = _last_applied_run_ids(transaction, scope, run.source)
    before, _ = _begin_revision(transaction, scope, None)
    _change_run(transaction, run_id, status=RunStatus.UNDONE, undone_at=at, redone_at=None)
    return _change_knowledge(transaction, scope, run.source, before, last_applied)


@staged(Stage.REDO, "scope", "run_id")
def reinstate_run(transaction: Session, scope: Scope, run_id: int, at: datetime) -> KnowledgeChange:
    """Apply an undone run again, as if it had never been undone; return what changed.

    A later run over the same source still takes precedence. Raises `NotFound` if there is no such run, and
    `StateConflict` if it is not undone.
    """
    run = _require_run(transaction, scope, run_id, RunStatus.UNDONE)
    before, _ = _begin_revision(transaction, scope, None)
    _change_run(transaction, run_id, status=RunStatus.APPLIED, redone_at=at)
    return _change_knowledge(
        transaction, scope, run.source, before, _last_applied_run_ids(transaction, scope, run.source)
    )


def reject_run(transaction: Session, scope: Scope, run_id: int) -> None:
    """Reject a proposal for good. Raises `NotFound` if there is no such run, `StateConflict` if it is no proposal."""
    _require_run(transaction, scope, run_id, *UNDECIDED)
    _change_run(transaction, run_id, status=RunStatus.REJECTED)


def satisfy_run(transaction: Session, scope: Scope, run_id: int) -> None:
    """Mark a proposal as no longer needed. Raises `NotFound` if there is no such run, `StateConflict` if it is none."""
    _require_run(transaction, scope, run_id, *UNDECIDED)
    _change_run(transaction, run_id, status=RunStatus.SATISFIED)


def _require_run(transaction: Session, scope: Scope, run_id: int, *statuses: str) -> Any:
    """Return the row of a run as it is now.

    Raises `NotFound` if the scope has no such run, and `StateConflict` if the run has none of these statuses.
    """
    rows = fetch_rows(transaction, _RUN, {"run_id": run_id})
    if not rows or rows[0].scope_id != scope_key(transaction, scope):
        raise NotFound(f"no run {run_id} in {scope}; see `afterword runs`")
    (run,) = rows
    if run.status not in statuses:
        is_needless = run.status == RunStatus.SATISFIED
        cause = ": another run says the same" if is_needless else f", not {' or '.join(statuses)}"
        raise StateConflict(f"run {run_id} of {scope} is {run.status}{cause}")
    return run


def _change_run(transaction: Session, run_id: int, **values: Any) -> None:
    transaction.connection().execute(_CHANGED_RUN, {"run_id": run_id, **values})
    expire_loaded_row(transaction, RunRow, run_id)


def _last_applied_run_ids(transaction: Session, scope: Scope, source: str) -> list[int]:
    """Return the last two applied runs of a source: the live one, and the one that becomes live if that is undone."""
    values = {"scope_id": scope_key(transaction, scope), "source": source}
    return [row.id for row in fetch_rows(transaction, _LAST_APPLIED, values)]


def _change_knowledge(
    transaction: Session, scope: Scope, source: str, before: Knowledge, run_ids: Sequence[int]
) -> KnowledgeChange:
    """Read what is known after these runs of a source were applied or undone; derive the facts again."""
    after, ids = knowledge_after_runs(transaction, scope, before, revision_of(transaction, scope), run_ids)
    change = KnowledgeChange(before, after, frozenset(after.affected_ids(before, ids)))
    _update_facts(transaction, scope, source, change)
    return change


def _update_facts(transaction: Session, scope: Scope, source: str, change: KnowledgeChange) -> None:
    """Derive the facts again that a change of knowledge may concern, and record which of them have changed."""
    before, after, affected_ids = change.before, change.after, change.affected_ids
    # An assertion that was not live before belongs to no stored fact.
    former_ids = [id_ for id_ in affected_ids if id_ in before.by_id]
    ties = fetch_where_in(transaction, FactAssertionRow, "assertion_id", former_ids)
    stored_ids = list(dict.fromkeys(tie.fact_id for tie in ties))
    histories = after.histories(affected_ids)
    scope_id = scope_key(transaction, scope)
    linked_before = {tie.assertion_id for tie in ties}
    linked_after = {member.id for history in histories for member in history.members}
    is_unlinked = any(
        (id_ in after.by_id and id_ not in linked_after) or (id_ in before.by_id and id_ not in linked_before)
        for id_ in affected_ids
    )
    fact_ids = _replace_facts(transaction, scope_id, stored_ids, histories)
    version = revision_and_stamp_of(transaction, scope)
    record_changed_facts(transaction, scope_id, version, source=source, fact_ids=fact_ids, is_unlinked=is_unlinked)


def derive_and_store_facts(transaction: Session, scope: Scope) -> set[str]:
    """Derive all facts of a scope from what is stored, and write those that differ. Caches are bypassed.

    Returns the ids of the facts that were written or removed.
    """
    scope_id = scope_key(transaction, scope)
    live = read_knowledge(transaction, scope, afresh=True)
    stored_ids = list(transaction.exec(select(FactRow.id).where(FactRow.scope_id == scope_id)))
    return _replace_facts(transaction, scope_id, stored_ids, fact_histories(live.assertions, live.verdicts))


def _replace_facts(
    transaction: Session, scope_id: int, stored_ids: Sequence[str], histories: Sequence[FactHistory]
) -> set[str]:
    """Store the facts of `histories`, and remove those of `stored_ids` that are not among them.

    Facts that stay the same are not written. Returns the ids of the facts that were written or removed.
    """
    stored = _stored_facts(transaction, stored_ids)
    changed = [
        history
        for history in histories
        if stored.get(history.id) != (fact_values(history, scope_id), [member.id for member in history.members])
    ]
    unchanged_ids = {history.id for history in histories} - {history.id for history in changed}
    removed_ids = [fact_id for fact_id in stored if fact_id not in unchanged_ids]
    for ids in chunks(removed_ids):
        for statement in _REMOVED_TIES, _REMOVED_FACTS:
            transaction.connection().execute(statement, {"ids": ids})
    new_rows = [{**fact_values(history, scope_id), "search_terms": fact_search_terms(history)} for history in changed]
    insert_rows(transaction, FactRow, new_rows)
    insert_rows(transaction, FactAssertionRow, [values for history in changed for values in member_values(history)])
    return {*removed_ids, *(history.id for history in changed)}


def _stored_facts(transaction: Session, ids: Sequence[str]) -> dict[str, tuple[Values, list[str]]]:
    """Return the columns of each of these stored facts, and the ids of its assertions in order, by its id.

    The search terms are left out. They are computed from the other columns, so they need no comparison.
    """
    members: dict[str, list[str]] = defaultdict(list)
    ties = fetch_where_in(transaction, FactAssertionRow, "fact_id", ids)
    for tie in sorted(ties, key=lambda tie: tie.ordinal):
        members[tie.fact_id].append(tie.assertion_id)
    return {
        row.id: ({name: value for name, value in row._mapping.items() if name != "search_terms"}, members[row.id])
        for row in fetch_where_in(transaction, FactRow, "id", ids)
    }

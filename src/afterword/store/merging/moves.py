"""Moving everything that is stored of one scope into another, and finding where the sessions of a scope were before.

Scopes are merged and renamed this way, by a run that can be undone. Nothing is copied: sessions, runs and assertions
get another scope and keep their ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import and_, delete, or_, update
from sqlmodel import Session, SQLModel, col, func, select

from afterword.errors import NotFound, StateConflict
from afterword.facts.scopes import Scope
from afterword.store import ledger, scope_rows
from afterword.store.access.keys import move_api_keys, move_api_keys_back
from afterword.store.database.statements import chunks, insert_rows
from afterword.store.findings.finding_rows import FindingRow, findings_run_source
from afterword.store.forgetting.hash_keys import read_hash_keys
from afterword.store.forgetting.seen_turn_rows import copy_seen_turns
from afterword.store.runs import RENAME
from afterword.store.tables import (
    AssertionRow,
    EvidenceRow,
    ImportedRunRow,
    MovedSourceRow,
    RunRow,
    ScopeRow,
    SessionRow,
    SpendingRow,
    VectorRow,
    VerdictRow,
    WindowAssertionRow,
    WindowRow,
)

_SESSION, _FINDINGS = ledger.session_run_source(""), findings_run_source("")
WHOLE_SCOPE = ""
"""Stands for the scope itself among the sources that a run has moved. It is recorded even if there are no sources."""


def has_moves_condition(scope_id: int) -> Any:
    """Return the condition of a query that something was ever moved into this scope or out of it."""
    query = select(MovedSourceRow.run_id).join(RunRow, col(RunRow.id) == col(MovedSourceRow.run_id))
    is_concerned = or_(col(RunRow.scope_id) == scope_id, col(MovedSourceRow.former_scope_id) == scope_id)
    return query.where(is_concerned).exists()


def scopes_merged_into(transaction: Session, scope_id: int) -> dict[Scope, datetime]:
    """Return the scopes that were merged or renamed into a scope, each with the time when that was last applied."""
    query = (
        select(MovedSourceRow.former_scope_id, RunRow.applied_at, RunRow.redone_at)
        .join(RunRow, col(RunRow.id) == col(MovedSourceRow.run_id))
        .where(RunRow.scope_id == scope_id, RunRow.status == "applied")
    )
    merged: dict[Scope, datetime] = {}
    for former_id, applied_at, redone_at in transaction.exec(query.distinct()).all():
        scope, merged_at = scope_rows.scope_of_row(transaction.get_one(ScopeRow, former_id)), redone_at or applied_at
        if merged_at is not None:
            merged[scope] = max(merged_at, merged.get(scope, merged_at))
    return merged


def present_and_former_names(transaction: Session, scope: Scope) -> set[Scope]:
    """Return a scope and the other names that it was given and has had, also by renames that were undone since."""
    query = (
        select(RunRow.scope_id, MovedSourceRow.former_scope_id)
        .join(MovedSourceRow, col(RunRow.id) == col(MovedSourceRow.run_id))
        .where(RunRow.purpose == RENAME)
        .distinct()
    )
    names, new = set[int](), {scope_rows.scope_key(transaction, scope)}
    while new:
        names |= new
        of_new = query.where(or_(col(RunRow.scope_id).in_(new), col(MovedSourceRow.former_scope_id).in_(new)))
        new = {key for pair in transaction.exec(of_new).all() for key in pair} - names
    rows = (transaction.get(ScopeRow, key) for key in names)
    return {scope, *scope.other_forms, *(scope_rows.scope_of_row(row) for row in rows if row)}


def session_names_elsewhere(
    transaction: Session, scope_id: int, *, outgoing_statuses: Sequence[str] = ("applied", "undone")
) -> dict[str, list[tuple[Scope, str]]]:
    """Return, for each session of a scope, the other scopes in which it was stored, with the id that it had there.

    A session was in another scope before that scope was merged into this one, or while this one was merged into it.
    Of the runs that merged this scope into others, only those with one of the `outgoing_statuses` count. While such a
    run is applied, a session of this scope with that id was stored later: it is another session.
    """
    moved = select(MovedSourceRow, ScopeRow, RunRow.scope_id).where(col(RunRow.id) == col(MovedSourceRow.run_id))
    incoming = moved.where(
        RunRow.scope_id == scope_id, RunRow.status == "applied", col(ScopeRow.id) == col(MovedSourceRow.former_scope_id)
    )
    outgoing = moved.where(
        MovedSourceRow.former_scope_id == scope_id,
        col(RunRow.status).in_(outgoing_statuses),
        col(ScopeRow.id) == col(RunRow.scope_id),
    )
    names: dict[str, list[tuple[Scope, str]]] = {}
    for source, other_scope, owner_id in (*transaction.exec(incoming), *transaction.exec(outgoing)):
        here, there = source.source, source.former_source
        # After a merge there and back, this scope also owns the run by which it was merged into the other one.
        if owner_id != scope_id:
            here, there = there, here
        if here.startswith(_SESSION):
            name = scope_rows.scope_of_row(other_scope), there.removeprefix(_SESSION)
            names.setdefault(here.removeprefix(_SESSION), []).append(name)
    return names


def former_session_names(
    transaction: Session, scope_id: int, session_ids: Sequence[str]
) -> dict[str, list[tuple[Scope, str]]]:
    """Return, for each of these sessions, the other scopes in which it may have been stored, with its id there.

    If a session was stored here only after another scope was merged into this one, a session with the same id may have
    been forgotten in that scope before.
    """
    names = session_names_elsewhere(transaction, scope_id)
    merged = scopes_merged_into(transaction, scope_id)
    if not merged:
        return names
    moved = {name for elsewhere in names.values() for name in elsewhere}
    first_stored_at = _first_stored_at(transaction, scope_id, session_ids)
    former = dict(names)
    for session_id in session_ids:
        stored_at = first_stored_at.get(session_id)
        older = [scope for scope, merged_at in merged.items() if stored_at is None or stored_at > merged_at]
        unmoved = [(scope, session_id) for scope in older if (scope, session_id) not in moved]
        former[session_id] = [*names.get(session_id, ()), *unmoved]
    return former


def _first_stored_at(transaction: Session, scope_id: int, session_ids: Sequence[str]) -> dict[str, datetime]:
    """Return when each of these sessions was first stored: at its first run, or without a run at its last change."""
    first_run = select(func.min(RunRow.started_at)).where(
        RunRow.scope_id == scope_id, RunRow.source == _SESSION + col(SessionRow.session_id)
    )
    query = select(SessionRow.session_id, SessionRow.updated_at, first_run.scalar_subquery())
    query = query.where(SessionRow.scope_id == scope_id)
    return {
        session_id: first_run_at or updated_at
        for chunk in chunks(session_ids)
        for session_id, updated_at, first_run_at in transaction.exec(query.where(col(SessionRow.session_id).in_(chunk)))
    }


@dataclass(frozen=True, slots=True)
class MovedSource:
    """A source that moves to another scope, with its old name and its name in the new scope."""

    old: str
    new: str


def move_everything(transaction: Session, scope: Scope, into: Scope) -> list[MovedSource]:
    """Move everything that is stored of a scope into another one; return the sources that moved.

    If the other scope has a session with the same id, the name of the former scope is appended to the id. Raises
    `NotFound` if nothing was ever stored for the scope, and `StateConflict` if both are the same scope or belong to
    different tenants.
    """
    if scope == into or scope.tenant != into.tenant:
        raise StateConflict(f"{scope} cannot be moved into {into}: give two scopes of one tenant")
    if not scope_rows.scope_key(transaction, scope):
        raise NotFound(f"nothing was ever stored for {scope}")
    scope_id, into_id = _lock_scopes(transaction, scope, into)
    same_names = [MovedSource(source, source) for source in sorted(_read_sources(transaction, scope_id))]
    moved = _with_free_names(same_names, scope, _read_sources(transaction, into_id))
    _move_rows(transaction, scope_id, into_id, moved)
    _copy_seen_turns(transaction, scope, into, moved)
    _derive_again(transaction, scope, into)
    return moved


def has_movable_sources(transaction: Session, scope: Scope) -> bool:
    """Return whether a scope has sessions, runs or windows that could be moved."""
    return bool(_read_sources(transaction, scope_rows.scope_key(transaction, scope)))


def record_move_and_reassign_api_keys(
    transaction: Session, run_id: int, scope: Scope, into: Scope, moved: Sequence[MovedSource]
) -> None:
    """Record which sources a run moved into another scope, and let the API keys of the former scope open that one."""
    move_api_keys(transaction, run_id, scope, into)
    former_id = scope_rows.scope_key(transaction, scope)
    rows = [
        {"run_id": run_id, "source": source.new, "former_source": source.old, "former_scope_id": former_id}
        for source in (MovedSource(WHOLE_SCOPE, WHOLE_SCOPE), *moved)
    ]
    insert_rows(transaction, MovedSourceRow, rows)


def copy_settings(transaction: Session, scope: Scope, into: Scope, *, is_rename: bool) -> None:
    """Copy the settings of a renamed scope to its new name. A merge copies only a pause, unless the target has one."""
    former, row = scope_rows.scope_row(transaction, scope), scope_rows.scope_row(transaction, into)
    if former is None or row is None:
        return
    names = ("policy", "zone", "findings", "other_people") if is_rename else ()
    paused = row if row.paused_at else former
    pause = {"paused_at": paused.paused_at, "sessions_not_kept": paused.sessions_not_kept}
    scope_rows.change_scope(transaction, row.id, **pause, **{name: getattr(former, name) for name in names})


def move_sources_of_run(transaction: Session, into: Scope, run_id: int, *, is_back: bool) -> None:
    """Move the sources that a run moved back to their former scope (`is_back`), or move them once more.

    What was stored for these sources since moves as well, and what was forgotten since stays forgotten. Raises
    `StateConflict` if the run was made in another store.
    """
    _check_made_here(transaction, run_id)
    rows = list(transaction.exec(select(MovedSourceRow).where(MovedSourceRow.run_id == run_id)))
    if not rows:
        return  # an older version made the run and did not record WHOLE_SCOPE, and all its sources were forgotten since
    scope = scope_rows.scope_of_row(transaction.get_one(ScopeRow, rows[0].former_scope_id))
    origin, target = (into, scope) if is_back else (scope, into)
    origin_id, target_id = _lock_scopes(transaction, origin, target)
    rows = [row for row in rows if row.source != WHOLE_SCOPE]
    pairs = [(row.source, row.former_source) if is_back else (row.former_source, row.source) for row in rows]
    moved = _with_free_names((MovedSource(*pair) for pair in pairs), origin, _read_sources(transaction, target_id))
    for row, source in zip(rows, moved, strict=True):
        # A source may get another name than before, if another source has taken its name meanwhile.
        _update_moved_source(transaction, row, {"former_source" if is_back else "source": source.new})
    _move_rows(transaction, origin_id, target_id, moved)
    (move_api_keys_back if is_back else move_api_keys)(transaction, run_id, scope, into)
    _copy_seen_turns(transaction, origin, target, moved)
    _derive_again(transaction, origin, target)
    is_rename = transaction.get_one(RunRow, run_id).purpose == RENAME
    copy_settings(transaction, origin, target, is_rename=is_rename)


def _update_moved_source(transaction: Session, row: MovedSourceRow, names: Mapping[str, str]) -> None:
    is_row = and_(col(MovedSourceRow.run_id) == row.run_id, col(MovedSourceRow.source) == row.source)
    _update_rows(transaction, MovedSourceRow, is_row, names)


def _check_made_here(transaction: Session, run_id: int) -> None:
    is_imported = select(ImportedRunRow.run_id).where(ImportedRunRow.run_id == run_id).limit(1)
    if transaction.exec(is_imported).first() is not None:
        raise StateConflict(f"run {run_id} was made in another store, and only there it can be undone and redone")


def _copy_seen_turns(transaction: Session, origin: Scope, target: Scope, moved: Iterable[MovedSource]) -> None:
    """Copy which turns were seen in the moved sessions. The former names may be used again."""
    names = [
        ((origin, source.old.removeprefix(_SESSION)), (target, source.new.removeprefix(_SESSION)))
        for source in moved
        if source.old.startswith(_SESSION)
    ]
    copy_seen_turns(transaction, names, scope_rows.scope_key(transaction, target), read_hash_keys(transaction))


def _lock_scopes(transaction: Session, scope: Scope, into: Scope) -> tuple[int, int]:
    """Lock both scopes, always in the same order, so that two moves cannot block each other; return their keys."""
    keys = {each: scope_rows.lock_scope(transaction, each) for each in sorted((scope, into))}
    return keys[scope], keys[into]


def _derive_again(transaction: Session, origin: Scope, target: Scope) -> None:
    """Derive the facts of both scopes again. `origin` comes first, because a fact can have a row in one scope only.

    The moved runs keep the revisions of `origin` at which they were applied. So the revision of `target` is raised
    above them. Otherwise a later run of a moved session would count as the earlier run.
    """
    transaction.expunge_all()  # its objects do not reflect the changed rows
    ahead = scope_rows.revision_of(transaction, origin) - scope_rows.revision_of(transaction, target)
    for scope, by in ((origin, 1), (target, max(ahead, 0) + 1)):
        scope_rows.raise_revision(transaction, scope_rows.scope_key(transaction, scope), by=by)
        ledger.derive_and_store_facts(transaction, scope)


def _read_sources(transaction: Session, scope_id: int) -> set[str]:
    sources = {*transaction.exec(select(RunRow.source).where(RunRow.scope_id == scope_id).distinct())}
    sources |= {*transaction.exec(select(WindowRow.source).where(WindowRow.scope_id == scope_id).distinct())}
    ids = transaction.exec(select(SessionRow.session_id).where(SessionRow.scope_id == scope_id))
    return sources | {ledger.session_run_source(session_id) for session_id in ids}


def _with_free_names(sources: Iterable[MovedSource], origin: Scope, taken: set[str]) -> list[MovedSource]:
    """Return the sources with new names that are not taken. The id of `origin` is appended to a name that is taken."""
    return _rename_findings_with_sessions(
        [
            source if source.new not in taken else MovedSource(source.old, _free_name(source.new, origin.id, taken))
            for source in sources
        ]
    )


def _rename_findings_with_sessions(sources: Sequence[MovedSource]) -> list[MovedSource]:
    """Return the sources. Each source of findings gets the new session id of the session in which they were found."""
    sessions = {source.old.removeprefix(_SESSION): source.new.removeprefix(_SESSION) for source in sources}
    return [
        MovedSource(source.old, f"{_FINDINGS}{sessions[source.old.removeprefix(_FINDINGS)]}")
        if source.old.startswith(_FINDINGS) and source.old.removeprefix(_FINDINGS) in sessions
        else source
        for source in sources
    ]


def _free_name(source: str, name: str, taken: set[str]) -> str:
    """Return the source with a name in parentheses behind it, and a number if that is taken as well."""
    number, candidate = 1, f"{source} ({name})"
    while candidate in taken:
        number += 1
        candidate = f"{source} ({name} {number})"
    return candidate


def _move_rows(transaction: Session, scope_id: int, into_id: int, moved: Sequence[MovedSource]) -> None:
    """Move the rows of these sources to another scope. Facts and vectors are not moved, but made again."""
    transaction.exec(delete(VectorRow).where(col(VectorRow.scope_id) == scope_id))
    for source in moved:
        _move_source(transaction, scope_id, into_id, source)
    own = select(AssertionRow.id).where(AssertionRow.scope_id == into_id)
    ends = and_(col(VerdictRow.earlier_id).in_(own), col(VerdictRow.later_id).in_(own))
    _update_rows(transaction, VerdictRow, and_(col(VerdictRow.scope_id) == scope_id, ends), {"scope_id": into_id})


def _move_source(transaction: Session, scope_id: int, into_id: int, source: MovedSource) -> None:
    place: dict[str, Any] = {"scope_id": into_id}
    is_session, is_of_findings = source.old.startswith(_SESSION), source.old.startswith(_FINDINGS)
    old_id, new_id = source.old.removeprefix(_SESSION), source.new.removeprefix(_SESSION)
    windows = select(WindowRow.id).where(WindowRow.scope_id == scope_id, WindowRow.source == source.old)
    said = select(WindowAssertionRow.assertion_id).where(col(WindowAssertionRow.window_id).in_(windows))
    session = {"session_id": source.new.removeprefix(_FINDINGS)} if is_of_findings else {}
    _update_rows(transaction, FindingRow, col(FindingRow.window_id).in_(windows), {**place, **session})
    _update_rows(transaction, AssertionRow, col(AssertionRow.id).in_(said), place)
    if is_session and old_id != new_id:
        _rename_session_of_assertions(transaction, said, old_id, new_id)
    _have_runs_judged_again(transaction, scope_id, source.old)
    for table in (WindowRow, RunRow, SpendingRow):
        of_source = and_(col(table.scope_id) == scope_id, col(table.source) == source.old)
        _update_rows(transaction, table, of_source, {**place, "source": source.new})
    if is_session:
        of_session = and_(col(SessionRow.scope_id) == scope_id, col(SessionRow.session_id) == old_id)
        _update_rows(transaction, SessionRow, of_session, {**place, "session_id": new_id})


def _rename_session_of_assertions(transaction: Session, assertion_ids: Any, old_id: str, new_id: str) -> None:
    of_session = and_(col(AssertionRow.id).in_(assertion_ids), col(AssertionRow.session_id) == old_id)
    _update_rows(transaction, AssertionRow, of_session, {"session_id": new_id})
    cited = and_(col(EvidenceRow.assertion_id).in_(assertion_ids), col(EvidenceRow.session_id) == old_id)
    _update_rows(transaction, EvidenceRow, cited, {"session_id": new_id})


def _have_runs_judged_again(transaction: Session, scope_id: int, source: str) -> None:
    """Change the waiting runs of a source, so that each is judged again in its new scope before it is applied."""
    waiting = select(RunRow).where(RunRow.scope_id == scope_id, RunRow.source == source)
    for run in transaction.exec(waiting.where(col(RunRow.status).in_(ledger.UNDECIDED))):
        run.counts = {**run.counts, "revision": -1}
        transaction.add(run)
    transaction.flush()


def _update_rows(transaction: Session, table: type[SQLModel], where: Any, values: Mapping[str, Any]) -> None:
    transaction.connection().execute(update(table).where(where).values(**values))

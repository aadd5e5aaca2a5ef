"""Lists which columns of each table may hold a user's words, and which rows belong to a scope, session or statement.

Rows are deleted in the order of this list. A test fails if a table is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, or_
from sqlmodel import SQLModel, col, select

from afterword.store.access.tables import (
    ApiKeyRow,
    AuditedRunRow,
    AuditEntryRow,
    MovedKeyRow,
    RepeatableRequestRow,
    WebhookPostRow,
    WebhookRow,
)
from afterword.store.access.webhooks import event_key_prefix
from afterword.store.findings.finding_rows import FindingRow, findings_run_source
from afterword.store.forgetting.tables import SeenSessionRow, TombstoneKeyRow, TombstoneRow
from afterword.store.jobs import JobRow
from afterword.store.ledger import RunStatus, session_run_source
from afterword.store.merging.moves import WHOLE_SCOPE
from afterword.store.tables import (
    AssertionRow,
    EvidenceRow,
    FactAssertionRow,
    FactRow,
    ImportedRunRow,
    MovedSourceRow,
    RejectionRow,
    RunRow,
    RunVerdictRow,
    RunWindowRow,
    ScopeChangeRow,
    ScopeRow,
    SessionRow,
    SpendingRow,
    StateRow,
    TurnRow,
    VectorRow,
    VerdictRow,
    WindowAssertionRow,
    WindowRow,
)

Clause = ColumnElement[bool]


@dataclass(frozen=True, slots=True)
class SessionKeys:
    """The keys by which rows refer to a session. `key` is 0 if only a dry run has read the session."""

    scope_id: int
    key: int
    session_id: str

    @property
    def source(self) -> str:
        """The source of the runs that extracted facts from the session."""
        return session_run_source(self.session_id)

    @property
    def sources(self) -> tuple[str, str]:
        """The sources of all runs of the session: one for its facts, one for the findings of its agents."""
        return self.source, findings_run_source(self.session_id)


@dataclass(frozen=True, slots=True)
class ErasableTable:
    """A table. `words` are its columns that may hold a user's words, `names` its other columns of text.

    `of_scope`, `of_session` and `of_statements` return the condition of the rows that are deleted with a scope, a
    session or statements; None if no rows are. If the table `is_derived`, its rows are deleted whenever anything of
    their scope is forgotten, and then derived again from the remaining rows.
    """

    table: type[SQLModel]
    words: tuple[str, ...]
    names: tuple[str, ...] = ()
    of_scope: Callable[[int], Clause] | None = None
    of_session: Callable[[SessionKeys], Clause] | None = None
    of_statements: Callable[[Sequence[str]], Clause] | None = None
    is_derived: bool = False


def _ids_of_scope(table: Any, scope_id: int) -> Select[Any]:
    return select(table.id).where(table.scope_id == scope_id)


def _undone_run_ids() -> Select[Any]:
    return select(RunRow.id).where(RunRow.status == RunStatus.UNDONE)


def _is_moved_back(scope_id: int) -> Clause:
    """Return the condition of the sources that a merge moved out of a scope and that its undoing moved back."""
    return and_(col(MovedSourceRow.former_scope_id) == scope_id, col(MovedSourceRow.run_id).in_(_undone_run_ids()))


def _session_run_ids(session: SessionKeys) -> Select[Any]:
    return _ids_of_scope(RunRow, session.scope_id).where(
        or_(col(RunRow.source).in_(session.sources), col(RunRow.session_pk) == session.key)
    )


def _session_window_ids(session: SessionKeys) -> Select[Any]:
    return _ids_of_scope(WindowRow, session.scope_id).where(col(WindowRow.source).in_(session.sources))


def _session_assertion_ids(session: SessionKeys) -> Select[Any]:
    return _ids_of_scope(AssertionRow, session.scope_id).where(col(AssertionRow.session_id) == session.session_id)


def _is_verdict_on(statements: Any) -> Clause:
    return or_(col(VerdictRow.earlier_id).in_(statements), col(VerdictRow.later_id).in_(statements))


def _verdict_keys_on(statements: Any) -> Select[Any]:
    return select(VerdictRow.key).where(_is_verdict_on(statements))


def _audit_entry_ids(scope_id: int) -> Select[Any]:
    long_form = col(ScopeRow.tenant) + "/" + col(ScopeRow.kind) + "/" + col(ScopeRow.name)
    named = select(long_form).where(ScopeRow.id == scope_id).scalar_subquery()
    return select(AuditEntryRow.id).where(col(AuditEntryRow.scope) == named)


ERASABLE_TABLES: tuple[ErasableTable, ...] = (
    ErasableTable(
        VectorRow,
        ("content",),
        ("model", "key"),
        of_scope=lambda scope: col(VectorRow.scope_id) == scope,
        is_derived=True,
    ),
    ErasableTable(
        FactAssertionRow,
        (),
        ("fact_id", "assertion_id"),
        of_scope=lambda scope: col(FactAssertionRow.fact_id).in_(select(FactRow.id).where(FactRow.scope_id == scope)),
        is_derived=True,
    ),
    ErasableTable(
        FactRow,
        ("subject_key", "attribute_key", "may_be", "rewordings", "search_terms"),
        ("id", "lead_id", "spans", "undone_as", "undone_by", "contested_by", "exceptions"),
        of_scope=lambda scope: col(FactRow.scope_id) == scope,
        is_derived=True,
    ),
    ErasableTable(
        RunVerdictRow,
        (),
        ("verdict_key",),
        of_scope=lambda scope: or_(
            col(RunVerdictRow.run_id).in_(_ids_of_scope(RunRow, scope)),
            col(RunVerdictRow.verdict_key).in_(_verdict_keys_on(_ids_of_scope(AssertionRow, scope))),
        ),
        of_session=lambda session: or_(
            col(RunVerdictRow.run_id).in_(_session_run_ids(session)),
            col(RunVerdictRow.verdict_key).in_(_verdict_keys_on(_session_assertion_ids(session))),
        ),
        of_statements=lambda ids: col(RunVerdictRow.verdict_key).in_(_verdict_keys_on(ids)),
    ),
    ErasableTable(
        VerdictRow,
        ("reason", "remainder"),
        ("key", "earlier_id", "later_id", "relation", "judge", "extent"),
        # An undone merge leaves verdicts between statements of two scopes.
        of_scope=lambda scope: or_(
            col(VerdictRow.scope_id) == scope, _is_verdict_on(_ids_of_scope(AssertionRow, scope))
        ),
        of_session=lambda session: _is_verdict_on(_session_assertion_ids(session)),
        of_statements=_is_verdict_on,
    ),
    ErasableTable(
        RunWindowRow,
        (),
        of_scope=lambda scope: col(RunWindowRow.run_id).in_(_ids_of_scope(RunRow, scope)),
        of_session=lambda session: or_(
            col(RunWindowRow.run_id).in_(_session_run_ids(session)),
            col(RunWindowRow.window_id).in_(_session_window_ids(session)),
        ),
    ),
    ErasableTable(
        RejectionRow,
        ("statement", "detail"),
        ("reason",),
        of_scope=lambda scope: col(RejectionRow.window_id).in_(_ids_of_scope(WindowRow, scope)),
        of_session=lambda session: col(RejectionRow.window_id).in_(_session_window_ids(session)),
    ),
    ErasableTable(
        WindowAssertionRow,
        (),
        ("assertion_id",),
        of_scope=lambda scope: col(WindowAssertionRow.window_id).in_(_ids_of_scope(WindowRow, scope)),
        of_session=lambda session: or_(
            col(WindowAssertionRow.window_id).in_(_session_window_ids(session)),
            col(WindowAssertionRow.assertion_id).in_(_session_assertion_ids(session)),
        ),
        of_statements=lambda ids: col(WindowAssertionRow.assertion_id).in_(ids),
    ),
    ErasableTable(
        EvidenceRow,
        ("quote", "speaker"),
        ("assertion_id", "kind", "session_id"),
        of_scope=lambda scope: col(EvidenceRow.assertion_id).in_(_ids_of_scope(AssertionRow, scope)),
        of_session=lambda session: col(EvidenceRow.assertion_id).in_(_session_assertion_ids(session)),
        of_statements=lambda ids: col(EvidenceRow.assertion_id).in_(ids),
    ),
    ErasableTable(
        AssertionRow,
        (
            *("subject", "attribute", "subject_key", "attribute_key", "value", "statement"),
            *("speaker", "limited_to", "outcome", "tags", "former_name"),
        ),
        ("id", "session_id", "act", "kind", "cue"),
        of_scope=lambda scope: col(AssertionRow.scope_id) == scope,
        of_session=lambda session: col(AssertionRow.id).in_(_session_assertion_ids(session)),
        of_statements=lambda ids: col(AssertionRow.id).in_(ids),
    ),
    ErasableTable(
        FindingRow,
        ("agent", "topic", "statement", "source", "evidence"),
        ("id", "session_id", "review"),
        of_scope=lambda scope: col(FindingRow.scope_id) == scope,
        of_session=lambda session: col(FindingRow.window_id).in_(_session_window_ids(session)),
    ),
    ErasableTable(
        WindowRow,
        (),
        ("source", "key"),
        of_scope=lambda scope: col(WindowRow.scope_id) == scope,
        of_session=lambda session: col(WindowRow.id).in_(_session_window_ids(session)),
    ),
    ErasableTable(
        MovedSourceRow,
        (),
        ("source", "former_source"),
        # The row of the whole scope is kept, because the run could not be redone without it.
        of_scope=lambda scope: or_(
            col(MovedSourceRow.run_id).in_(_ids_of_scope(RunRow, scope)),
            and_(_is_moved_back(scope), col(MovedSourceRow.source) != WHOLE_SCOPE),
        ),
        # If a merge was undone, `former_source` names the sessions as they are called here.
        of_session=lambda session: or_(
            and_(
                col(MovedSourceRow.run_id).in_(_ids_of_scope(RunRow, session.scope_id)),
                col(MovedSourceRow.run_id).not_in(_undone_run_ids()),
                col(MovedSourceRow.source).in_(session.sources),
            ),
            and_(_is_moved_back(session.scope_id), col(MovedSourceRow.former_source).in_(session.sources)),
        ),
    ),
    ErasableTable(
        ImportedRunRow,
        (),
        ("origin",),
        of_scope=lambda scope: col(ImportedRunRow.run_id).in_(_ids_of_scope(RunRow, scope)),
        of_session=lambda session: col(ImportedRunRow.run_id).in_(_session_run_ids(session)),
    ),
    ErasableTable(
        AuditedRunRow,
        (),
        ("assertion_id",),
        of_scope=lambda scope: col(AuditedRunRow.run_id).in_(_ids_of_scope(RunRow, scope)),
    ),
    ErasableTable(
        RunRow,
        ("transcript",),
        ("source", "purpose", "status", "extractor", "judge", "counts"),
        of_scope=lambda scope: col(RunRow.scope_id) == scope,
        of_session=lambda session: col(RunRow.id).in_(_session_run_ids(session)),
    ),
    ErasableTable(
        StateRow,
        ("content",),
        ("component",),
        of_scope=lambda scope: col(StateRow.session_pk).in_(_ids_of_scope(SessionRow, scope)),
        of_session=lambda session: col(StateRow.session_pk) == session.key,
    ),
    ErasableTable(
        TurnRow,
        ("text", "speaker", "search_terms", "shown"),
        ("role", "message_id"),
        of_scope=lambda scope: col(TurnRow.session_pk).in_(_ids_of_scope(SessionRow, scope)),
        of_session=lambda session: col(TurnRow.session_pk) == session.key,
    ),
    ErasableTable(
        SessionRow,
        ("failure", "humans", "assumed"),
        ("session_id", "layout", "time_basis", "skipped", "progress"),
        of_scope=lambda scope: col(SessionRow.scope_id) == scope,
        of_session=lambda session: col(SessionRow.id) == session.key,
    ),
    # The costs are kept, but the name of their session is removed (`Erasure._detach_spending`).
    ErasableTable(SpendingRow, (), ("source", "purpose", "model", "status")),
    ErasableTable(
        ScopeChangeRow,
        (),
        ("stamp", "source", "fact_ids"),
        of_scope=lambda scope: col(ScopeChangeRow.scope_id) == scope,
        is_derived=True,
    ),
    # The row of a scope is kept: its tombstones refer to it, and other processes must notice its new revision.
    ErasableTable(ScopeRow, (), ("tenant", "kind", "name", "policy", "stamp", "zone", "findings")),
    ErasableTable(TombstoneRow, (), ("id", "key_id", "kind", "place", "mark", "spans")),
    ErasableTable(TombstoneKeyRow, (), ("id", "key")),
    ErasableTable(SeenSessionRow, (), ("place", "key_id", "stretches")),
    # Answers hold ids and counts, and are deleted after a day. Those of a forgotten scope are deleted at once.
    ErasableTable(
        RepeatableRequestRow,
        (),
        ("key_id", "name", "fingerprint", "holder", "answer"),
        of_scope=lambda scope: col(RepeatableRequestRow.entry_id).in_(_audit_entry_ids(scope)),
    ),
    # The audit log and the API keys are kept when their scope is forgotten, as the name of the scope is.
    ErasableTable(AuditEntryRow, (), ("key_id", "action", "tenant", "scope")),
    ErasableTable(ApiKeyRow, (), ("id", "digest", "name", "tenant", "scope")),
    ErasableTable(
        MovedKeyRow, (), ("key_id",), of_scope=lambda scope: col(MovedKeyRow.run_id).in_(_ids_of_scope(RunRow, scope))
    ),
    ErasableTable(WebhookRow, (), ("id", "url", "tenant", "secret", "events")),
    # The content of a post holds only ids and counts.
    ErasableTable(
        WebhookPostRow,
        (),
        ("id", "webhook_id", "key", "event", "content", "state", "failure"),
        of_scope=lambda scope: col(WebhookPostRow.scope_id) == scope,
        of_session=lambda session: and_(
            col(WebhookPostRow.scope_id) == session.scope_id,
            col(WebhookPostRow.key).startswith(event_key_prefix(session.key)),
        ),
    ),
    # A job belongs to no scope. Its failure holds error messages without users' words, its counts have fixed names.
    ErasableTable(JobRow, (), ("name", "holder", "failure", "counts")),
)

SESSION_CLAUSES: Mapping[type[SQLModel], Callable[[SessionKeys], Clause]] = {
    table.table: table.of_session for table in ERASABLE_TABLES if table.of_session
}
"""The condition of the rows of a session, by table."""

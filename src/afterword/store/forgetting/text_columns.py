"""Which table holds a user's words, and which of its rows belong to a scope, a session or a statement.

Forgetting goes by this list, from its beginning to its end. A table that is not on it fails a test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, or_
from sqlmodel import SQLModel, col, select

from afterword.store.ledger import session_source
from afterword.store.tables import (
    AssertionRow,
    EvidenceRow,
    FactAssertionRow,
    FactRow,
    ImportedRunRow,
    JobRow,
    RejectionRow,
    RunRow,
    RunVerdictRow,
    RunWindowRow,
    ScopeChangeRow,
    ScopeRow,
    SessionRow,
    SpendingRow,
    StateRow,
    TombstoneKeyRow,
    TombstoneRow,
    TurnRow,
    VectorRow,
    VerdictRow,
    WindowAssertionRow,
    WindowRow,
)

Clause = ColumnElement[bool]


@dataclass(frozen=True, slots=True)
class SessionKeys:
    """A session as rows refer to it; its `key` is 0 where only a proposal has read it."""

    scope_id: int
    key: int
    session_id: str

    @property
    def source(self) -> str:
        """The source of the runs that read it."""
        return session_source(self.session_id)


@dataclass(frozen=True, slots=True)
class ErasableTable:
    """One table. `words` are the columns that may hold a user's words, `names` its other columns of text.

    `of_scope`, `of_session` and `of_statements` say which rows go with those; None: none do. Rows that are `derived`
    from others go with whatever is forgotten of their scope, and are made again.
    """

    table: type[SQLModel]
    words: tuple[str, ...]
    names: tuple[str, ...] = ()
    of_scope: Callable[[int], Clause] | None = None
    of_session: Callable[[SessionKeys], Clause] | None = None
    of_statements: Callable[[Sequence[str]], Clause] | None = None
    derived: bool = False


def _facts(scope_id: int) -> Select[Any]:
    return select(FactRow.id).where(FactRow.scope_id == scope_id)


def _runs(scope_id: int) -> Select[Any]:
    return select(RunRow.id).where(RunRow.scope_id == scope_id)


def _runs_of(one: SessionKeys) -> Select[Any]:
    return _runs(one.scope_id).where(or_(col(RunRow.source) == one.source, col(RunRow.session_pk) == one.key))


def _windows(scope_id: int) -> Select[Any]:
    return select(WindowRow.id).where(WindowRow.scope_id == scope_id)


def _windows_of(one: SessionKeys) -> Select[Any]:
    return _windows(one.scope_id).where(col(WindowRow.source) == one.source)


def _said(scope_id: int) -> Select[Any]:
    return select(AssertionRow.id).where(AssertionRow.scope_id == scope_id)


def _said_in(one: SessionKeys) -> Select[Any]:
    return _said(one.scope_id).where(col(AssertionRow.session_id) == one.session_id)


def _touching(statements: Any) -> Clause:
    return or_(col(VerdictRow.earlier_id).in_(statements), col(VerdictRow.later_id).in_(statements))


def _verdicts(statements: Any) -> Select[Any]:
    return select(VerdictRow.key).where(_touching(statements))


def _sessions(scope_id: int) -> Select[Any]:
    return select(SessionRow.id).where(SessionRow.scope_id == scope_id)


ERASABLE_TABLES: tuple[ErasableTable, ...] = (
    ErasableTable(
        VectorRow,
        ("content",),
        ("model", "key"),
        of_scope=lambda scope: col(VectorRow.scope_id) == scope,
        derived=True,
    ),
    ErasableTable(
        FactAssertionRow,
        (),
        ("fact_id", "assertion_id"),
        of_scope=lambda scope: col(FactAssertionRow.fact_id).in_(_facts(scope)),
        derived=True,
    ),
    ErasableTable(
        FactRow,
        ("subject_key", "attribute_key", "may_be"),
        ("id", "lead_id", "spans", "undone_as", "undone_by", "contested_by"),
        of_scope=lambda scope: col(FactRow.scope_id) == scope,
        derived=True,
    ),
    ErasableTable(
        RunVerdictRow,
        (),
        ("verdict_key",),
        of_scope=lambda scope: col(RunVerdictRow.run_id).in_(_runs(scope)),
        of_session=lambda one: or_(
            col(RunVerdictRow.run_id).in_(_runs_of(one)), col(RunVerdictRow.verdict_key).in_(_verdicts(_said_in(one)))
        ),
        of_statements=lambda ids: col(RunVerdictRow.verdict_key).in_(_verdicts(ids)),
    ),
    ErasableTable(
        VerdictRow,
        ("reason",),
        ("key", "earlier_id", "later_id", "relation", "judge"),
        of_scope=lambda scope: col(VerdictRow.scope_id) == scope,
        of_session=lambda one: _touching(_said_in(one)),
        of_statements=_touching,
    ),
    ErasableTable(
        RunWindowRow,
        (),
        of_scope=lambda scope: col(RunWindowRow.run_id).in_(_runs(scope)),
        of_session=lambda one: or_(
            col(RunWindowRow.run_id).in_(_runs_of(one)), col(RunWindowRow.window_id).in_(_windows_of(one))
        ),
    ),
    ErasableTable(
        RejectionRow,
        ("statement", "detail"),
        ("reason",),
        of_scope=lambda scope: col(RejectionRow.window_id).in_(_windows(scope)),
        of_session=lambda one: col(RejectionRow.window_id).in_(_windows_of(one)),
    ),
    ErasableTable(
        WindowAssertionRow,
        (),
        ("assertion_id",),
        of_scope=lambda scope: col(WindowAssertionRow.window_id).in_(_windows(scope)),
        of_session=lambda one: or_(
            col(WindowAssertionRow.window_id).in_(_windows_of(one)),
            col(WindowAssertionRow.assertion_id).in_(_said_in(one)),
        ),
        of_statements=lambda ids: col(WindowAssertionRow.assertion_id).in_(ids),
    ),
    ErasableTable(
        EvidenceRow,
        ("quote", "speaker"),
        ("assertion_id", "kind", "session_id"),
        of_scope=lambda scope: col(EvidenceRow.assertion_id).in_(_said(scope)),
        of_session=lambda one: col(EvidenceRow.assertion_id).in_(_said_in(one)),
        of_statements=lambda ids: col(EvidenceRow.assertion_id).in_(ids),
    ),
    ErasableTable(
        AssertionRow,
        (
            *("subject", "attribute", "subject_key", "attribute_key", "value", "statement"),
            *("speaker", "limited_to", "outcome"),
        ),
        ("id", "session_id", "act", "kind", "cue"),
        of_scope=lambda scope: col(AssertionRow.scope_id) == scope,
        of_session=lambda one: col(AssertionRow.id).in_(_said_in(one)),
        of_statements=lambda ids: col(AssertionRow.id).in_(ids),
    ),
    ErasableTable(
        WindowRow,
        (),
        ("source", "key"),
        of_scope=lambda scope: col(WindowRow.scope_id) == scope,
        of_session=lambda one: col(WindowRow.id).in_(_windows_of(one)),
    ),
    ErasableTable(
        ImportedRunRow,
        (),
        ("origin",),
        of_scope=lambda scope: col(ImportedRunRow.run_id).in_(_runs(scope)),
        of_session=lambda one: col(ImportedRunRow.run_id).in_(_runs_of(one)),
    ),
    ErasableTable(
        RunRow,
        ("transcript",),
        ("source", "purpose", "status", "extractor", "judge", "counts"),
        of_scope=lambda scope: col(RunRow.scope_id) == scope,
        of_session=lambda one: col(RunRow.id).in_(_runs_of(one)),
    ),
    ErasableTable(
        StateRow,
        ("content",),
        ("component",),
        of_scope=lambda scope: col(StateRow.session_pk).in_(_sessions(scope)),
        of_session=lambda one: col(StateRow.session_pk) == one.key,
    ),
    ErasableTable(
        TurnRow,
        ("text", "speaker"),
        ("role", "message_id"),
        of_scope=lambda scope: col(TurnRow.session_pk).in_(_sessions(scope)),
        of_session=lambda one: col(TurnRow.session_pk) == one.key,
    ),
    ErasableTable(
        SessionRow,
        ("failure", "humans", "assumed"),
        ("session_id", "layout", "time_basis", "skipped", "progress"),
        of_scope=lambda scope: col(SessionRow.scope_id) == scope,
        of_session=lambda one: col(SessionRow.id) == one.key,
    ),
    # What a model was paid stays on the books; whom it was paid for is struck out of it (`forgetting.sever`).
    ErasableTable(SpendingRow, (), ("source", "purpose", "model", "status")),
    # Of a scope its name stays: its tombstones need it, and other processes must see that it has changed.
    ErasableTable(
        ScopeChangeRow,
        (),
        ("stamp", "source", "fact_ids"),
        of_scope=lambda scope: col(ScopeChangeRow.scope_id) == scope,
        derived=True,
    ),
    ErasableTable(ScopeRow, (), ("tenant", "kind", "name", "policy", "stamp")),
    ErasableTable(TombstoneRow, (), ("id", "key_id", "kind", "place", "mark", "spans")),
    ErasableTable(TombstoneKeyRow, (), ("id", "key")),
    # A job is of no scope, and its failure names an error's type alone.
    ErasableTable(JobRow, (), ("name", "holder", "failure")),
)

"""What a run proposes: windows with what is said in them, and verdicts; and how they are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlmodel import Session, col, select

from afterword.facts.assertions import Assertion, Verdict
from afterword.facts.scopes import Scope
from afterword.store.database.inserts import insert_missing, insert_new, insert_rows
from afterword.store.database.statements import fetch_rows
from afterword.store.lookup import assertions_by_id
from afterword.store.rows import Values, assertion_values, evidence_values, verdict_key, verdict_values
from afterword.store.tables import (
    AssertionRow,
    EvidenceRow,
    RejectionRow,
    RunVerdictRow,
    VerdictRow,
    WindowAssertionRow,
    WindowRow,
)


@dataclass(frozen=True, slots=True)
class WindowReading:
    """What one window gave: its assertions, and (reason, statement, detail) of each candidate that was refused."""

    key: str
    first_turn: int | None
    last_turn: int | None
    assertions: tuple[Assertion, ...]
    rejections: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a run would do: the readings of its source, in order, and the verdicts that it stands on.

    `source` names what is read: of the applied runs of one source only the latest counts. `purpose` says what kind of
    run it is (session, application, clear, review, consolidation). `revision` is the scope's revision that the verdicts
    were judged at.
    """

    scope: Scope
    source: str
    purpose: str
    extractor: str
    judge: str
    started_at: datetime
    revision: int
    readings: tuple[WindowReading, ...]
    verdicts: tuple[Verdict, ...] = ()
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def assertions(self) -> tuple[Assertion, ...]:
        """All that it says."""
        return tuple(one for reading in self.readings for one in reading.assertions)


def store_window(transaction: Session, scope_id: int, proposal: Proposal, reading: WindowReading) -> int:
    """Write a window and what is said in it, unless it was read before; return its key."""
    of = {"scope_id": scope_id, "source": proposal.source, "key": reading.key}
    turns = {"first_turn": reading.first_turn, "last_turn": reading.last_turn}
    new = insert_new(transaction, WindowRow).returning(col(WindowRow.id))
    made = fetch_rows(transaction, new, {**of, **turns})
    if not made:
        kept = select(WindowRow.id).where(*(col(getattr(WindowRow, name)) == value for name, value in of.items()))
        return transaction.exec(kept).one() or 0
    window_id = made[0].id
    store_assertions(transaction, scope_id, reading.assertions, proposal.started_at)
    ties = [{"window_id": window_id, "assertion_id": one.id} for one in reading.assertions]
    insert_missing(transaction, WindowAssertionRow, ties)
    refused = [
        {"window_id": window_id, "ordinal": ordinal, "reason": reason, "statement": statement, "detail": detail}
        for ordinal, (reason, statement, detail) in enumerate(reading.rejections)
    ]
    insert_rows(transaction, RejectionRow, refused)
    return int(window_id)


def store_assertions(
    transaction: Session, scope_id: int, assertions: Sequence[Assertion], recorded_at: datetime
) -> None:
    """Write the assertions that are not there yet."""
    insert_missing(transaction, AssertionRow, [assertion_values(one, scope_id, recorded_at) for one in assertions])
    insert_missing(transaction, EvidenceRow, [values for one in assertions for values in evidence_values(one)])


def store_verdicts(transaction: Session, scope_id: int, run_id: int, proposal: Proposal) -> None:
    """Write the verdicts of a run that are not there yet, and that the run stands on them."""
    if not proposal.verdicts:
        return
    said = {one.id: one for reading in proposal.readings for one in reading.assertions}
    ends = {end for verdict in proposal.verdicts for end in (verdict.earlier_id, verdict.later_id)}
    said |= assertions_by_id(transaction, proposal.scope, list(ends - said.keys()))
    rows: list[Values] = []
    for verdict in proposal.verdicts:
        key = verdict_key(proposal.scope, said[verdict.earlier_id], said[verdict.later_id], verdict.judge)
        rows.append(verdict_values(verdict, key, scope_id, proposal.started_at))
    insert_missing(transaction, VerdictRow, rows)
    insert_missing(transaction, RunVerdictRow, [{"run_id": run_id, "verdict_key": row["key"]} for row in rows])

"""What a run proposes, windows with their assertions and verdicts, and how it is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlmodel import Session, col, select

from afterword.facts.assertions import Assertion, Verdict
from afterword.facts.scopes import Scope
from afterword.store.database.inserts import insert_if_missing, insert_missing, insert_rows
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
    """What an extractor returned for one window: its assertions, and (reason, statement, detail) of each refusal."""

    key: str
    first_turn: int | None
    last_turn: int | None
    assertions: tuple[Assertion, ...]
    rejections: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a run would do: the readings of its source, in order, and the verdicts that it adds.

    `source` names what is read: of the applied runs of one source only the latest counts. `purpose` is the kind of
    run (session, application, clear, review, consolidation). `revision` is the revision of the scope when the verdicts
    were judged.
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
        """The assertions of all readings."""
        return tuple(said for reading in self.readings for said in reading.assertions)


def store_window(transaction: Session, scope_id: int, proposal: Proposal, reading: WindowReading) -> int:
    """Store a window with its assertions and refusals, unless it is stored already; return its key."""
    identity = {"scope_id": scope_id, "source": proposal.source, "key": reading.key}
    turns = {"first_turn": reading.first_turn, "last_turn": reading.last_turn}
    statement = insert_if_missing(transaction, WindowRow).returning(col(WindowRow.id))
    inserted = fetch_rows(transaction, statement, {**identity, **turns})
    if not inserted:
        return transaction.exec(select(WindowRow.id).filter_by(**identity)).one() or 0
    window_id = int(inserted[0].id)
    store_assertions(transaction, scope_id, reading.assertions, proposal.started_at)
    ties = [{"window_id": window_id, "assertion_id": said.id} for said in reading.assertions]
    insert_missing(transaction, WindowAssertionRow, ties)
    rejections = [
        {"window_id": window_id, "ordinal": ordinal, "reason": reason, "statement": statement, "detail": detail}
        for ordinal, (reason, statement, detail) in enumerate(reading.rejections)
    ]
    insert_rows(transaction, RejectionRow, rejections)
    return window_id


def store_assertions(
    transaction: Session, scope_id: int, assertions: Sequence[Assertion], recorded_at: datetime
) -> None:
    """Store the assertions that are not stored yet."""
    insert_missing(transaction, AssertionRow, [assertion_values(said, scope_id, recorded_at) for said in assertions])
    insert_missing(transaction, EvidenceRow, [values for said in assertions for values in evidence_values(said)])


def store_verdicts(transaction: Session, scope_id: int, run_id: int, proposal: Proposal) -> None:
    """Store the verdicts of a run that are not stored yet, and tie all of its verdicts to the run."""
    assertions = {said.id: said for said in proposal.assertions}
    ids = {end for verdict in proposal.verdicts for end in (verdict.earlier_id, verdict.later_id)}
    assertions |= assertions_by_id(transaction, proposal.scope, list(ids - assertions.keys()))
    rows: list[Values] = []
    for verdict in proposal.verdicts:
        pair = assertions[verdict.earlier_id], assertions[verdict.later_id]
        key = verdict_key(proposal.scope, *pair, verdict.judge)
        rows.append(verdict_values(verdict, key, scope_id, proposal.started_at))
    insert_missing(transaction, VerdictRow, rows)
    insert_missing(transaction, RunVerdictRow, [{"run_id": run_id, "verdict_key": row["key"]} for row in rows])

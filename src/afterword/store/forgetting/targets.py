"""Find the statements that must be forgotten together with the chosen ones: equal ones, withdrawals, confirmations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from sqlmodel import Session, col, select

from afterword.facts.assertions import PERSON, Assertion, Relation, SpeechAct, Verdict
from afterword.facts.scopes import Scope
from afterword.facts.validity.timeline import erased_ids
from afterword.facts.words import folded
from afterword.privacy.blanking import mentions_phrase
from afterword.store import lookup
from afterword.store.database.statements import chunks, fetch_where_in
from afterword.store.tables import (
    AssertionRow,
    EvidenceRow,
    FactAssertionRow,
    FactRow,
    RunRow,
    RunWindowRow,
    VerdictRow,
    WindowAssertionRow,
)


def ids_requested_to_forget(assertions: Sequence[Assertion], verdicts: Sequence[Verdict]) -> frozenset[str]:
    """Return the ids of the statements that somebody has asked to forget, and of the requests themselves."""
    erased = erased_ids(assertions, verdicts)
    requests = {said.id for said in assertions if said.act is SpeechAct.ERASE}
    fulfilled = {
        verdict.later_id
        for verdict in verdicts
        if verdict.later_id in requests and verdict.earlier_id in erased and verdict.relation is Relation.RETRACTS
    }
    return erased | fulfilled


def with_equal_statements(
    transaction: Session, scope_id: int, ids: Iterable[str], until: datetime | None = None
) -> dict[str, AssertionRow]:
    """Return these statements of a scope and those that would reveal the same, live or not, by their ids.

    These are statements that assert the same value for the same slot (with `until` up to then), statements that quote
    the same words of a turn for the same value, and withdrawals of nothing else.
    """
    rows = fetch_where_in(transaction, AssertionRow, "id", ids)
    chosen = {row.id: row for row in rows if row.scope_id == scope_id}
    for row in list(chosen.values()):
        if row.value:
            chosen.update(_with_same_value(transaction, row, until))
    chosen.update(_with_same_quote(transaction, scope_id, chosen))
    chosen.update(_withdrawals(transaction, scope_id, chosen))
    return chosen


def waiting_correction_ids(transaction: Session, scope_id: int, ids: Collection[str]) -> list[str]:
    """Return the ids of the corrections of these statements that agents have asked for and nobody has approved yet."""
    waiting = (
        select(WindowAssertionRow.assertion_id)
        .join(RunWindowRow, col(RunWindowRow.window_id) == col(WindowAssertionRow.window_id))
        .join(RunRow, col(RunRow.id) == col(RunWindowRow.run_id))
        .where(RunRow.scope_id == scope_id, RunRow.status == "held", RunRow.purpose == "correct")
    )
    corrections: list[str] = []
    for some in chunks(list(ids)):
        query = select(VerdictRow.later_id).where(
            VerdictRow.scope_id == scope_id, col(VerdictRow.earlier_id).in_(some), col(VerdictRow.later_id).in_(waiting)
        )
        corrections += transaction.exec(query)
    return list(dict.fromkeys(corrections))


def confirmed_ids(transaction: Session, scope_id: int, session_id: str) -> list[str]:
    """Return the ids of the statements by which a person has confirmed what was said in a session."""
    said = select(AssertionRow.id).where(AssertionRow.scope_id == scope_id, AssertionRow.session_id == session_id)
    confirming = select(VerdictRow.later_id).where(
        VerdictRow.scope_id == scope_id,
        VerdictRow.judge == PERSON,
        VerdictRow.relation == str(Relation.SAME),
        col(VerdictRow.earlier_id).in_(said),
    )
    query = select(AssertionRow.id).where(col(AssertionRow.id).in_(confirming), col(AssertionRow.session_id).is_(None))
    return list(transaction.exec(query))


def _with_same_value(transaction: Session, row: AssertionRow, until: datetime | None) -> dict[str, AssertionRow]:
    same_slot = select(AssertionRow).where(
        AssertionRow.scope_id == row.scope_id,
        AssertionRow.subject_key == row.subject_key,
        AssertionRow.attribute_key == row.attribute_key,
    )
    if until is not None:
        same_slot = same_slot.where(AssertionRow.said_at <= until)
    return {other.id: other for other in transaction.exec(same_slot) if folded(other.value) == folded(row.value)}


def _with_same_quote(
    transaction: Session, scope_id: int, chosen: Mapping[str, AssertionRow]
) -> dict[str, AssertionRow]:
    """Return the statements that quote some of the same words as the chosen ones and mention their value."""
    quotes: dict[tuple[str, int], list[tuple[EvidenceRow, str]]] = defaultdict(list)
    for evidence in fetch_where_in(transaction, EvidenceRow, "assertion_id", chosen):
        if evidence.session_id is not None and evidence.turn is not None:
            quotes[evidence.session_id, evidence.turn].append((evidence, chosen[evidence.assertion_id].value))
    same: dict[str, AssertionRow] = {}
    for session_id in {session_id for session_id, _ in quotes}:
        query = select(AssertionRow, EvidenceRow).where(
            col(AssertionRow.id) == col(EvidenceRow.assertion_id),
            AssertionRow.scope_id == scope_id,
            EvidenceRow.session_id == session_id,
        )
        for row, evidence in transaction.exec(query).all():
            others = quotes.get((session_id, evidence.turn or 0), ())
            if any(_overlap(evidence, other) and _share_value(row.value, value) for other, value in others):
                same[row.id] = row
    return same


def _overlap(first: EvidenceRow, second: EvidenceRow) -> bool:
    first_start, second_start = first.start or 0, second.start or 0
    return first_start < second_start + len(second.quote) and second_start < first_start + len(first.quote)


def _share_value(first: str, second: str) -> bool:
    return bool(first) and bool(second) and (mentions_phrase(first, second) or mentions_phrase(second, first))


def _withdrawals(transaction: Session, scope_id: int, chosen: Mapping[str, AssertionRow]) -> dict[str, AssertionRow]:
    """Return the statements that withdraw some of the chosen ones and nothing else."""
    is_withdrawal = VerdictRow.relation == str(Relation.RETRACTS)
    withdrawals: dict[str, AssertionRow] = {}
    for ids in chunks(list(chosen)):
        withdrawing = select(VerdictRow.later_id).where(is_withdrawal, col(VerdictRow.earlier_id).in_(ids))
        query = select(AssertionRow).where(
            AssertionRow.scope_id == scope_id,
            AssertionRow.act != str(SpeechAct.STATE),
            col(AssertionRow.id).in_(withdrawing),
        )
        withdrawals.update({row.id: row for row in transaction.exec(query)})
    for withdrawal_id in list(withdrawals):
        withdrawn = select(VerdictRow.earlier_id).where(is_withdrawal, VerdictRow.later_id == withdrawal_id)
        if any(earlier_id not in chosen for earlier_id in transaction.exec(withdrawn)):
            del withdrawals[withdrawal_id]
    return withdrawals


def fact_members(transaction: Session, scope_id: int) -> dict[str, set[str]]:
    """Return the ids of the statements of each fact of a scope."""
    query = select(FactAssertionRow.fact_id, FactAssertionRow.assertion_id).join(
        FactRow, col(FactRow.id) == col(FactAssertionRow.fact_id)
    )
    members: dict[str, set[str]] = defaultdict(set)
    for fact_id, assertion_id in transaction.exec(query.where(FactRow.scope_id == scope_id)):
        members[fact_id].add(assertion_id)
    return members


def hidden_fact_ids(transaction: Session, scope: Scope, hidden: Collection[str]) -> set[str]:
    """Return the first-said statement of each fact of which all statements are hidden."""
    members = lookup.read_knowledge(transaction, scope).judged_pairs(hidden).members
    return {root for root, statements in members.items() if all(said.id in hidden for said in statements)}

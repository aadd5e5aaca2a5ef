"""What belongs to what is to be forgotten: the same said elsewhere, requests to take it back, confirmations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from sqlalchemy import or_
from sqlmodel import Session, col, select

from afterword.facts.assertions import PERSON, Assertion, Relation, SpeechAct, Verdict
from afterword.facts.timeline import erased_ids
from afterword.facts.words import folded
from afterword.privacy.blanking import mentions_phrase
from afterword.store.lookup import CHUNK
from afterword.store.tables import AssertionRow, EvidenceRow, VerdictRow

Place = tuple[str, int]


def ids_requested_to_forget(assertions: Sequence[Assertion], verdicts: Sequence[Verdict]) -> frozenset[str]:
    """Return the ids of what somebody has asked to be gone, and of the requests."""
    gone = erased_ids(assertions, verdicts)
    requests = {one.id for one in assertions if one.act is SpeechAct.ERASE}
    naming = {
        one.later_id
        for one in verdicts
        if one.later_id in requests and one.earlier_id in gone and one.relation is Relation.RETRACTS
    }
    return gone | naming


def with_equal_statements(transaction: Session, scope_id: int, ids: Iterable[str]) -> dict[str, AssertionRow]:
    """Return these statements of a scope, and those that tell the same: live or not, in whatever run.

    The same tell: the same value of the same slot, whatever takes back nothing else, and what quotes the same words
    of a turn for the same value.
    """
    gone = {one.id: one for one in _by_id(transaction, scope_id, list(ids))}
    for one in list(gone.values()):
        if one.value:
            gone.update(_same_slot(transaction, scope_id, one))
    gone.update(_overlapping(transaction, scope_id, gone))
    gone.update(_takings(transaction, scope_id, gone))
    return gone


def confirmed_ids(transaction: Session, scope_id: int, session_id: str) -> list[str]:
    """Return the ids of what a person has confirmed word for word of a session."""
    said = select(AssertionRow.id).where(AssertionRow.scope_id == scope_id, AssertionRow.session_id == session_id)
    query = select(VerdictRow.later_id).where(
        VerdictRow.scope_id == scope_id,
        VerdictRow.judge == PERSON,
        VerdictRow.relation == str(Relation.SAME),
        col(VerdictRow.earlier_id).in_(said),
    )
    later = select(AssertionRow.id).where(col(AssertionRow.id).in_(query), col(AssertionRow.session_id).is_(None))
    return list(transaction.exec(later))


def _by_id(transaction: Session, scope_id: int, ids: Sequence[str]) -> list[AssertionRow]:
    found: list[AssertionRow] = []
    for start in range(0, len(ids), CHUNK):
        query = select(AssertionRow).where(AssertionRow.scope_id == scope_id)
        found += transaction.exec(query.where(col(AssertionRow.id).in_(ids[start : start + CHUNK])))
    return found


def _same_slot(transaction: Session, scope_id: int, one: AssertionRow) -> dict[str, AssertionRow]:
    query = select(AssertionRow).where(
        AssertionRow.scope_id == scope_id,
        AssertionRow.subject_key == one.subject_key,
        AssertionRow.attribute_key == one.attribute_key,
    )
    return {other.id: other for other in transaction.exec(query) if folded(other.value) == folded(one.value)}


def _overlapping(transaction: Session, scope_id: int, gone: dict[str, AssertionRow]) -> dict[str, AssertionRow]:
    """Return what quotes the same words as what is gone, and tells its value."""
    quotes: dict[Place, list[tuple[EvidenceRow, str]]] = defaultdict(list)
    for item in _evidence(transaction, list(gone)):
        if item.session_id is not None and item.turn is not None:
            quotes[item.session_id, item.turn].append((item, gone[item.assertion_id].value))
    found: dict[str, AssertionRow] = {}
    for session_id in {place[0] for place in quotes}:
        query = select(AssertionRow, EvidenceRow).where(
            col(AssertionRow.id) == col(EvidenceRow.assertion_id),
            AssertionRow.scope_id == scope_id,
            EvidenceRow.session_id == session_id,
        )
        for one, item in transaction.exec(query).all():
            others = quotes.get((session_id, item.turn or 0), ())
            if any(_overlap(item, other) and _tells(one, value) for other, value in others):
                found[one.id] = one
    return found


def _overlap(one: EvidenceRow, other: EvidenceRow) -> bool:
    first, second = one.start or 0, other.start or 0
    return first < second + len(other.quote) and second < first + len(one.quote)


def _tells(one: AssertionRow, value: str) -> bool:
    return bool(value) and bool(one.value) and (mentions_phrase(one.value, value) or mentions_phrase(value, one.value))


def _takings(transaction: Session, scope_id: int, gone: dict[str, AssertionRow]) -> dict[str, AssertionRow]:
    """Return the statements that take back something of what is gone, and nothing else."""
    ids, found = list(gone), {}
    for start in range(0, len(ids), CHUNK):
        taking = select(VerdictRow.later_id).where(
            VerdictRow.relation == str(Relation.RETRACTS), col(VerdictRow.earlier_id).in_(ids[start : start + CHUNK])
        )
        query = select(AssertionRow).where(
            AssertionRow.scope_id == scope_id,
            AssertionRow.act != str(SpeechAct.STATE),
            col(AssertionRow.id).in_(taking),
        )
        found.update({one.id: one for one in transaction.exec(query)})
    for name in list(found):
        others = select(VerdictRow.earlier_id).where(
            VerdictRow.relation == str(Relation.RETRACTS), VerdictRow.later_id == name
        )
        if any(earlier not in gone for earlier in transaction.exec(others)):
            del found[name]
    return found


def _evidence(transaction: Session, ids: Sequence[str]) -> list[EvidenceRow]:
    found: list[EvidenceRow] = []
    for start in range(0, len(ids), CHUNK):
        query = select(EvidenceRow).where(or_(col(EvidenceRow.assertion_id).in_(ids[start : start + CHUNK])))
        found += transaction.exec(query)
    return found

"""Finds the statements to forget: those that a person asked to be forgotten, and those that state the same.

Withdrawals and confirmations of a forgotten statement are forgotten too. A request hides statements at once. With
`privacy.erase = "auto"` the hidden statements are deleted a day later.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlmodel import Session, col, func, select

from afterword.facts.assertions import PERSON, Assertion, Relation, SpeechAct
from afterword.facts.knowledge import Knowledge
from afterword.facts.removals import asks_to_erase_everything, has_matched_statement
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Role
from afterword.facts.words import folded, terms
from afterword.recall.named_values import ValueMatcher
from afterword.store import lookup
from afterword.store.database.statements import chunks, fetch_where_in
from afterword.store.fact_ids import have_overlapping_quotes, is_one_value_within_other
from afterword.store.ledger import RunStatus
from afterword.store.scope_rows import scope_key, scope_of_row
from afterword.store.tables import (
    AssertionRow,
    EvidenceRow,
    FactAssertionRow,
    FactRow,
    RunRow,
    RunVerdictRow,
    RunWindowRow,
    ScopeRow,
    SessionRow,
    TurnRow,
    VerdictRow,
    WindowAssertionRow,
)

DISMISS = "dismiss"
"""The purpose of a run by which a person dismisses a request that found nothing to hide."""
DISMISSED = "dismiss:"
"""The prefix of the source of such a run. The id of the request follows."""
ERASE_WAIT = timedelta(days=1)
"""How long statements that somebody asked to be forgotten are hidden before they are deleted automatically."""


@dataclass(frozen=True, slots=True)
class EraseRequest:
    """A request to forget something, in force since `hidden_since`. `erased_ids` are the statements that it hides.

    A request that matches no statement hides the turns that contain its words until a person decides about it.
    """

    request: Assertion
    erased_ids: tuple[str, ...]
    hidden_since: datetime

    @property
    def is_everything(self) -> bool:
        """Whether it asks to forget everything. Only a person may carry that out."""
        return asks_to_erase_everything(self.request)

    @property
    def finds_facts(self) -> bool:
        """Whether it hides statements, which can be deleted without a person's approval."""
        return bool(self.erased_ids) and not self.is_everything

    @property
    def id(self) -> str:
        """The id by which `decide` identifies the request."""
        return f"erase:{self.request.id}"

    @property
    def ids(self) -> frozenset[str]:
        """The ids of the hidden statements and of the statement that asks to forget them."""
        return frozenset({*self.erased_ids, self.request.id})


def read_erase_requests_with_facts(
    transaction: Session, scope: Scope, hidden_since_before: datetime | None = None
) -> list[EraseRequest]:
    """Return the requests that hide statements, oldest first.

    With `hidden_since_before`, only requests that have hidden statements since that instant or earlier are returned.
    """
    requests = [request for request in read_erase_requests_in_force(transaction, scope) if request.finds_facts]
    return [
        request for request in requests if hidden_since_before is None or request.hidden_since <= hidden_since_before
    ]


def read_erase_requests_in_force(transaction: Session, scope: Scope) -> list[EraseRequest]:
    """Return all requests to forget that are in force in a scope, oldest first.

    Requests that match no statement are included until a person has dismissed them.
    """
    of_scope = AssertionRow.scope_id == scope_key(transaction, scope)
    asking_ids = list(
        transaction.exec(select(AssertionRow.id).where(of_scope, AssertionRow.act == str(SpeechAct.ERASE)))
    )
    if not asking_ids:
        return []  # true of most scopes, so what is known need not be read
    known = lookup.read_knowledge(transaction, scope)
    asking = [known.by_id[id_] for id_ in asking_ids if id_ in known.by_id]
    hidden = _hidden_ids(known, [said.id for said in asking])
    since = _read_in_force_since_by_withdrawal(transaction, scope_key(transaction, scope))
    dismissed = dismissed_request_ids(transaction, scope_key(transaction, scope), hidden)
    requests = [
        EraseRequest(said, tuple(hidden[said.id]), since.get(said.id, said.said_at))
        for said in asking
        if (hidden[said.id] and said.id in since) or not (has_matched_statement(said, known) or said.id in dismissed)
    ]
    return sorted(requests, key=lambda request: (request.hidden_since, request.request.order))


def _hidden_ids(known: Knowledge, request_ids: Sequence[str]) -> dict[str, list[str]]:
    """Return the ids of the statements that each of these requests hides, by the id of the request."""
    hidden: dict[str, list[str]] = {request_id: [] for request_id in request_ids}
    for earlier_id, retirements in known.judged_pairs(hidden).retirements.items():
        for later_id, relation in retirements:
            if relation is Relation.RETRACTS and later_id in hidden:
                hidden[later_id].append(earlier_id)
    return hidden


def _read_in_force_since_by_withdrawal(transaction: Session, scope_id: int) -> dict[str, datetime]:
    """Return when the first run with verdicts of each withdrawing statement was applied, by the statement's id.

    A request is in force since then.
    """
    applied = (
        select(VerdictRow.later_id, func.min(RunRow.applied_at))
        .join(RunVerdictRow, col(RunVerdictRow.verdict_key) == col(VerdictRow.key))
        .join(RunRow, col(RunRow.id) == col(RunVerdictRow.run_id))
        .where(VerdictRow.scope_id == scope_id, VerdictRow.relation == str(Relation.RETRACTS))
        .where(RunRow.status == RunStatus.APPLIED, col(RunRow.applied_at).is_not(None))
        .group_by(VerdictRow.later_id)
    )
    return {later_id: applied_at for later_id, applied_at in transaction.exec(applied) if applied_at is not None}


def dismissed_request_ids(transaction: Session, scope_id: int, ids: Iterable[str]) -> set[str]:
    """Return which of these requests a person has dismissed because they match nothing. `ids` are their ids."""
    sources: set[str] = set()
    for chunk in chunks([f"{DISMISSED}{id_}" for id_ in ids]):
        of_scope = RunRow.scope_id == scope_id, RunRow.status == RunStatus.APPLIED
        sources.update(transaction.exec(select(RunRow.source).where(*of_scope, col(RunRow.source).in_(chunk))))
    return {source.removeprefix(DISMISSED) for source in sources}


def texts_of_meant_turns(transaction: Session, scope_id: int, request: Assertion) -> dict[str, list[str]]:
    """Return the texts of the turns that a request means, by session id.

    These are the turn of the request itself, and earlier turns of people that contain all words of its value.
    """
    named = ValueMatcher([frozenset(terms(request.value))])
    query = (
        select(SessionRow.session_id, TurnRow)
        .join(TurnRow, col(TurnRow.session_pk) == col(SessionRow.id))
        .where(SessionRow.scope_id == scope_id, TurnRow.role == str(Role.HUMAN))
    )
    own = {(evidence.session_id, evidence.turn) for evidence in request.evidence}
    meant: dict[str, list[str]] = defaultdict(list)
    for session_id, turn in transaction.exec(query):
        is_earlier = turn.said_at is None or turn.said_at <= request.said_at
        is_own = (session_id, turn.number) in own
        if is_own or (is_earlier and named.is_any_named_in(frozenset(terms(turn.text)))):
            meant[session_id].append(turn.text)
    return meant


def read_statements_to_forget(
    transaction: Session, scope_id: int, ids: Iterable[str], until: datetime | None = None
) -> dict[str, AssertionRow]:
    """Return these statements of a scope and all that would reveal the same, live or not, by their ids.

    Three kinds are added: statements with the same subject, attribute and value (with `until`, only those said up to
    then), statements that quote the same words of a turn for the same value, and withdrawals of nothing but these.
    """
    rows = fetch_where_in(transaction, AssertionRow, "id", ids)
    chosen = {row.id: row for row in rows if row.scope_id == scope_id}
    for row in list(chosen.values()):
        if row.value:
            same_slot = select(AssertionRow).where(
                AssertionRow.scope_id == row.scope_id,
                AssertionRow.subject_key == row.subject_key,
                AssertionRow.attribute_key == row.attribute_key,
            )
            if until is not None:
                same_slot = same_slot.where(AssertionRow.said_at <= until)
            others = (other for other in transaction.exec(same_slot) if folded(other.value) == folded(row.value))
            chosen.update((other.id, other) for other in others)
    chosen.update(_same_value_in_overlapping_quote(transaction, scope_id, chosen))
    chosen.update(_read_withdrawals(transaction, scope_id, chosen))
    return chosen


def held_correction_ids(transaction: Session, scope_id: int, ids: Collection[str]) -> list[str]:
    """Return the ids of the corrections of these statements that still wait for a person's approval."""
    waiting = (
        select(WindowAssertionRow.assertion_id)
        .join(RunWindowRow, col(RunWindowRow.window_id) == col(WindowAssertionRow.window_id))
        .join(RunRow, col(RunRow.id) == col(RunWindowRow.run_id))
        .where(RunRow.scope_id == scope_id, RunRow.status == "held", RunRow.purpose == "correct")
    )
    corrections: list[str] = []
    for chunk in chunks(list(ids)):
        query = select(VerdictRow.later_id).where(
            VerdictRow.scope_id == scope_id,
            col(VerdictRow.earlier_id).in_(chunk),
            col(VerdictRow.later_id).in_(waiting),
        )
        corrections += transaction.exec(query)
    return list(dict.fromkeys(corrections))


def confirmation_ids(transaction: Session, scope_id: int, session_id: str) -> list[str]:
    """Return the ids of the statements with which a person has confirmed something that was said in a session."""
    said = select(AssertionRow.id).where(AssertionRow.scope_id == scope_id, AssertionRow.session_id == session_id)
    confirming = select(VerdictRow.later_id).where(
        VerdictRow.scope_id == scope_id,
        VerdictRow.judge == PERSON,
        VerdictRow.relation == str(Relation.SAME),
        col(VerdictRow.earlier_id).in_(said),
    )
    query = select(AssertionRow.id).where(col(AssertionRow.id).in_(confirming), col(AssertionRow.session_id).is_(None))
    return list(transaction.exec(query))


def entered_withdrawals(transaction: Session, scope_id: int, ids: Collection[str]) -> list[tuple[AssertionRow, bool]]:
    """Return what a person entered to withdraw nothing but these statements, each with whether it is in force.

    A withdrawal repeats the words that it withdraws.
    """
    rows = [row for row in _read_withdrawals(transaction, scope_id, set(ids)).values() if row.session_id is None]
    live = set(transaction.connection().scalars(lookup.select_live_assertion_ids(scope_id)) if rows else ())
    return [(row, row.id in live) for row in rows]


def _same_value_in_overlapping_quote(
    transaction: Session, scope_id: int, chosen: Mapping[str, AssertionRow]
) -> dict[str, AssertionRow]:
    """Return the statements that overlap with a quote of a chosen statement and share its value, by their ids."""
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
            if any(
                have_overlapping_quotes(evidence, other) and is_one_value_within_other(row.value, value)
                for other, value in others
            ):
                same[row.id] = row
    return same


def _read_withdrawals(transaction: Session, scope_id: int, chosen: Collection[str]) -> dict[str, AssertionRow]:
    """Return the statements that withdraw some of the chosen statements and nothing else, by their ids."""
    verdicts_on_chosen = fetch_where_in(transaction, VerdictRow, "earlier_id", chosen)
    withdrawing = {verdict.later_id for verdict in verdicts_on_chosen if verdict.relation == Relation.RETRACTS}
    their_verdicts = fetch_where_in(transaction, VerdictRow, "later_id", withdrawing)
    of_others = {
        verdict.later_id
        for verdict in their_verdicts
        if verdict.relation == Relation.RETRACTS and verdict.earlier_id not in chosen
    }
    rows = fetch_where_in(transaction, AssertionRow, "id", withdrawing - of_others)
    return {row.id: row for row in rows if row.scope_id == scope_id and row.act != SpeechAct.STATE}


def fact_members(transaction: Session, scope_id: int) -> dict[str, set[str]]:
    """Return the ids of the statements of each fact of a scope, by the id of the fact."""
    query = select(FactAssertionRow.fact_id, FactAssertionRow.assertion_id).join(
        FactRow, col(FactRow.id) == col(FactAssertionRow.fact_id)
    )
    members: dict[str, set[str]] = defaultdict(set)
    for fact_id, assertion_id in transaction.exec(query.where(FactRow.scope_id == scope_id)):
        members[fact_id].add(assertion_id)
    return members


def scopes_that_ever_had_erase_requests(transaction: Session) -> set[Scope]:
    """Return the scopes in which somebody has ever asked for something to be forgotten."""
    asking = select(AssertionRow.scope_id).where(AssertionRow.act == str(SpeechAct.ERASE))
    rows = transaction.exec(select(ScopeRow).where(col(ScopeRow.id).in_(asking)))
    return {scope_of_row(row) for row in rows}

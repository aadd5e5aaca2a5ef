"""What people asked to be forgotten in conversations: since when it is hidden, and when it is erased by itself."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlmodel import Session, col, func, select

from afterword.facts.assertions import Assertion, Relation, SpeechAct
from afterword.facts.scopes import Scope
from afterword.store import lookup
from afterword.store.ledger import RunStatus
from afterword.store.scope_rows import scope_key
from afterword.store.tables import AssertionRow, RunRow, RunVerdictRow, VerdictRow

WAIT = timedelta(days=1)
"""How long what somebody asked to be forgotten is hidden before it is erased by itself."""


@dataclass(frozen=True, slots=True)
class EraseRequest:
    """A request to erase that is in force. `erased_ids` are the statements that it hides since `hidden_since`."""

    request: Assertion
    erased_ids: tuple[str, ...]
    hidden_since: datetime

    @property
    def id(self) -> str:
        """What `decide` takes."""
        return f"erase:{self.request.id}"

    @property
    def ids(self) -> frozenset[str]:
        """The ids of the hidden statements and of the request."""
        return frozenset({*self.erased_ids, self.request.id})


def read_erase_requests(transaction: Session, scope: Scope, *, until: datetime | None = None) -> list[EraseRequest]:
    """Return the requests of a scope that are in force, oldest first; those that hide since `until` or before."""
    of_scope = AssertionRow.scope_id == scope_key(transaction, scope)
    asking_ids = list(
        transaction.exec(select(AssertionRow.id).where(of_scope, AssertionRow.act == str(SpeechAct.ERASE)))
    )
    if not asking_ids:
        return []  # of most scopes, without reading all that is known
    known = lookup.read_knowledge(transaction, scope)
    asking = [known.by_id[id_] for id_ in asking_ids if id_ in known.by_id]
    hidden: dict[str, list[str]] = {said.id: [] for said in asking}
    for earlier_id, retirements in known.judged_pairs(hidden).retirements.items():
        for later_id, relation in retirements:
            if relation is Relation.RETRACTS and later_id in hidden:
                hidden[later_id].append(earlier_id)
    since = _in_force_since(transaction, scope)
    requests = [
        EraseRequest(said, tuple(hidden[said.id]), since[said.id])
        for said in asking
        if hidden[said.id] and said.id in since
    ]
    requests.sort(key=lambda request: (request.hidden_since, request.request.order))
    return [request for request in requests if until is None or request.hidden_since <= until]


def _in_force_since(transaction: Session, scope: Scope) -> dict[str, datetime]:
    """Return when the first applied run that takes something back by it was applied, by the id of the later side."""
    query = (
        select(VerdictRow.later_id, func.min(RunRow.applied_at))
        .join(RunVerdictRow, col(RunVerdictRow.verdict_key) == col(VerdictRow.key))
        .join(RunRow, col(RunRow.id) == col(RunVerdictRow.run_id))
        .where(VerdictRow.scope_id == scope_key(transaction, scope), VerdictRow.relation == str(Relation.RETRACTS))
        .where(RunRow.status == RunStatus.APPLIED, col(RunRow.applied_at).is_not(None))
        .group_by(VerdictRow.later_id)
    )
    return {later_id: applied_at for later_id, applied_at in transaction.exec(query).all() if applied_at is not None}

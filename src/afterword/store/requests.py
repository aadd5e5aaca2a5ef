"""What an agent asks to be kept or taken back: done at once on a person's word, else held until a person decides.

Each request is one run. Nothing here erases, and whatever was done is undone as one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import uuid4

from sqlmodel import Session

from afterword.errors import NotFound
from afterword.facts.assertions import (
    PERSON,
    RETIRING,
    Assertion,
    Authority,
    Evidence,
    EvidenceKind,
    Relation,
    SpeechAct,
    Verdict,
    assertion_id,
    digest,
)
from afterword.facts.fact import Fact
from afterword.facts.knowledge import Knowledge
from afterword.facts.scopes import Scope
from afterword.store import ledger, lookup, runs
from afterword.store.database.engine import Store
from afterword.store.entries import Entry, is_same_statement, next_unused_moment
from afterword.store.ledger import RunStatus
from afterword.store.proposals import Proposal, WindowReading

REMEMBER, WITHDRAW = "remember", "withdraw"
AGENT = "agent"
"""Who asked, where a run names its extractor."""
JUDGE = "rules-1"
MAX_HELD_REQUESTS = 100
"""How many requests of agents may wait in one scope: a page that makes an agent ask and ask must not bury a person."""

_TICK = timedelta(microseconds=1)

Relate = Callable[[Assertion, Assertion], tuple[Relation, str] | None]
"""How a later assertion relates to an earlier one, and why; None where they stand side by side."""


@dataclass(frozen=True, slots=True)
class PersonQuote:
    """A person's own words, and who said them."""

    quote: str
    speaker: str


class RequestStatus(StrEnum):
    """What became of a request."""

    DONE = "done"
    HELD = "held"
    WAITING = "waiting"
    DECLINED = "declined"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class RequestOutcome:
    """What became of a request, and its run; None where no run was made."""

    answer: RequestStatus
    run_id: int | None = None


async def request_statement(
    store: Store, scope: Scope, entry: Entry, *, word: PersonQuote | None, relate: Relate, at: datetime
) -> RequestOutcome:
    """Keep a statement on a person's word, or hold it for review where there is none.

    On a person's word it has the authority of that person, and takes the place of what `relate` says. Held, it counts
    for nothing until a person approves its run. The scope's policy may hold the first kind too. The same request is
    held once: `WAITING` where it is held already, `DECLINED` where a person has refused it, `FULL` where 100 requests
    wait. Raises `Overtaken` where other writers were faster every time, and `StoreError` where the store does not
    answer.
    """

    def work(transaction: Session) -> RequestOutcome:
        known = lookup.read_knowledge(transaction, scope)
        said = _stated(scope, entry, word, next_unused_moment(at, known.assertions))
        verdicts = _verdicts(known, said, relate)
        key = digest(REMEMBER, entry.kind, entry.subject, entry.statement)
        return _granted(transaction, known, said, verdicts, purpose=REMEMBER, key=key, word=word, at=at)

    return await store.write(work)


async def request_withdrawal(
    store: Store, scope: Scope, fact: Fact, *, word: PersonQuote | None, at: datetime
) -> RequestOutcome:
    """Take a fact back on a person's word, or hold that for review where there is none; the fact is never erased.

    Raises `NotFound` where nothing is left of the fact, else like `remember`.
    """

    def work(transaction: Session) -> RequestOutcome:
        known = lookup.read_knowledge(transaction, scope)
        members = sorted((one for one in known.assertions if one.id in fact.assertion_ids), key=lambda one: one.order)
        if not members:
            raise NotFound(f"nothing is left of the fact {fact.id!r} in {scope}")
        said_at = max([at, *(one.said_at + _TICK for one in members)])
        said = _withdrawn(scope, fact, word, said_at, at)
        why = "withdrawn on the person's word" if word else "withdrawn, approved by a person"
        verdict = Verdict(members[0].id, said.id, Relation.RETRACTS, why, JUDGE if word else PERSON)
        key = digest(WITHDRAW, fact.id)
        return _granted(transaction, known, said, [verdict], purpose=WITHDRAW, key=key, word=word, at=at)

    return await store.write(work)


def _granted(
    transaction: Session,
    known: Knowledge,
    said: Assertion,
    verdicts: Sequence[Verdict],
    *,
    purpose: str,
    key: str,
    word: PersonQuote | None,
    at: datetime,
) -> RequestOutcome:
    """Propose the run and let it count, or leave it to a person."""
    scope = said.scope
    # What is held goes by its content, so that asking again makes no second one; what counts is said each time anew.
    source = f"{AGENT}:{uuid4().hex}" if word else f"{AGENT}:{key}"
    if word is None and (refused := _refused(transaction, scope, source)):
        return refused
    proposal = Proposal(
        scope=scope,
        source=source,
        purpose=purpose,
        extractor=AGENT,
        judge=JUDGE,
        started_at=at,
        revision=known.revision,
        readings=(WindowReading(source if word else f"{source}:{uuid4().hex}", None, None, (said,)),),
        verdicts=tuple(verdicts),
    )
    is_held = word is None or _is_policy(transaction, scope, verdicts)
    run_id = ledger.propose_run(transaction, proposal, is_held=is_held)
    if is_held:
        return RequestOutcome(RequestStatus.HELD, run_id)
    ledger.apply_run(transaction, scope, run_id, at)
    return RequestOutcome(RequestStatus.DONE, run_id)


def _refused(transaction: Session, scope: Scope, source: str) -> RequestOutcome | None:
    """Return why a request without a person's word is not even held."""
    kept = runs.read_runs(transaction, scope)
    own = [one for one in kept if one.source == source]
    if own and own[-1].status == RunStatus.HELD:
        return RequestOutcome(RequestStatus.WAITING, own[-1].id)
    if own and own[-1].status == RunStatus.REJECTED:
        return RequestOutcome(RequestStatus.DECLINED, own[-1].id)
    waiting = sum(one.status == RunStatus.HELD and one.extractor == AGENT for one in kept)
    return RequestOutcome(RequestStatus.FULL) if waiting >= MAX_HELD_REQUESTS else None


def _is_policy(transaction: Session, scope: Scope, verdicts: Sequence[Verdict]) -> bool:
    policy = runs.policy_of(transaction, scope)
    retires = any(one.relation in RETIRING for one in verdicts)
    return policy.holds(retires=retires)


def _verdicts(known: Knowledge, said: Assertion, relate: Relate) -> list[Verdict]:
    """Return how the new statement relates to what was said before it."""
    before = [one for one in known.assertions if one.order < said.order and one.act is SpeechAct.STATE]
    decided = {one.id: relate(one, said) for one in before}
    again = [one for one in before if is_same_statement(one, said)]
    if again:
        last = max(again, key=lambda one: one.order)
        decided[last.id] = decided[last.id] or (Relation.SAME, "the same words")
    return [Verdict(one, said.id, *found, JUDGE) for one, found in decided.items() if found]


def _evidence(statement: str, word: PersonQuote | None) -> tuple[Evidence, ...]:
    # Without a person's word the statement counts only once a person has approved it, as it stands.
    if word is None:
        return (Evidence(EvidenceKind.PERSON, statement),)
    return (Evidence(EvidenceKind.PERSON, word.quote, speaker=word.speaker),)


def _stated(scope: Scope, entry: Entry, word: PersonQuote | None, said_at: datetime) -> Assertion:
    evidence = _evidence(entry.statement, word)
    value = entry.value or entry.statement
    content = (SpeechAct.STATE, entry.kind, entry.subject, entry.attribute, value, entry.statement, uuid4().hex)
    return Assertion(
        id=assertion_id(scope, None, content, evidence),
        scope=scope,
        session_id=None,
        act=SpeechAct.STATE,
        kind=entry.kind,
        subject=entry.subject,
        attribute=entry.attribute,
        value=value,
        statement=entry.statement,
        speaker=word.speaker if word else None,
        authority=Authority.STATED if word else Authority.CONFIRMED,
        said_at=said_at,
        evidence=evidence,
        valid_from=entry.valid_from,
        valid_to=entry.valid_to,
    )


def _withdrawn(scope: Scope, fact: Fact, word: PersonQuote | None, said_at: datetime, at: datetime) -> Assertion:
    statement = f"Withdrawn: {fact.statement}"
    evidence = _evidence(statement, word)
    content = (SpeechAct.RETRACT, fact.kind, fact.subject, fact.attribute, fact.value, fact.limited_to, uuid4().hex)
    return Assertion(
        id=assertion_id(scope, None, content, evidence),
        scope=scope,
        session_id=None,
        act=SpeechAct.RETRACT,
        kind=fact.kind,
        subject=fact.subject,
        attribute=fact.attribute,
        value=fact.value,
        statement=statement,
        speaker=word.speaker if word else None,
        authority=Authority.STATED if word else Authority.CONFIRMED,
        said_at=said_at,
        evidence=evidence,
        valid_from=at,
        limited_to=fact.limited_to,
    )

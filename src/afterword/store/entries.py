"""What the application itself puts in and takes out: each act is one run, applied at once and undone as one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import uuid4

from sqlmodel import Session

from afterword import telemetry
from afterword.facts.assertions import (
    EVERYTHING,
    OWNER,
    Assertion,
    Authority,
    Evidence,
    EvidenceKind,
    Kind,
    Relation,
    SpeechAct,
    Verdict,
    assertion_id,
)
from afterword.facts.fact import Fact, Status
from afterword.facts.knowledge import Knowledge
from afterword.facts.scopes import Scope
from afterword.facts.words import folded
from afterword.privacy.policy import Privacy
from afterword.privacy.prompt_injection import is_instruction
from afterword.store import ledger, lookup
from afterword.store.database.engine import Store
from afterword.store.proposals import Proposal, WindowReading

_log = telemetry.logs(__name__)

JUDGE = "rules-1"
# A clock may not have moved on between two acts; the order of saying must.
_TICK = timedelta(microseconds=1)
_SAME_MOMENT = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Entry:
    """What the application says: a sentence, and where known the slot, the value and when it holds (aware)."""

    statement: str
    kind: Kind = Kind.ENTITY
    subject: str = OWNER
    attribute: str = "note"
    value: str | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None


async def add_entry(store: Store, scope: Scope, entry: Entry, *, at: datetime) -> int:
    """Keep what the application says, at the authority of an application; return the run, which `undo` takes back.

    A sentence of the same kind that is already there gets one more supporter instead of a double. Secrets in it are
    masked. One that reads like an instruction to an assistant does not count before a person approves of the run in a
    review. Raises `Overtaken`
    where other writers were faster every time, and `StoreError` where the store does not answer.
    """
    source = f"application:{uuid4().hex}"
    entry = _masked(entry, store.privacy)

    def work(transaction: Session) -> int:
        known = lookup.read_knowledge(transaction, scope)
        said = _entry_assertion(scope, entry, source, next_unused_moment(at, known.assertions))
        equal = [one for one in known.assertions if is_same_statement(one, said)]
        verdicts = [_same(max(equal, key=lambda one: one.order), said)] if equal else []
        proposal = _proposal(scope, source, "application", at, known, [said], verdicts)
        if is_instruction(said.subject, said.attribute, said.value, said.statement):
            _log.warning("an entry of %s reads like an instruction to an assistant: see `afterword review`", scope)
            return ledger.propose_run(transaction, replace(proposal, counts={"quarantined": 1}), is_held=True)
        return _applied(transaction, scope, proposal)

    return await store.write(work)


async def withdraw_everything(store: Store, scope: Scope, *, at: datetime) -> int | None:
    """Withdraw everything that holds, will hold or is pending; return the run, which `undo` takes back.

    Nothing is erased: the facts are retracted. None where there was nothing to withdraw. Raises like `enter`.
    """
    source = f"clear:{uuid4().hex}"

    def work(transaction: Session) -> int | None:
        known = lookup.read_knowledge(transaction, scope)
        found = [
            one for one in lookup.read_facts(transaction, scope, at=at) if one.is_served or one.status is Status.PENDING
        ]
        if not found:
            return None
        takings = _takings(scope, known, found, source, at)
        verdicts = [_withdrawal(fact, taking) for taking, facts in takings for fact in facts]
        said = [taking for taking, _ in takings]
        return _applied(transaction, scope, _proposal(scope, source, "clear", at, known, said, verdicts))

    return await store.write(work)


def _applied(transaction: Session, scope: Scope, proposal: Proposal) -> int:
    run_id = ledger.propose_run(transaction, proposal)
    ledger.apply_run(transaction, scope, run_id, proposal.started_at)
    return run_id


def _masked(entry: Entry, privacy: Privacy) -> Entry:
    value, statement, subject = privacy.mask_fields(entry.attribute, entry.value or "", entry.statement, entry.subject)
    return replace(entry, statement=statement, subject=subject, value=value if entry.value else entry.value)


def _entry_assertion(scope: Scope, entry: Entry, source: str, said_at: datetime) -> Assertion:
    evidence = (Evidence(EvidenceKind.APPLICATION, entry.statement),)
    value = entry.value or entry.statement
    content = (SpeechAct.STATE, entry.kind, entry.subject, entry.attribute, value, entry.statement)
    # The source is part of the id: saying the same twice is two assertions, and so two supporters of one fact.
    return Assertion(
        id=assertion_id(scope, None, (*content, entry.valid_from, entry.valid_to, source), evidence),
        scope=scope,
        session_id=None,
        act=SpeechAct.STATE,
        kind=entry.kind,
        subject=entry.subject,
        attribute=entry.attribute,
        value=value,
        statement=entry.statement,
        speaker=None,
        authority=Authority.APPLICATION,
        said_at=said_at,
        evidence=evidence,
        valid_from=entry.valid_from,
        valid_to=entry.valid_to,
    )


def _takings(
    scope: Scope, known: Knowledge, facts: Iterable[Fact], source: str, at: datetime
) -> list[tuple[Assertion, list[Fact]]]:
    """Return a retraction for each subject and limit (no retirement reaches across those), with what it retracts."""
    said_at = max([at, *(one.said_at + _TICK for one in _members(known, facts))])
    groups: dict[tuple[str, str], list[Fact]] = {}
    for fact in facts:
        groups.setdefault((folded(fact.subject), folded(fact.limited_to or "")), []).append(fact)
    return [(_taking(scope, group[0], source, at, said_at), group) for group in groups.values()]


def _taking(scope: Scope, fact: Fact, source: str, at: datetime, said_at: datetime) -> Assertion:
    """Return the retraction of everything about one subject.

    Whoever may clear a memory acts for its owner, so it has the authority of the owner's word; its evidence says
    that the application passed it on.
    """
    statement = f"Everything known about {fact.subject} was withdrawn."
    evidence = (Evidence(EvidenceKind.APPLICATION, "clear"),)
    return Assertion(
        id=assertion_id(scope, None, (SpeechAct.RETRACT, fact.subject, fact.limited_to, source), evidence),
        scope=scope,
        session_id=None,
        act=SpeechAct.RETRACT,
        kind=Kind.ENTITY,
        subject=fact.subject,
        attribute=EVERYTHING,
        value="",
        statement=statement,
        speaker=None,
        authority=Authority.STATED,
        said_at=said_at,
        evidence=evidence,
        valid_from=at,
        limited_to=fact.limited_to,
    )


def _proposal(
    scope: Scope,
    source: str,
    purpose: str,
    at: datetime,
    known: Knowledge,
    assertions: Sequence[Assertion],
    verdicts: Sequence[Verdict],
) -> Proposal:
    return Proposal(
        scope=scope,
        source=source,
        purpose=purpose,
        extractor="application",
        judge=JUDGE,
        started_at=at,
        revision=known.revision,
        readings=(WindowReading(source, None, None, tuple(assertions)),),
        verdicts=tuple(verdicts),
    )


def next_unused_moment(at: datetime, assertions: Iterable[Assertion]) -> datetime:
    """Return the instant `at`, or the next one where something was said without a session at that very moment."""
    taken = [one.said_at for one in assertions if one.session_id is None and at <= one.said_at < at + _SAME_MOMENT]
    return max(taken) + _TICK if taken else at


def is_same_statement(one: Assertion, said: Assertion) -> bool:
    """Whether the two state the same sentence of the same kind, and the earlier one without a limit."""
    alike = one.act is SpeechAct.STATE and one.kind is said.kind and not one.limited_to
    return alike and folded(one.statement) == folded(said.statement)


def _same(one: Assertion, other: Assertion) -> Verdict:
    earlier, later = sorted((one, other), key=lambda item: item.order)
    return Verdict(earlier.id, later.id, Relation.SAME, "the same words", JUDGE)


def _withdrawal(fact: Fact, taking: Assertion) -> Verdict:
    return Verdict(fact.id, taking.id, Relation.RETRACTS, "the memory was cleared", JUDGE)


def _members(known: Knowledge, facts: Iterable[Fact]) -> list[Assertion]:
    ids = {one for fact in facts for one in fact.assertion_ids}
    return [one for one in known.assertions if one.id in ids]

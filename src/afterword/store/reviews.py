"""What a person decides: contested facts are settled, facts edited and confirmed; each act can be undone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import uuid4

from sqlmodel import Session

from afterword.errors import NotFound
from afterword.facts.assertions import (
    PERSON,
    Assertion,
    Authority,
    Evidence,
    EvidenceKind,
    Relation,
    SpeechAct,
    Verdict,
    assertion_id,
)
from afterword.facts.fact import Fact
from afterword.facts.judged_pairs import RefusedRetirement
from afterword.facts.knowledge import Knowledge
from afterword.facts.scopes import Scope
from afterword.facts.timeline import refused_retirements
from afterword.store import ledger, lookup
from afterword.store.database.engine import Store
from afterword.store.proposals import Proposal, WindowReading

_TICK = timedelta(microseconds=1)


class Decision(StrEnum):
    """What a person makes of a retirement that code has refused."""

    APPROVE = "approve"
    REJECT = "reject"
    KEEP_BOTH = "keep-both"


@dataclass(frozen=True, slots=True)
class Contest:
    """Two assertions that stand against each other: what a judge said, and why code refused to act on it."""

    earlier: Assertion
    later: Assertion
    relation: Relation
    judged_because: str
    refused_because: str

    @property
    def id(self) -> str:
        """The two assertions, as a person names them to decide."""
        return f"{self.earlier.id}:{self.later.id}"


def read_contests(transaction: Session, scope: Scope) -> list[Contest]:
    """Return what awaits a person's decision in a scope, in the order of saying."""
    known = lookup.read_knowledge(transaction, scope)
    by_id = {one.id: one for one in known.assertions}
    return [_contest(one, by_id) for one in refused_retirements(known.assertions, known.verdicts)]


async def decide_contest(
    store: Store, scope: Scope, earlier_id: str, later_id: str, decision: Decision, *, at: datetime
) -> int:
    """Carry out a person's decision on a contest; return its run.

    Approve: the later takes the earlier's place as the judge said. Reject: the later was wrong, the earlier stands.
    Keep both: they stand side by side. Raises `NotFound` where these two are not contested.
    """

    def decide(known: Knowledge, by_id: dict[str, Assertion]) -> tuple[list[Assertion], list[Verdict]]:
        open_ones = [_contest(one, by_id) for one in refused_retirements(known.assertions, known.verdicts)]
        for one in open_ones:
            if (one.earlier.id, one.later.id) == (earlier_id, later_id):
                return _settled(one, decision, at)
        raise NotFound(f"{earlier_id} and {later_id} are not contested in {scope}; see `afterword review`")

    return await _act(store, scope, decide, at)


@dataclass(frozen=True, slots=True)
class Wording:
    """A fact in a person's own words: the sentence, the value alone, and whom or what it is about."""

    statement: str
    value: str
    subject: str


async def edit_fact(store: Store, scope: Scope, fact: Fact, meant: Wording, *, is_change: bool, at: datetime) -> int:
    """Put a fact right in a person's own words; return the run.

    With `is_change` it held until now, else it was wrong from the start. Secrets in the words are masked.
    """
    value, statement, subject = store.privacy.mask_fields(fact.attribute, meant.value, meant.statement, meant.subject)
    relation = Relation.CHANGES if is_change else Relation.CORRECTS

    def decide(_: Knowledge, by_id: dict[str, Assertion]) -> tuple[list[Assertion], list[Verdict]]:
        members = [by_id[one] for one in fact.assertion_ids]
        worded = replace(members[0], statement=statement, value=value, subject=subject)
        lead = replace(worded, valid_from=None, valid_to=None, cue=None)
        said = _by_person(lead, SpeechAct.STATE, Authority.STATED, members, at)
        return [said], [Verdict(one.id, said.id, relation, "edited by a person", PERSON) for one in members]

    return await _act(store, scope, decide, at)


async def confirm_fact(store: Store, scope: Scope, fact: Fact, *, at: datetime) -> int:
    """Let a person stand for a fact as it is; return the run."""

    def decide(_: Knowledge, by_id: dict[str, Assertion]) -> tuple[list[Assertion], list[Verdict]]:
        members = [by_id[one] for one in fact.assertion_ids]
        said = _by_person(members[0], SpeechAct.STATE, Authority.CONFIRMED, members, at)
        return [said], [Verdict(members[-1].id, said.id, Relation.SAME, "confirmed by a person", PERSON)]

    return await _act(store, scope, decide, at)


async def withdraw_fact(store: Store, scope: Scope, fact: Fact, *, at: datetime) -> int:
    """Withdraw a fact on a person's word: it no longer holds from `at` on. Return the run. Nothing is erased."""

    def decide(_: Knowledge, by_id: dict[str, Assertion]) -> tuple[list[Assertion], list[Verdict]]:
        members = [by_id[id_] for id_ in fact.assertion_ids]
        statement = f"Withdrawn: {fact.statement}"
        withdrawn = replace(members[0], statement=statement, valid_from=at, valid_to=None, cue=None)
        said = _by_person(withdrawn, SpeechAct.RETRACT, Authority.STATED, members, at)
        reason = "withdrawn by a person"
        return [said], [Verdict(member.id, said.id, Relation.RETRACTS, reason, PERSON) for member in members]

    return await _act(store, scope, decide, at)


def _contest(one: RefusedRetirement, by_id: dict[str, Assertion]) -> Contest:
    verdict = one.verdict
    earlier, later = by_id[verdict.earlier_id], by_id[verdict.later_id]
    return Contest(earlier, later, verdict.relation, verdict.reason, one.reason)


def _settled(one: Contest, decision: Decision, at: datetime) -> tuple[list[Assertion], list[Verdict]]:
    earlier, later = one.earlier.id, one.later.id
    if decision is Decision.APPROVE:
        return [], [Verdict(earlier, later, one.relation, "approved by a person", PERSON)]
    if decision is Decision.KEEP_BOTH:
        return [], [Verdict(earlier, later, Relation.BESIDE, "a person keeps both", PERSON)]
    taken_back = _by_person(one.later, SpeechAct.RETRACT, Authority.STATED, [one.earlier, one.later], at)
    return [taken_back], [
        Verdict(earlier, later, Relation.BESIDE, "rejected by a person", PERSON),
        Verdict(later, taken_back.id, Relation.CORRECTS, "rejected by a person", PERSON),
    ]


def _by_person(
    like: Assertion, act: SpeechAct, authority: Authority, after: Sequence[Assertion], at: datetime
) -> Assertion:
    """Return what a person says now: like another assertion, after all of those that it bears on."""
    evidence = (Evidence(EvidenceKind.PERSON, like.statement),)
    content = (act, like.kind, like.subject, like.attribute, like.value, like.statement, uuid4().hex)
    return replace(
        like,
        id=assertion_id(like.scope, None, content, evidence),
        session_id=None,
        act=act,
        speaker=None,
        authority=authority,
        said_at=max([at, *(one.said_at + _TICK for one in after)]),
        evidence=evidence,
        time_is_guess=False,
    )


async def _act(
    store: Store,
    scope: Scope,
    decide: Callable[[Knowledge, dict[str, Assertion]], tuple[list[Assertion], list[Verdict]]],
    at: datetime,
) -> int:
    source = f"review:{uuid4().hex}"

    def work(transaction: Session) -> int:
        known = lookup.read_knowledge(transaction, scope)
        assertions, verdicts = decide(known, {one.id: one for one in known.assertions})
        proposal = Proposal(
            scope=scope,
            source=source,
            purpose="review",
            extractor=PERSON,
            judge=PERSON,
            started_at=at,
            revision=known.revision,
            readings=(WindowReading(source, None, None, tuple(assertions)),),
            verdicts=tuple(verdicts),
        )
        run_id = ledger.propose_run(transaction, proposal)
        ledger.apply_run(transaction, scope, run_id, at)
        return run_id

    return await store.write(work)

"""Requests of agents to remember, correct or withdraw something.

A request to remember or withdraw is done at once if it cites a person's own words. Every other request is held until a
person approves it. A held request is closed if the extractor later finds the same content in a person's words. Each
request is one run, which can be undone. Nothing is erased.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from uuid import uuid4

from sqlmodel import Session

from afterword.errors import NotFound
from afterword.facts.assertions import (
    PERSON,
    RETIRING_RELATIONS,
    Assertion,
    Authority,
    Evidence,
    EvidenceKind,
    Relation,
    SpeechAct,
    Verdict,
    digest,
)
from afterword.facts.fact import Fact
from afterword.facts.knowledge import Knowledge
from afterword.facts.removals import UnnamedRemovalCounts, count_unnamed_withdrawal
from afterword.facts.scopes import Scope
from afterword.facts.words import folded, words_as_written
from afterword.privacy.normalisation import searchable_text, undisguised_text
from afterword.privacy.prompt_injection import is_instruction
from afterword.store import ledger, lookup, runs
from afterword.store.database.engine import Store
from afterword.store.entered_statements import (
    JUDGE,
    Entry,
    FactEdit,
    check_differs_from_fact,
    entered_statement,
    first_unused_moment,
    is_same_statement,
    masked_entry,
    moment_after_assertions,
)
from afterword.store.forgetting.pauses import read_pause
from afterword.store.proposals import Proposal, WindowReading, read_proposal
from afterword.store.scope_rows import approval_policy_of

REMEMBER, CORRECT, WITHDRAW = "remember", "correct", "withdraw"
AGENT = "agent"
"""The name that the runs of agents' requests have as their extractor."""
MAX_HELD_REQUESTS = 100
"""How many requests of agents may wait in one scope. Otherwise a hostile page could flood the person's review."""

_ARTICLES = frozenset("a an the der die das el la le il o".split())

Relate = Callable[[Assertion, Assertion], tuple[Relation, str] | None]
"""A function that returns how a later assertion relates to an earlier one, and why; None if both hold."""


@dataclass(frozen=True, slots=True)
class PersonQuote:
    """A person's own words, and who said them."""

    quote: str
    speaker: str


@dataclass(frozen=True, slots=True)
class Claim:
    """The content of a statement or a withdrawal, for comparison. Letter case, blanks and articles are ignored."""

    subject: str
    attribute: str
    value: str
    is_withdrawal: bool = False

    @classmethod
    def of(cls, subject: str, attribute: str, value: str, *, is_withdrawal: bool = False) -> Claim:
        """Return a claim, whose words are normalised for comparison."""
        words = (word for word in words_as_written(searchable_text(value).casefold()) if word not in _ARTICLES)
        return cls(folded(subject), folded(attribute), " ".join(words), is_withdrawal)

    @classmethod
    def in_assertion(cls, said: Assertion) -> Claim:
        """Return the claim of an assertion."""
        return cls.of(said.subject, said.attribute, said.value, is_withdrawal=said.act is not SpeechAct.STATE)

    @classmethod
    def all_in(cls, said: Assertion) -> set[Claim]:
        """Return the claim of an assertion, and its whole sentence as a claim. Equal sentences have equal content."""
        sentence = cls.of(said.subject, "", said.statement, is_withdrawal=said.act is not SpeechAct.STATE)
        return {cls.in_assertion(said), sentence}


class RequestStatus(StrEnum):
    """What became of a request. `request_statement` explains the values."""

    DONE = "done"
    HELD = "held"
    WAITING = "waiting"
    DECLINED = "declined"
    FULL = "full"
    PAUSED = "paused"
    SECRET = "secret"
    OFF_RECORD = "off the record"


@dataclass(frozen=True, slots=True)
class RequestOutcome:
    """What became of a request, and the id of its run, None if no run was made.

    `is_command` says whether the request reads like an instruction to an assistant.
    """

    answer: RequestStatus
    run_id: int | None = None
    is_command: bool = False


async def request_statement(
    store: Store, scope: Scope, entry: Entry, *, quote: PersonQuote | None, relate: Relate, at: datetime
) -> RequestOutcome:
    """Store a statement that a person's own words support (`quote`); hold it for review if there are no such words.

    With a person's words it has the authority of that person, and replaces earlier statements as `relate` says. A held
    statement does not count before a person approves its run. The policy of the scope may hold statements with a
    person's words too, and a statement that reads like an instruction to an assistant is held in any case.

    Equal requests are held only once: the status is `WAITING` if one is held already, and `DECLINED` if a person has
    rejected it. It is `FULL` if 100 requests wait, `PAUSED` if the scope is paused, `SECRET` if the statement contains
    a secret, and `OFF_RECORD` if it asks to be off the record. Raises `Overtaken` if other writers were faster every
    time, and `StoreError` if the store does not answer.
    """

    def propose(transaction: Session, known: Knowledge, reasons: Mapping[str, int]) -> RequestOutcome:
        own_quote = None if reasons else quote
        said = entered_statement(
            scope,
            entry,
            _evidence(entry.statement, own_quote),
            authority=Authority.STATED if own_quote else Authority.CONFIRMED,
            said_at=first_unused_moment(at, known.assertions),
        )
        verdicts = _verdicts_on_earlier(known, said, relate)
        key = digest(REMEMBER, entry.kind, entry.subject, entry.statement)
        request = _Request(REMEMBER, key, said, verdicts, own_quote, at, reasons)
        return _propose(transaction, request, known.revision)

    return await _propose_unless_refused(store, scope, entry, propose)


async def request_correction(
    store: Store, scope: Scope, fact: Fact, entry: Entry, *, is_change: bool, at: datetime
) -> RequestOutcome:
    """Hold a statement for review that replaces a fact as soon as a person approves it.

    With `is_change` the fact held until now, otherwise it was wrong from the start. Raises `NotFound` if the fact was
    forgotten meanwhile, and `ArgumentInvalid` if the entry says what the fact says. Other errors, and the statuses, are
    those of `request_statement`.
    """
    check_differs_from_fact(fact, FactEdit(entry.statement, entry.value))
    relation = Relation.CHANGES if is_change else Relation.CORRECTS

    def propose(transaction: Session, known: Knowledge, reasons: Mapping[str, int]) -> RequestOutcome:
        members = _members(known, fact)
        said = entered_statement(
            scope,
            entry,
            _evidence(entry.statement, None),
            # To approve the statement is the same decision as to edit the fact.
            authority=Authority.STATED,
            said_at=moment_after_assertions(at, members),
        )
        said = replace(said, limited_to=fact.limited_to, is_flagged=fact.is_flagged or None)
        reason = "corrected, approved by a person"
        verdicts = [Verdict(member.id, said.id, relation, reason, PERSON) for member in members]
        key = digest(CORRECT, fact.id, relation, entry.statement, entry.value)
        request = _Request(CORRECT, key, said, verdicts, None, at, reasons)
        return _propose(transaction, request, known.revision)

    return await _propose_unless_refused(store, scope, entry, propose)


async def request_withdrawal(
    store: Store, scope: Scope, fact: Fact, *, quote: PersonQuote | None, at: datetime
) -> RequestOutcome:
    """Withdraw a fact as a person's own words ask (`quote`); hold the withdrawal for review if there are no such words.

    Nothing is erased. The withdrawal of a fact about health or safety is held too, unless the person's words say that
    it is over. Raises `NotFound` if the fact was forgotten meanwhile, and other errors like `request_statement`.
    """
    unnamed = count_unnamed_withdrawal(fact, quote.quote) if quote else UnnamedRemovalCounts()
    quote = None if unnamed.must_wait else quote

    def work(transaction: Session) -> RequestOutcome:
        known = lookup.read_knowledge(transaction, scope)
        members = _members(known, fact)
        said = _withdrawal(fact, members, quote, at)
        reason = "withdrawn on the person's word" if quote else "withdrawn, approved by a person"
        judge = JUDGE if quote else PERSON
        # Each statement has a verdict of its own, so that none comes back if the comparison of two is undone.
        verdicts = [Verdict(member.id, said.id, Relation.RETRACTS, reason, judge) for member in members]
        key = digest(WITHDRAW, fact.id)
        request = _Request(WITHDRAW, key, said, verdicts, quote, at, unnamed.counts_if_waiting())
        return _propose(transaction, request, known.revision)

    return await store.write(work)


def _withdrawal(fact: Fact, members: Sequence[Assertion], quote: PersonQuote | None, at: datetime) -> Assertion:
    """Return an assertion that withdraws a fact, which these assertions (`members`) state."""
    first = min(members, key=lambda member: member.order)
    statement = f"Withdrawn: {fact.statement}"
    return entered_statement(
        first.scope,
        # The fact may have a later name of its subject. If that renaming is undone, the withdrawal must still hold.
        Entry(statement, fact.kind, first.subject, fact.attribute, fact.value, valid_from=at),
        _evidence(statement, quote),
        authority=Authority.STATED if quote else Authority.CONFIRMED,
        said_at=moment_after_assertions(at, members),
        act=SpeechAct.RETRACT,
        limited_to=first.limited_to,
    )


async def _propose_unless_refused(
    store: Store,
    scope: Scope,
    entry: Entry,
    propose: Callable[[Session, Knowledge, Mapping[str, int]], RequestOutcome],
) -> RequestOutcome:
    """Call `propose` with what the scope holds and with the reasons to hold the entry back, and return its outcome.

    `propose` is not called if the entry must not be stored. Then the outcome says why.
    """
    if store.privacy.asks_off_record(undisguised_text(entry.statement)):
        return RequestOutcome(RequestStatus.OFF_RECORD)
    if masked_entry(entry, store.privacy) != entry:
        return RequestOutcome(RequestStatus.SECRET)
    is_command = is_instruction(entry.subject, entry.attribute, entry.value, entry.statement)
    reasons = {"quarantined": 1} if is_command else {}

    def work(transaction: Session) -> RequestOutcome:
        if read_pause(transaction, scope) is not None:
            return RequestOutcome(RequestStatus.PAUSED)
        return propose(transaction, lookup.read_knowledge(transaction, scope), reasons)

    return replace(await store.write(work), is_command=is_command)


def _members(known: Knowledge, fact: Fact) -> list[Assertion]:
    members = [said for said in known.assertions if said.id in fact.assertion_ids]
    if not members:
        raise NotFound(f"the fact {fact.id!r} does not exist in {fact.scope} any more")
    return members


@dataclass(frozen=True, slots=True)
class _Request:
    """What a request says, and how that relates to earlier statements. Equal requests have the same purpose and key.

    Without a `quote` of a person the request must be held. `reasons` counts further reasons to hold it.
    """

    purpose: str
    key: str
    said: Assertion
    verdicts: Sequence[Verdict]
    quote: PersonQuote | None
    at: datetime
    reasons: Mapping[str, int]

    def proposal(self, source: str, revision: int) -> Proposal:
        """Return the proposal of its run."""
        return Proposal(
            scope=self.said.scope,
            source=source,
            purpose=self.purpose,
            extractor=AGENT,
            judge=JUDGE,
            started_at=self.at,
            revision=revision,
            readings=(WindowReading(source if self.quote else f"{source}:{uuid4().hex}", None, None, (self.said,)),),
            verdicts=tuple(self.verdicts),
            counts=self.reasons,
        )


def _propose(transaction: Session, request: _Request, revision: int) -> RequestOutcome:
    """Propose the run of a request, and apply it unless it must be held."""
    scope = request.said.scope
    # Equal held requests share one source, so that only one of them is held.
    source = f"{AGENT}:{uuid4().hex}" if request.quote else f"{AGENT}:{request.key}"
    if request.quote is None and (outcome := _earlier_outcome(transaction, scope, source)):
        return outcome
    proposal = request.proposal(source, revision)
    retires = any(verdict.relation in RETIRING_RELATIONS for verdict in request.verdicts)
    if request.quote is None or approval_policy_of(transaction, scope).holds(retires=retires):
        return RequestOutcome(RequestStatus.HELD, ledger.propose_run(transaction, proposal, is_held=True))
    return RequestOutcome(RequestStatus.DONE, ledger.propose_and_apply(transaction, proposal)[0])


def satisfy_held_requests(transaction: Session, scope: Scope, said: Iterable[Assertion]) -> int:
    """Mark the held requests of agents whose content is among these assertions as satisfied; return how many."""
    if not runs.has_run(transaction, scope, status=ledger.RunStatus.HELD, extractor=AGENT):
        return 0
    claims = {claim for assertion in said for claim in Claim.all_in(assertion)}
    if not claims:
        return 0
    satisfied = [
        run
        for run in runs.read_runs(transaction, scope, statuses=[ledger.RunStatus.HELD])
        if run.extractor == AGENT
        and any(Claim.all_in(asked) & claims for asked in read_proposal(transaction, run)[0].assertions)
    ]
    for run in satisfied:
        ledger.satisfy_run(transaction, scope, run.id)
    return len(satisfied)


def _earlier_outcome(transaction: Session, scope: Scope, source: str) -> RequestOutcome | None:
    """Return the outcome if a request without a person's words cannot be held, None if it can.

    It cannot be held if an equal request waits or was rejected, or if too many requests wait.
    """
    stored = runs.read_runs(transaction, scope)
    equal = [run for run in stored if run.source == source]
    answers: dict[str, RequestStatus] = {
        ledger.RunStatus.HELD: RequestStatus.WAITING,
        ledger.RunStatus.REJECTED: RequestStatus.DECLINED,
    }
    if equal and (answer := answers.get(equal[-1].status)):
        return RequestOutcome(answer, equal[-1].id)
    waiting = sum(run.status == ledger.RunStatus.HELD and run.extractor == AGENT for run in stored)
    return RequestOutcome(RequestStatus.FULL) if waiting >= MAX_HELD_REQUESTS else None


def _verdicts_on_earlier(known: Knowledge, said: Assertion, relate: Relate) -> list[Verdict]:
    """Return the verdicts on the pairs of the new statement and each earlier one to which it relates."""
    before = [each for each in known.assertions if each.act is SpeechAct.STATE and each.order < said.order]
    relations = {earlier.id: relate(earlier, said) for earlier in before}
    equal = [earlier for earlier in before if is_same_statement(earlier, said)]
    if equal:
        last = max(equal, key=lambda earlier: earlier.order)
        relations[last.id] = relations[last.id] or (Relation.SAME, "the same words")
    return [Verdict(earlier_id, said.id, *relation, JUDGE) for earlier_id, relation in relations.items() if relation]


def _evidence(statement: str, quote: PersonQuote | None) -> Evidence:
    # Without a person's own words, the statement itself is what a person approves, so it is the evidence.
    if quote is None:
        return Evidence(EvidenceKind.PERSON, statement)
    return Evidence(EvidenceKind.PERSON, quote.quote, speaker=quote.speaker)

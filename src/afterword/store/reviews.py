"""Decisions of a person: on contests, on requests to erase, and on single facts. Each is a run and can be undone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from sqlalchemy import tuple_
from sqlmodel import Session, col, select

from afterword.errors import NotFound, StateConflict
from afterword.facts.assertions import PERSON, RETIRING_RELATIONS, Assertion, Authority, Relation, SpeechAct, Verdict
from afterword.facts.corrections import corrected_statement_ids, judges_by_rival_id, with_end_of_correction
from afterword.facts.fact import ENDED_STATUSES, Fact
from afterword.facts.knowledge import Knowledge
from afterword.facts.scopes import Scope
from afterword.facts.validity.fact_history import FactHistory
from afterword.facts.validity.wording import reworded_value
from afterword.store import fact_ids, lookup
from afterword.store.database.engine import Store
from afterword.store.database.statements import fetch_where_in
from afterword.store.entered_statements import (
    JUDGE,
    FactEdit,
    check_may_be_kept,
    edited_assertion,
    first_unused_moment,
    is_same_statement,
    restated_by_person,
)
from afterword.store.forgetting.forgotten_statements import DISMISS, DISMISSED, read_erase_requests_in_force
from afterword.store.ledger import RunStatus, apply_or_hold_if_instruction, propose_and_apply_with_effect
from afterword.store.proposals import Proposal, RunEffect
from afterword.store.reading.withdrawal_check import check_may_be_withdrawn
from afterword.store.scope_rows import scope_key
from afterword.store.tables import FactAssertionRow, RunRow, RunVerdictRow, VerdictRow

_AssertionsAndVerdicts = tuple[list[Assertion], list[Verdict]]


class Decision(StrEnum):
    """What a person decides about a contest."""

    APPROVE = "approve"
    REJECT = "reject"
    KEEP_BOTH = "keep-both"


@dataclass(frozen=True, slots=True)
class Contest:
    """Two assertions that contradict each other. A judge said that the later one retires the earlier one (`relation`,
    `judged_because`), but a rule did not allow it (`refused_because`)."""

    earlier: Assertion
    later: Assertion
    relation: Relation
    judged_because: str
    refused_because: str

    @property
    def id(self) -> str:
        """The id by which a person names the contest: the ids of both assertions, joined by a colon."""
        return f"{self.earlier.id}:{self.later.id}"


def read_contests(transaction: Session, scope: Scope, *, at: datetime) -> list[Contest]:
    """Return the contests of a scope that wait for a person's decision at `at`, in the order of saying.

    If one of the two facts holds no more, there is nothing to decide.
    """
    # Two assertions can be contested only if a verdict says that one retires the other.
    query = select(VerdictRow.earlier_id, VerdictRow.later_id).where(
        VerdictRow.scope_id == scope_key(transaction, scope), col(VerdictRow.relation).in_(map(str, RETIRING_RELATIONS))
    )
    judged_ids = {id_ for pair in transaction.exec(query) for id_ in pair}
    if not judged_ids:
        return []
    contests = _contests_between(lookup.read_knowledge(transaction, scope), judged_ids)
    return _undecided_contests(transaction, scope, contests, at=at)


def _undecided_contests(
    transaction: Session, scope: Scope, contests: Sequence[Contest], *, at: datetime
) -> list[Contest]:
    """Return the contests whose two facts both still hold."""
    if not contests:
        return []
    ids = {said.id for contest in contests for said in (contest.earlier, contest.later)}
    ties = fetch_where_in(transaction, FactAssertionRow, "assertion_id", ids)
    facts = lookup.read_facts_by_id(transaction, scope, {tie.fact_id for tie in ties}, at=at)
    over = {id_ for fact in facts if fact.status in ENDED_STATUSES for id_ in fact.assertion_ids}
    return [contest for contest in contests if over.isdisjoint((contest.earlier.id, contest.later.id))]


async def decide_contest(
    store: Store, scope: Scope, earlier_id: str, later_id: str, decision: Decision, *, at: datetime
) -> RunEffect:
    """Carry out a person's decision on a contest, and return its run and what it changed.

    Approve: the later assertion replaces the earlier as the judge said. Reject: the later was wrong, the earlier holds.
    Keep both: both hold. Raises `NotFound` if the two assertions are not contested, or one of them holds no more.
    """

    pair = (earlier_id, later_id)

    def work(transaction: Session) -> RunEffect:
        known = lookup.read_knowledge(transaction, scope)
        waiting = _undecided_contests(transaction, scope, _contests_between(known, pair), at=at)
        contests = {(contest.earlier.id, contest.later.id): contest for contest in waiting}
        if pair not in contests:
            raise NotFound(f"{earlier_id} and {later_id} are not contested in {scope}; see `afterword review`")
        proposal = _proposal(scope, known, _assertions_and_verdicts_of(contests[pair], decision, at), at)
        return propose_and_apply_with_effect(
            transaction, proposal, lambda fact: not set(pair).isdisjoint(fact.assertion_ids)
        )

    return await store.write(work)


async def reject_erase_request(store: Store, scope: Scope, request_id: str, *, at: datetime) -> RunEffect:
    """Reject a request to erase: the facts that it hides count again. Return the run and what it changed.

    Raises `NotFound` if there is no such request in force, and `StateConflict` if a person has approved it.
    """

    def work(transaction: Session) -> RunEffect:
        requests = read_erase_requests_in_force(transaction, scope)
        chosen = next((request for request in requests if request.request.id == request_id), None)
        if chosen is None:
            raise NotFound(f"no request {request_id!r} to erase in {scope}; see `afterword review`")
        known = lookup.read_knowledge(transaction, scope)
        reason = "nobody asked to erase it, decided a person"
        pairs = _pairs_hidden_by(known, request_id)
        verdicts = [Verdict(*pair, Relation.BESIDE, reason, PERSON) for pair in sorted(pairs)]
        check_pairs_undecided(transaction, scope, verdicts)
        proposal = _proposal(scope, known, ([], verdicts), at)
        if not verdicts:
            proposal = replace(proposal, source=f"{DISMISSED}{request_id}", purpose=DISMISS)
        return propose_and_apply_with_effect(
            transaction, proposal, lambda fact: not chosen.ids.isdisjoint(fact.assertion_ids)
        )

    return await store.write(work)


def _pairs_hidden_by(known: Knowledge, request_id: str) -> set[tuple[str, str]]:
    """Return the pairs of a request to erase and each statement that it hides."""
    judged = [verdict for verdict in known.verdicts_by_id.get(request_id, ()) if verdict.later_id == request_id]
    pairs = {verdict.pair for verdict in judged if verdict.relation is Relation.RETRACTS}
    # A person may have decided before that the request does not concern some of these facts.
    return pairs - {
        verdict.pair for verdict in judged if (verdict.judge, verdict.relation) == (PERSON, Relation.BESIDE)
    }


def check_pairs_undecided(transaction: Session, scope: Scope, verdicts: Iterable[Verdict]) -> None:
    """Raise `StateConflict` if a person has already decided between the same two facts, and that decision is in force.

    Of two such decisions only the one that was made or redone last would count.
    """
    known = lookup.read_knowledge(transaction, scope)
    pairs = [verdict.pair for verdict in verdicts if verdict.judge == PERSON]
    pairs = [pair for pair in pairs if all(id_ in known.by_id for id_ in pair)]
    if not pairs:
        return
    judged = known.judged_pairs({id_ for pair in pairs for id_ in pair})

    def facts(pair: tuple[str, str]) -> frozenset[str]:
        return frozenset(judged.roots[id_] for id_ in pair)

    contested = {facts(pair) for pair in pairs if len(facts(pair)) > 1}
    decided = [
        pair for pair, judging in judged.verdicts.items() if judging.judge == PERSON and facts(pair) in contested
    ]
    if decided:
        run_id = _deciding_run_id(transaction, scope, decided)
        reason = f"run {run_id} has decided between the same facts; undo it first: `afterword undo {run_id}`"
        raise StateConflict(reason)


def _deciding_run_id(transaction: Session, scope: Scope, pairs: Sequence[tuple[str, str]]) -> int | None:
    """Return the id of the last applied run in which a person decided on one of these pairs."""
    deciding_runs = (
        select(RunRow.id)
        .where(col(RunRow.id) == col(RunVerdictRow.run_id), col(RunVerdictRow.verdict_key) == col(VerdictRow.key))
        .where(RunRow.scope_id == scope_key(transaction, scope), RunRow.status == RunStatus.APPLIED)
        .where(VerdictRow.judge == PERSON, tuple_(col(VerdictRow.earlier_id), col(VerdictRow.later_id)).in_(pairs))
    )
    return transaction.exec(deciding_runs.order_by(col(RunRow.id).desc()).limit(1)).first()


async def edit_fact(
    store: Store, scope: Scope, fact_id: str, edit: FactEdit, *, is_change: bool, at: datetime
) -> RunEffect:
    """Replace a fact by a person's own words (`edit`); return the run and what it changed.

    With `is_change` the fact held until now, otherwise it was wrong from the start. The days on which the fact begins
    and ends stay as they were said, unless the new words name other days. Secrets in the words are masked. Words
    that read like an instruction to an assistant count only after a person has approved the run in a review. Raises
    `NotFound`, and `ArgumentInvalid` if the words say what the fact says, ask to be off the record, or are a secret.
    """
    check_may_be_kept(edit.statement or "", edit.value, store.privacy)

    def edited(fact: Fact, members: Sequence[Assertion]) -> Assertion:
        return edited_assertion(fact, edit, members, at if is_change else None, store.privacy)

    relation = Relation.CHANGES if is_change else Relation.CORRECTS
    return await _decide_on_fact(store, scope, fact_id, _FactDecision(edited, relation, "edited by a person"), at)


async def confirm_fact(store: Store, scope: Scope, fact_id: str, *, at: datetime) -> RunEffect:
    """Mark a fact as confirmed by a person, and return the run and what it changed. Raises `NotFound`."""

    def confirmed(fact: Fact, members: Sequence[Assertion]) -> Assertion:
        return replace(members[0], is_flagged=fact.is_flagged, authority=Authority.CONFIRMED)

    decision = _FactDecision(confirmed, Relation.SAME, "confirmed by a person")
    return await _decide_on_fact(store, scope, fact_id, decision, at)


async def flag_fact(store: Store, scope: Scope, fact_id: str, *, is_flagged: bool, at: datetime) -> RunEffect:
    """Mark a fact that an agent must never miss, or remove the mark; return the run and what it changed.

    Raises `NotFound`.
    """

    def flagged(_: Fact, members: Sequence[Assertion]) -> Assertion:
        # It repeats the last statement of the fact. A confirmation counts as one more statement, a flag does not.
        last = members[-1]
        authority = Authority.APPLICATION if last.authority is Authority.CONFIRMED else last.authority
        return replace(last, is_flagged=is_flagged, authority=authority)

    reason = "flagged by a person" if is_flagged else "not flagged by a person"
    decision = _FactDecision(flagged, Relation.SAME, reason, is_flag=True)
    return await _decide_on_fact(store, scope, fact_id, decision, at)


async def withdraw_fact(store: Store, scope: Scope, fact_id: str, *, at: datetime) -> RunEffect:
    """Withdraw a fact for a person, so that it no longer holds from `at` on; return the run and what it changed.

    Nothing is erased. Raises `NotFound`, and `StateConflict` if the fact does not hold any more, nor again later.
    """

    def withdrawn(fact: Fact, members: Sequence[Assertion]) -> Assertion:
        like = replace(members[0], act=SpeechAct.RETRACT, authority=Authority.STATED)
        return replace(like, statement=f"Withdrawn: {fact.statement}", valid_from=at, valid_to=None, cue=None)

    decision = _FactDecision(withdrawn, Relation.RETRACTS, "withdrawn by a person")
    return await _decide_on_fact(store, scope, fact_id, decision, at)


def _contests_between(known: Knowledge, ids: Iterable[str]) -> list[Contest]:
    """Return the contests between these assertions, in the order of saying."""
    ids = {id_ for id_ in ids if id_ in known.by_id}
    pairs = known.judged_pairs(ids)
    refusals = [refusal for refusal in pairs.refused_retirements if ids.issuperset(refusal.verdict.pair)]
    refusals.sort(key=lambda refusal: tuple(pairs.position[id_] for id_ in refusal.verdict.pair))
    return [
        Contest(
            known.by_id[refusal.verdict.earlier_id],
            known.by_id[refusal.verdict.later_id],
            refusal.verdict.relation,
            refusal.verdict.reason,
            refusal.reason,
        )
        for refusal in refusals
    ]


def _assertions_and_verdicts_of(contest: Contest, decision: Decision, at: datetime) -> _AssertionsAndVerdicts:
    earlier, later = contest.earlier.id, contest.later.id
    if decision is Decision.APPROVE:
        return [], [Verdict(earlier, later, contest.relation, "approved by a person", PERSON)]
    if decision is Decision.KEEP_BOTH:
        return [], [Verdict(earlier, later, Relation.BESIDE, "a person keeps both", PERSON)]
    withdrawn = replace(contest.later, act=SpeechAct.RETRACT, authority=Authority.STATED)
    withdrawal = restated_by_person(withdrawn, [contest.earlier, contest.later], at)
    return [withdrawal], [
        Verdict(earlier, later, Relation.BESIDE, "rejected by a person", PERSON),
        Verdict(later, withdrawal.id, Relation.CORRECTS, "rejected by a person", PERSON),
    ]


@dataclass(frozen=True, slots=True)
class _FactDecision:
    """What a person decides on a fact.

    `restate` makes a new assertion of the fact and its assertions. It is entered with the `relation` to each of these
    assertions, for a `reason`. A flag (`is_flag`) does not make a fact that has ended hold again.
    """

    restate: Callable[[Fact, Sequence[Assertion]], Assertion]
    relation: Relation
    reason: str
    is_flag: bool = False

    @property
    def is_edit(self) -> bool:
        """Whether new words replace those of the fact."""
        return self.relation in (Relation.CHANGES, Relation.CORRECTS)

    def assertions_and_verdicts(
        self, known: Knowledge, fact: Fact, members: Sequence[Assertion], now: datetime
    ) -> _AssertionsAndVerdicts:
        """Return the new assertion, and its verdicts on the assertions of the fact (`members`) and on its rivals."""
        standing = with_end_of_correction(known, fact, now) if self.is_edit else fact
        meant = self.restate(standing, members)
        rivals: dict[str, str] = {}
        is_now = self._is_about_now(standing, meant)
        if self.is_edit or is_now:
            has_same_slot = meant.slot == members[0].slot
            rivals = judges_by_rival_id(known, fact, is_now=is_now, has_same_slot=has_same_slot, judge=JUDGE)
        if self.relation is Relation.CORRECTS:
            rivals |= dict.fromkeys(corrected_statement_ids(known, fact), PERSON)
        # A flag says nothing new, so it stands directly after the last statement of the fact, before what ended it.
        said_at = members[-1].said_at if self.is_flag else now
        said = restated_by_person(meant, [*members, *map(known.by_id.__getitem__, rivals)], said_at)
        return [said], [
            *self._verdicts_on_members(said, members),
            *self._verdicts_on_rivals(known, said, members, rivals),
        ]

    def _is_about_now(self, standing: Fact, meant: Assertion) -> bool:
        """Return whether the new assertion says what holds now."""
        if self.relation is Relation.CORRECTS:
            # A correction of a former fact has the end of that fact, if it had held at all.
            return standing.status not in ENDED_STATUSES or None in (meant.valid_to, standing.valid_to)
        return self.relation is Relation.CHANGES or (self.relation is Relation.SAME and not self.is_flag)

    def _verdicts_on_members(self, said: Assertion, members: Sequence[Assertion]) -> list[Verdict]:
        # If it says the same, one verdict is enough to add it to the fact.
        judged = members[-1:] if self.relation is Relation.SAME else members
        return [Verdict(member.id, said.id, self.relation, self.reason, PERSON) for member in judged]

    def _verdicts_on_rivals(
        self, known: Knowledge, said: Assertion, members: Sequence[Assertion], rivals: Mapping[str, str]
    ) -> list[Verdict]:
        """Return the verdicts on a repeated statement of another fact, and on the rivals, given with their judges."""
        repeated: list[Assertion] = []
        if self.is_edit:
            others = (other for other in known.assertions if other not in members and other.slot == said.slot)
            same = (other for other in others if is_same_statement(other, said))
            repeated = sorted(same, key=lambda other: other.order)
        verdicts = [Verdict(last.id, said.id, Relation.SAME, "the same words", PERSON) for last in repeated[-1:]]
        # The new words contradict what the old ones did. A rule may refuse again that they replace it.
        because = "a person has decided on a fact that contradicts it"
        repeated_ids = {other.id for other in repeated}
        for other_id, judge in rivals.items():
            if other_id not in repeated_ids:
                is_correction = judge == PERSON and self.relation is Relation.CORRECTS
                instead = Relation.CORRECTS if is_correction else Relation.CHANGES
                verdicts.append(Verdict(other_id, said.id, instead, because, judge))
        return verdicts


async def _decide_on_fact(store: Store, scope: Scope, fact_id: str, decision: _FactDecision, at: datetime) -> RunEffect:
    """Carry out a person's decision on a fact; return the run and what it changed."""

    def work(transaction: Session) -> RunEffect:
        known = lookup.read_knowledge(transaction, scope)
        # Another decision may have been made since this one was asked for.
        now = first_unused_moment(at, known.assertions)
        fact = fact_ids.read_fact(transaction, scope, fact_id, at=now)
        slot = (fact.subject, fact.attribute)
        (history,) = known.histories(fact.assertion_ids)
        if decision.relation is Relation.RETRACTS:
            check_may_be_withdrawn(transaction, fact, history, at=now)
        members = _members_as_shown(known, fact, history, now)
        content = decision.assertions_and_verdicts(known, fact, members, now)
        return (apply_or_hold_if_instruction if decision.is_edit else propose_and_apply_with_effect)(
            transaction,
            _proposal(scope, known, content, at),
            lambda other: (other.subject, other.attribute) == slot,
        )

    return await store.write(work)


def _members_as_shown(known: Knowledge, fact: Fact, history: FactHistory, now: datetime) -> list[Assertion]:
    """Return the assertions that state a fact, the first with the words in which the fact is shown now.

    A person decides on the sentence that is shown now, not on a part of the sentence that has ended.
    """
    members = [known.by_id[member_id] for member_id in fact.assertion_ids]
    if rewording := history.rewording_at(now):
        words = rewording.statement
        members[0] = replace(members[0], statement=words, value=reworded_value(members[0].value, words))
    return members


def _proposal(scope: Scope, known: Knowledge, decided: _AssertionsAndVerdicts, at: datetime) -> Proposal:
    return Proposal.of_entries(
        scope, "review", *decided, extractor=PERSON, judge=PERSON, at=at, revision=known.revision
    )

"""Entries and withdrawals by an application. Each call makes one run, which is applied at once and can be undone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlmodel import Session

from afterword.facts.assertions import (
    EVERYTHING,
    Assertion,
    Authority,
    Evidence,
    EvidenceKind,
    Relation,
    SpeechAct,
    Verdict,
)
from afterword.facts.fact import Status
from afterword.facts.scopes import Scope
from afterword.facts.words import folded
from afterword.store import ledger, lookup
from afterword.store.database.engine import Store
from afterword.store.entered_statements import (
    JUDGE,
    Entry,
    check_may_be_kept,
    entered_statement,
    first_unused_moment,
    is_same_statement,
    masked_entry,
    moment_after_assertions,
)
from afterword.store.proposals import Proposal, RunEffect


async def add_entry(store: Store, scope: Scope, entry: Entry, *, at: datetime) -> RunEffect:
    """Store a statement of an application; return the run and what it changed.

    The run can be undone. If the same sentence of the same kind is already known, its fact gets more support instead of
    a duplicate. Secrets in the entry are masked. An entry that reads like an instruction to an assistant counts only
    after a person has approved the run in a review. Raises `ArgumentInvalid` if the statement asks to be off the record
    or says nothing but a secret, `Overtaken` if other writers were faster every time, and `StoreError` if the store
    does not answer.
    """
    check_may_be_kept(entry.statement, entry.value, store.privacy)
    entry = masked_entry(entry, store.privacy)
    evidence = Evidence(EvidenceKind.APPLICATION, entry.statement)

    def work(transaction: Session) -> RunEffect:
        known = lookup.read_knowledge(transaction, scope)
        said_at = first_unused_moment(at, known.assertions)
        said = entered_statement(scope, entry, evidence, authority=Authority.APPLICATION, said_at=said_at)
        equal = [earlier for earlier in known.assertions if is_same_statement(earlier, said)]
        verdicts = [_same_words_verdict(max(equal, key=lambda earlier: earlier.order), said)] if equal else []
        proposal = _proposal(scope, "application", [said], verdicts, at, known.revision)
        return ledger.apply_or_hold_if_instruction(transaction, proposal)

    return await store.write(work)


async def withdraw_everything(store: Store, scope: Scope, *, at: datetime) -> RunEffect | None:
    """Withdraw every fact that holds, will hold or is pending; return the run and what it changed.

    The run can be undone. Nothing is erased. Returns None if there is nothing to withdraw. Raises like `add_entry`.
    """

    def work(transaction: Session) -> RunEffect | None:
        known = lookup.read_knowledge(transaction, scope)
        facts = lookup.read_facts(transaction, scope, at=at)
        facts = [fact for fact in facts if fact.is_served or fact.status is Status.PENDING]
        if not facts:
            return None
        statements = [known.by_id[name] for fact in facts for name in fact.assertion_ids]
        proposal = _proposal(scope, "clear", *_withdrawals(scope, statements, at), at, known.revision)
        return ledger.propose_and_apply_with_effect(transaction, proposal)

    return await store.write(work)


def _withdrawals(scope: Scope, statements: Sequence[Assertion], at: datetime) -> tuple[list[Assertion], list[Verdict]]:
    """Return assertions that withdraw these statements, and the verdicts that say so.

    Each statement is withdrawn by itself, so that nothing comes back if a comparison or a renaming is undone.
    """
    said_at = moment_after_assertions(at, statements)
    # One withdrawal applies only to statements with the same subject and the same limit.
    groups: dict[tuple[str, str], list[Assertion]] = {}
    for statement in statements:
        groups.setdefault((folded(statement.subject), folded(statement.limited_to or "")), []).append(statement)
    withdrawals = [(_withdrawal(scope, group[0], at, said_at), group) for group in groups.values()]
    verdicts = [
        Verdict(statement.id, said.id, Relation.RETRACTS, "the memory was cleared", JUDGE)
        for said, group in withdrawals
        for statement in group
    ]
    return [said for said, _ in withdrawals], verdicts


def _withdrawal(scope: Scope, known: Assertion, at: datetime, said_at: datetime) -> Assertion:
    """Return an assertion that withdraws everything about the subject of `known`, within the limit of `known`.

    Whoever may clear a memory acts for its owner, so the withdrawal has the same authority as a statement of the owner.
    Its evidence says that it came from the application.
    """
    statement = f"Everything known about {known.subject} was withdrawn."
    return entered_statement(
        scope,
        Entry(statement, subject=known.subject, attribute=EVERYTHING, valid_from=at),
        Evidence(EvidenceKind.APPLICATION, "clear"),
        authority=Authority.STATED,
        said_at=said_at,
        act=SpeechAct.RETRACT,
        limited_to=known.limited_to,
    )


def _same_words_verdict(first: Assertion, second: Assertion) -> Verdict:
    earlier, later = sorted((first, second), key=lambda said: said.order)
    return Verdict(earlier.id, later.id, Relation.SAME, "the same words", JUDGE)


def _proposal(
    scope: Scope, purpose: str, said: Sequence[Assertion], verdicts: Sequence[Verdict], at: datetime, revision: int
) -> Proposal:
    return Proposal.of_entries(
        scope, purpose, said, verdicts, extractor="application", judge=JUDGE, at=at, revision=revision
    )

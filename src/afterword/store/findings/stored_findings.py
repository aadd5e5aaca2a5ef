"""Findings of a scope: which agents' findings it keeps, reading them, people's decisions, and findings saved by a tool.

Each finding that an agent saves by a tool makes one run, which is applied at once and can be undone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from uuid import uuid4

from sqlalchemy import update
from sqlmodel import Session, col, select

from afterword import telemetry
from afterword.errors import NotFound
from afterword.facts.findings import (
    AgentFinding,
    FindingPolicy,
    FindingReview,
    FindingStatus,
    ToolFindingPolicy,
    statement_key,
    united_findings,
)
from afterword.facts.scopes import Scope
from afterword.privacy.policy import Privacy
from afterword.privacy.prompt_injection import is_instruction
from afterword.privacy.redaction import count_masks
from afterword.store import ledger, scope_rows
from afterword.store.database.engine import Store
from afterword.store.database.statements import fetch_rows, select_columns
from afterword.store.fact_ids import shared_prefix_hint
from afterword.store.findings.finding_rows import FINDING, FindingRow, finding_id, finding_of, is_finding_forgotten
from afterword.store.forgetting.pauses import read_pause
from afterword.store.forgetting.tombstone_rows import read_forgotten_content
from afterword.store.lookup import select_live_run_ids
from afterword.store.proposals import Proposal, WindowReading
from afterword.store.tables import RunRow, RunWindowRow

SAVED = "finding"
"""The purpose of the runs by which a tool saves a finding."""
_log = telemetry.logs(__name__)


def finding_policy_of(transaction: Session, scope: Scope, privacy: Privacy) -> FindingPolicy:
    """Return which agents' findings a scope keeps: its own policy, or the policy of the store if it has none."""
    row = scope_rows.scope_row(transaction, scope)
    return FindingPolicy.from_json(row.findings) if row is not None and row.findings else privacy.findings


def tells_words_of_others(transaction: Session, scope: Scope, privacy: Privacy) -> bool:
    """Return whether agents are told the words of other people than the owner of the scope."""
    row = scope_rows.scope_row(transaction, scope)
    return privacy.other_people if row is None or row.other_people is None else bool(row.other_people)


def set_finding_policy(transaction: Session, scope: Scope, policy: FindingPolicy) -> None:
    """Set which agents' findings a scope keeps from now on."""
    scope_rows.change_scope(transaction, scope_rows.lock_scope(transaction, scope), findings=policy.as_json())
    record_change_without_facts(transaction, scope)


def set_telling_words_of_others(transaction: Session, scope: Scope, *, are_told: bool) -> None:
    """Set whether agents are told the words of other people than the owner of the scope."""
    scope_rows.change_scope(transaction, scope_rows.lock_scope(transaction, scope), other_people=are_told)
    record_change_without_facts(transaction, scope)


def record_change_without_facts(transaction: Session, scope: Scope) -> None:
    """Raise the revision of a scope, so that caches notice a change that concerns no fact."""
    scope_id = scope_rows.scope_key(transaction, scope)
    scope_rows.raise_revision(transaction, scope_id)
    version = scope_rows.revision_and_stamp_of(transaction, scope)
    scope_rows.record_changed_facts(transaction, scope_id, version, source="findings", fact_ids=(), is_unlinked=False)


def read_findings(transaction: Session, scope: Scope, known_at: datetime | None = None) -> list[AgentFinding]:
    """Return the findings of the live runs (now or at `known_at`), newest first. Equal statements are one finding."""
    scope_id = scope_rows.scope_key(transaction, scope)
    windows = select(RunWindowRow.window_id).where(
        col(RunWindowRow.run_id).in_(select_live_run_ids(scope_id, known_at))
    )
    query = select_columns(FindingRow).where(
        col(FindingRow.scope_id) == scope_id, col(FindingRow.window_id).in_(windows)
    )
    return united_findings(finding_of(row, scope) for row in fetch_rows(transaction, query)) if scope_id else []


def read_finding(transaction: Session, scope: Scope, id_or_prefix: str) -> AgentFinding:
    """Return a finding by the id of any of its repetitions, or by the beginning of such an id.

    Raises `NotFound` if the scope has no such finding, or several.
    """
    matching = [
        finding
        for finding in read_findings(transaction, scope)
        if id_or_prefix and any(name.startswith(id_or_prefix) for name in finding.sayings)
    ]
    if len(matching) != 1:
        ids = [finding.id for finding in matching]
        hint = shared_prefix_hint(ids) if matching else "see `afterword findings --all`"
        raise NotFound(f"no single finding {id_or_prefix!r} in {scope}: {hint}")
    return matching[0]


def read_sayings(transaction: Session, scope: Scope, finding: AgentFinding) -> list[tuple[AgentFinding, list[int]]]:
    """Return every repetition of a finding, oldest first, each with the ids of the runs that contain it."""
    scope_id = scope_rows.scope_key(transaction, scope)
    query = select_columns(FindingRow).where(col(FindingRow.scope_id) == scope_id)
    rows = [row for row in fetch_rows(transaction, query) if finding_of(row, scope).key == finding.key]
    sayings = []
    for row in sorted(rows, key=lambda row: (row.said_at, row.id)):
        runs = select(RunRow.id).where(
            col(RunRow.id) == col(RunWindowRow.run_id), RunWindowRow.window_id == row.window_id
        )
        ids = [run_id for run_id in transaction.exec(runs.order_by(col(RunRow.id))) if run_id is not None]
        sayings.append((finding_of(row, scope), ids))
    return sayings


def decide_finding(transaction: Session, scope: Scope, finding_id: str, review: FindingReview) -> AgentFinding:
    """Approve or drop a finding with all of its repetitions, as a person decided; return it. Raises `NotFound`."""
    scope_rows.lock_scope(transaction, scope)
    finding = read_finding(transaction, scope, finding_id)
    is_said = col(FindingRow.id).in_([saying.id for saying, _ in read_sayings(transaction, scope, finding)])
    transaction.connection().execute(update(FindingRow).where(is_said).values(review=str(review)))
    record_change_without_facts(transaction, scope)
    return read_finding(transaction, scope, finding.id)


class SavingOutcome(StrEnum):
    """What became of a finding that an agent wanted to save."""

    SAVED = "saved"
    WAITING = "waiting"
    KNOWN = "known"
    DROPPED = "dropped"
    NOT_KEPT = "not_kept"
    SECRET = "secret"
    FORGOTTEN = "forgotten"


_STORED_BEFORE = {
    FindingStatus.CURRENT: SavingOutcome.KNOWN,
    FindingStatus.WAITING: SavingOutcome.WAITING,
    FindingStatus.DROPPED: SavingOutcome.DROPPED,
}


@dataclass(frozen=True, slots=True)
class SavedFinding:
    """What became of a finding, and the id of the run that stored it, None if nothing was stored."""

    outcome: SavingOutcome
    run_id: int | None = None


async def save_finding(
    store: Store,
    scope: Scope,
    *,
    agent: str,
    statement: str,
    topic: str,
    at: datetime,
    after_tools: bool = False,
    is_from_notes: bool = False,
) -> SavedFinding:
    """Store what an agent found, if the scope keeps findings of this agent.

    A finding with a secret is not stored. A finding that reads like an instruction to an assistant is held until a
    person approves its run, but an equal finding is not held twice. A finding from a turn in which tools were used
    (`after_tools`) waits for a person too, unless the scope keeps such findings. A finding that is already known is
    stored as a repetition, but not if the agent only has it from its own notes (`is_from_notes`). A finding that a
    person has dropped is not stored.
    """
    statement, topic = store.privacy.mask_value_and_others(FINDING, statement, topic)

    def work(transaction: Session) -> SavedFinding:
        policy = finding_policy_of(transaction, scope, store.privacy)
        waits = after_tools and policy.agents_with_tools is ToolFindingPolicy.REVIEW
        review = FindingReview.WAITING if waits else FindingReview.OPEN
        finding = AgentFinding("", scope, None, agent, topic, statement, at, policy.expiry(at), review=review)
        refusal = _refusal_of(transaction, finding, policy) or _former_outcome(transaction, finding, is_from_notes)
        if refusal is not None:
            return SavedFinding(refusal)
        if (held_in := _find_held_run_id(transaction, finding)) is not None:
            return SavedFinding(SavingOutcome.WAITING, held_in)
        return _store_finding(transaction, replace(finding, after_tools=after_tools), at)

    return await store.write(work)


def _refusal_of(transaction: Session, finding: AgentFinding, policy: FindingPolicy) -> SavingOutcome | None:
    """Return why a finding must not be stored in its scope, None if it may be."""
    if not policy.keeps_findings_of(finding.agent) or read_pause(transaction, finding.scope) is not None:
        return SavingOutcome.NOT_KEPT
    if count_masks((finding.statement, finding.topic)):
        return SavingOutcome.SECRET
    if is_finding_forgotten(read_forgotten_content(transaction, finding.scope), finding.statement, finding.said_at):
        return SavingOutcome.FORGOTTEN
    return None


def _former_outcome(transaction: Session, finding: AgentFinding, is_from_notes: bool) -> SavingOutcome | None:
    """Return what became of an equal finding that is stored already, None if this finding is stored all the same."""
    at, stored = finding.said_at, read_findings(transaction, finding.scope)
    status = next((each.status_at(at) for each in stored if each.key == finding.key), FindingStatus.EXPIRED)
    is_settled = status is FindingStatus.DROPPED or (is_from_notes and status is not FindingStatus.EXPIRED)
    return _STORED_BEFORE[status] if is_settled else None


def _find_held_run_id(transaction: Session, finding: AgentFinding) -> int | None:
    """Return the id of the run in which an equal statement waits for a person's approval, None if none waits."""
    held = select(RunRow.id, FindingRow.statement).where(
        RunRow.scope_id == scope_rows.scope_key(transaction, finding.scope),
        RunRow.status == ledger.RunStatus.HELD,
        col(RunWindowRow.run_id) == col(RunRow.id),
        col(FindingRow.window_id) == col(RunWindowRow.window_id),
    )
    return next((id_ for id_, statement in transaction.exec(held) if statement_key(statement) == finding.key), None)


def _store_finding(transaction: Session, finding: AgentFinding, at: datetime) -> SavedFinding:
    scope, source = finding.scope, f"{SAVED}:{uuid4().hex}"
    is_quarantined = is_instruction(finding.statement, finding.topic, finding.agent)
    finding = replace(finding, id=finding_id(scope, source, source, finding))
    revision = scope_rows.revision_of(transaction, scope)
    reading = WindowReading(source, None, None, (), findings=(finding,))
    counts = {"findings": 1, **({"quarantined": 1} if is_quarantined else {})}
    proposal = Proposal(scope, source, SAVED, "tool", "none", at, revision, (reading,), counts=counts)
    is_held = is_quarantined or scope_rows.approval_policy_of(transaction, scope) is scope_rows.ApprovalPolicy.HOLD_ALL
    if is_held:
        run_id = ledger.propose_run(transaction, proposal, is_held=True)
        if is_quarantined:
            message = "a finding of %s reads like an instruction to an assistant: see `afterword review`"
            _log.warning(message, telemetry.scope_mark(scope))
        return SavedFinding(SavingOutcome.WAITING, run_id)
    run_id, _ = ledger.propose_and_apply(transaction, proposal)
    is_open = finding.review is FindingReview.OPEN
    return SavedFinding(SavingOutcome.SAVED if is_open else SavingOutcome.WAITING, run_id)

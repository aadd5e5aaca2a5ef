"""Findings that an agent saves by a tool. Each makes one run, which is applied at once and can be undone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from uuid import uuid4

from sqlmodel import Session

from afterword import telemetry
from afterword.facts.findings import AgentFinding, FindingReview, FindingStatus, WithTools
from afterword.facts.scopes import Scope
from afterword.privacy.prompt_injection import is_instruction
from afterword.privacy.redaction import count_masks
from afterword.store import ledger, scope_rows
from afterword.store.database.engine import Store
from afterword.store.findings.finding_rows import FINDING, finding_id, is_finding_forgotten
from afterword.store.findings.finding_settings import finding_policy_of
from afterword.store.findings.held_findings import read_findings
from afterword.store.forgetting.pauses import read_pause
from afterword.store.forgetting.tombstone_rows import read_forgotten
from afterword.store.proposals import Proposal, WindowReading
from afterword.store.scope_rows import Policy

SAVED = "finding"
"""The purpose of the runs by which a tool saves a finding."""

_log = telemetry.logs(__name__)


class SavingOutcome(StrEnum):
    """What became of a finding that an agent wanted to save."""

    SAVED = "saved"
    WAITING = "waiting"
    KNOWN = "known"
    NOT_KEPT = "not_kept"
    SECRET = "secret"
    FORGOTTEN = "forgotten"


@dataclass(frozen=True, slots=True)
class SavedFinding:
    """What became of a finding, and the run that has it; None if nothing was stored."""

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

    The text is masked as all text. What holds a secret is not stored. What reads like an instruction to an assistant
    waits for a person as a held run; after tools were used, the finding waits unless the scope keeps such findings.
    A finding that is there already is stored again as a repetition, but not if the agent only had it from its own notes
    (`is_from_notes`).
    """
    statement, topic = store.privacy.mask_fields(FINDING, statement, topic)

    def work(transaction: Session) -> SavedFinding:
        policy = finding_policy_of(transaction, scope, store.privacy)
        if not policy.names(agent) or read_pause(transaction, scope) is not None:
            return SavedFinding(SavingOutcome.NOT_KEPT)
        if count_masks((statement, topic)):
            return SavedFinding(SavingOutcome.SECRET)
        forgotten = read_forgotten(transaction, scope)
        if is_finding_forgotten(forgotten, statement, at):
            return SavedFinding(SavingOutcome.FORGOTTEN)
        waits = after_tools and policy.agents_with_tools is WithTools.REVIEW
        review = FindingReview.WAITING if waits else FindingReview.OPEN
        finding = AgentFinding("", scope, None, agent, topic, statement, at, policy.expiry(at), review=review)
        known = (each.status_at(at) for each in read_findings(transaction, scope) if each.key == finding.key)
        status = next(known, FindingStatus.EXPIRED)
        if status is FindingStatus.DROPPED or (is_from_notes and status is not FindingStatus.EXPIRED):
            return SavedFinding(SavingOutcome.KNOWN)
        return _store_finding(transaction, replace(finding, after_tools=after_tools), at)

    return await store.write(work)


def _store_finding(transaction: Session, finding: AgentFinding, at: datetime) -> SavedFinding:
    scope, source = finding.scope, f"{SAVED}:{uuid4().hex}"
    is_quarantined = is_instruction(finding.statement, finding.topic, finding.agent)
    finding = replace(finding, id=finding_id(scope, source, source, finding))
    revision = scope_rows.revision_of(transaction, scope)
    reading = WindowReading(source, None, None, (), findings=(finding,))
    counts = {"findings": 1, **({"quarantined": 1} if is_quarantined else {})}
    proposal = Proposal(scope, source, SAVED, "tool", "none", at, revision, (reading,), counts=counts)
    is_held = is_quarantined or scope_rows.policy_of(transaction, scope) is Policy.HOLD_ALL
    run_id = ledger.propose_run(transaction, proposal, is_held=is_held)
    if is_held:
        if is_quarantined:
            message = "a finding of %s reads like an instruction to an assistant: see `afterword review`"
            _log.warning(message, telemetry.scope_mark(scope))
        return SavedFinding(SavingOutcome.WAITING, run_id)
    ledger.apply_run(transaction, scope, run_id, at)
    is_open = finding.review is FindingReview.OPEN
    return SavedFinding(SavingOutcome.SAVED if is_open else SavingOutcome.WAITING, run_id)

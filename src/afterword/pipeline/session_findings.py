"""Reading the findings of agents in one session, and storing them as a run apart from the facts of the session."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial

from sqlmodel import Session

from afterword.extractors.agent_findings import (
    FindingCandidate,
    FindingsExtractor,
    ground_findings,
)
from afterword.extractors.errors import AnswerCut, ExtractionError
from afterword.extractors.extractor import Usage, Window
from afterword.extractors.windows import cut_windows, halve_window, window_key
from afterword.facts.assertions import digest
from afterword.facts.findings import MOST_PER_SESSION, AgentFinding, FindingPolicy
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Role, Transcript
from afterword.pipeline.budget import Account, CostTracker
from afterword.pipeline.errors import ScopeBusy
from afterword.pipeline.intake import turns_begin_with
from afterword.pipeline.run_storage import add_and_apply_run, retry_or_raise_busy
from afterword.pipeline.session_outcome import SessionOutcome
from afterword.privacy.tombstones import ForgottenContent
from afterword.store import ledger, scope_rows, sessions
from afterword.store.database.engine import Store
from afterword.store.findings.finding_rows import finding_id, findings_run_source, is_finding_forgotten
from afterword.store.forgetting.pauses import read_pause
from afterword.store.forgetting.tombstone_rows import read_forgotten_content
from afterword.store.proposals import Proposal, WindowReading, read_window_findings
from afterword.telemetry import Stage, stage

PURPOSE = "findings"
"""The purpose of the runs that store what agents found in a session, and of their requests."""


async def read_and_store_findings(
    store: Store,
    outcome: SessionOutcome,
    policy: FindingPolicy,
    *,
    extractor: object,
    tracker: CostTracker,
    clock: Callable[[], datetime],
) -> int | None:
    """Store what agents found in a processed session, and return the id of the run; None if there is nothing new.

    No model is asked if the `policy` keeps no findings of the agents in the session, or if the extractor does not
    extract findings. Windows that were read before are not read again. Raises an `ExtractionError` if the model gave no
    answer, and `BudgetReached` if the budget leaves no room. After any error the session is queued again.
    """
    if not isinstance(extractor, FindingsExtractor) or not _agents_to_read(outcome.transcript, policy):
        return None
    scope, session_id, transcript = outcome.scope, outcome.session_id, outcome.transcript
    account = Account(tracker, store, scope, findings_run_source(session_id), PURPOSE)
    reading = _FindingsReading(store, scope, session_id, transcript, policy, extractor, account, clock)
    with stage(Stage.EXTRACT), account.charging_requests():
        async with _queueing_after_failure(store, scope, session_id):
            return await reading.run(cut_windows(transcript, outcome.owners))


@asynccontextmanager
async def _queueing_after_failure(store: Store, scope: Scope, session_id: str) -> AsyncIterator[None]:
    """Queue the session again if the block fails or is cancelled."""
    is_read = False
    try:
        yield
        is_read = True
    finally:
        if not is_read:
            await store.write(lambda transaction: sessions.mark_pending(transaction, scope, session_id))


def _agents_to_read(transcript: Transcript | Window, policy: FindingPolicy) -> tuple[str, ...]:
    """Return the agents of a transcript whose findings are kept, in the order in which they first speak."""
    speakers = (turn.speaker for turn in transcript.turns if turn.role is Role.AGENT)
    return tuple(dict.fromkeys(speaker for speaker in speakers if policy.keeps_findings_of(speaker)))


class _FindingsReading:
    def __init__(
        self,
        store: Store,
        scope: Scope,
        session_id: str,
        transcript: Transcript,
        policy: FindingPolicy,
        extractor: FindingsExtractor,
        account: Account,
        clock: Callable[[], datetime],
    ) -> None:
        self.store, self.scope, self.session_id, self.transcript = store, scope, session_id, transcript
        self.policy, self.extractor, self.account, self.clock = policy, extractor, account, clock
        self.source = findings_run_source(session_id)
        self.last_keys: Sequence[str] | None = None
        self.usage = Usage()
        self.refused: Counter[str] = Counter()

    async def run(self, windows: Sequence[Window]) -> int | None:
        read = [window for window in windows if _agents_to_read(window, self.policy)]
        keys = [self._window_key(window) for window in read]
        known, self.last_keys = await self.store.read(
            lambda transaction: (
                read_window_findings(transaction, self.scope, self.source),
                ledger.last_window_keys(transaction, self.scope, self.source),
            )
        )
        if self.last_keys == keys or not keys:
            return None
        readings = [
            await self._read_window(window, key, known.get(key)) for window, key in zip(read, keys, strict=True)
        ]
        return await retry_or_raise_busy(
            partial(self.store.write, partial(self._write_run, readings)),
            f"{self.scope} kept changing while findings of {self.session_id!r} were stored; run it again",
        )

    def _window_key(self, window: Window) -> str:
        version = f"{self.extractor.findings_version}:{self.policy.advice}:{self.policy.agents_with_tools}"
        return digest(window_key(window, version), _agents_to_read(window, self.policy), length=40)

    async def _read_window(self, window: Window, key: str, known: tuple[AgentFinding, ...] | None) -> WindowReading:
        first, last = window.turns[0].number, window.turns[-1].number
        if known is not None:
            return WindowReading(key, first, last, (), findings=known)
        await asyncio.sleep(0)
        grounded = ground_findings(
            await self._candidates(window),
            self.transcript,
            scope=self.scope,
            session_id=self.session_id,
            policy=self.policy,
            privacy=self.store.privacy,
        )
        self.refused.update(grounded.refused)
        findings = (replace(said, id=finding_id(self.scope, self.source, key, said)) for said in grounded.findings)
        return WindowReading(key, first, last, (), findings=tuple(findings))

    async def _candidates(self, window: Window) -> tuple[FindingCandidate, ...]:
        """Return what the extractor proposes for a window. A window that is too long is read in halves."""
        agents = _agents_to_read(window, self.policy)
        try:
            extraction = await self.extractor.extract_findings(window, agents, advice=self.policy.advice)
        except ExtractionError as error:
            self.usage += error.usage
            halves = halve_window(window) if isinstance(error, AnswerCut) else None
            if halves is None:
                raise
            return tuple([candidate for half in halves for candidate in await self._candidates(half)])
        self.usage += extraction.usage
        return extraction.candidates

    def _write_run(self, readings: Sequence[WindowReading], transaction: Session) -> int | None:
        scope_rows.lock_scope(transaction, self.scope)
        if read_pause(transaction, self.scope) is not None:
            return None
        turns = sessions.read_turns(transaction, self.scope, self.session_id)
        last_keys = ledger.last_window_keys(transaction, self.scope, self.source)
        if last_keys != self.last_keys or not turns_begin_with(turns, self.transcript.turns):
            raise ScopeBusy(f"session {self.session_id!r} of {self.scope} was read further, or forgotten, meanwhile")
        forgotten = read_forgotten_content(transaction, self.scope, self.session_id)
        proposal = self._proposal(_kept_readings(readings, forgotten), scope_rows.revision_of(transaction, self.scope))
        is_held = scope_rows.approval_policy_of(transaction, self.scope) is scope_rows.ApprovalPolicy.HOLD_ALL
        return add_and_apply_run(transaction, proposal, self.account, is_held=is_held)

    def _proposal(self, readings: Sequence[WindowReading], revision: int) -> Proposal:
        refused = {f"refused_{reason}": number for reason, number in self.refused.items()}
        found = sum(len(reading.findings) for reading in readings)
        return Proposal(
            scope=self.scope,
            source=self.source,
            purpose=PURPOSE,
            extractor=self.extractor.findings_version,
            judge="none",
            started_at=self.clock(),
            revision=revision,
            readings=tuple(readings),
            calls=self.usage.calls,
            prompt_tokens=self.usage.prompt_tokens,
            completion_tokens=self.usage.completion_tokens,
            counts={"windows": len(readings), "findings": found, **refused},
        )


def _kept_readings(readings: Sequence[WindowReading], forgotten: ForgottenContent) -> list[WindowReading]:
    """Return the readings without forgotten findings, and with at most `MOST_PER_SESSION` findings."""
    most, kept_readings = MOST_PER_SESSION, []
    for reading in readings:
        kept = [each for each in reading.findings if not is_finding_forgotten(forgotten, each.statement, each.said_at)]
        kept_readings.append(replace(reading, findings=tuple(kept[:most])))
        most -= len(kept[:most])
    return kept_readings

"""Processing one session from its saved state to facts: read, extract, ground, judge, propose, apply.

No transaction is open while a model is asked. One transaction reads the session, one reads what its statements are
compared with, and one writes the run. If the scope has changed by then, the session is judged again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from sqlmodel import Session

from afterword import telemetry
from afterword.errors import ScopeMoved
from afterword.extractors.errors import ExtractionError
from afterword.extractors.extractor import Extractor, Usage
from afterword.extractors.judge import Judge
from afterword.extractors.words_called_private import hide_in_state
from afterword.facts.assertions import Assertion
from afterword.facts.knowledge import Knowledge
from afterword.pipeline.budget import Account, Budget, CostTracker, as_cost_tracker
from afterword.pipeline.intake import (
    PreparedSession,
    Saved,
    measure_queue_age,
    with_later_turns,
    with_revision_if_unchanged,
)
from afterword.pipeline.judging import JudgingResult, PairJudging, PairsToJudge
from afterword.pipeline.resolution import Changes, fact_changes_of_statements, replace_statements
from afterword.pipeline.run_storage import retry_or_raise_busy
from afterword.pipeline.session_findings import read_and_store_findings
from afterword.pipeline.session_outcome import SessionOutcome, counting_failures, report_outcome, skipped_outcome
from afterword.pipeline.session_reader import SessionReader
from afterword.pipeline.window_reader import rejection_counts
from afterword.privacy.policy import OFF_THE_RECORD
from afterword.store import agent_requests, ledger, lookup, scope_rows, sessions
from afterword.store.database.engine import Store
from afterword.store.forgetting.pauses import PAUSED, note_skipped_session, read_pause
from afterword.store.forgetting.tombstone_rows import note_turns_of_state
from afterword.store.proposals import KnowledgeChange, Proposal, WindowReading
from afterword.store.statement_ids import replacements_of_taken_ids, with_new_ids
from afterword.telemetry import Stage

PATIENT_TRIES = 6
"""How often a session is judged without a lock on its scope. After that the scope is locked before it is judged."""


@dataclass(frozen=True, slots=True)
class _Comparison:
    """The statements of a session, and what they are compared with.

    `before` is everything that is known of the scope, including the stored statements of the session (`old`). In
    `combined` the `new` statements have taken the place of the old ones.
    """

    policy: scope_rows.ApprovalPolicy
    before: Knowledge
    combined: Knowledge
    old: Sequence[Assertion]
    new: Sequence[Assertion]
    to_judge: PairsToJudge


@dataclass(frozen=True, slots=True)
class _Decision:
    """The run to store for a session, what will be known after it, and how the facts change."""

    proposal: Proposal
    known: KnowledgeChange
    changes: Changes
    is_held: bool
    unjudged: int


async def process_session(
    store: Store,
    saved: Saved,
    *,
    extractor: Extractor,
    judge: Judge | None = None,
    apply: bool = True,
    budget: Budget | CostTracker | None = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    before: asyncio.Task[None] | None = None,
) -> SessionOutcome:
    """Extract and store the facts of one session, and return the outcome.

    Processing an unchanged session again makes no calls. If the session has grown, only its last window and the new
    ones are extracted, and the statements of these windows are replaced. With `apply=False` the proposal is stored but
    not applied. Model calls stay within the `budget` (sessions share a `CostTracker`), and their cost is stored.
    `before` is the task that processes the previous session of the scope: judging waits for it.

    Raises a `ReadError` if the state cannot be read, `SourceInvalid` if the session has no times, an `ExtractionError`
    if the extractor or the judge gave no answer (its `usage` is the cost of the whole session), `BudgetReached` if the
    budget leaves no room for an extraction, `TimeReached` if the work took longer than the budget allows, and
    `ScopeBusy` if other processes kept changing the scope. In these cases nothing of the session is stored, with one
    exception: findings of agents are read and stored last, so an error there leaves the facts of the session stored.
    """
    account = Account(as_cost_tracker(budget), store, saved.scope, ledger.session_run_source(saved.session_id))
    judge = _rules_judge() if judge is None else judge
    processing = _SessionProcessing(store, saved, extractor, judge, apply, clock, account, before)
    stage = telemetry.stage(Stage.SESSION, scope=saved.scope, session_id=saved.session_id)
    with stage, counting_failures():
        outcome = await processing.run()
        report_outcome(outcome, is_first=processing.is_first)
        return outcome


def _rules_judge() -> Judge:
    # Imported only here: a caller with a judge of its own never loads the rules.
    from afterword.extractors.rules import RulesJudge

    return RulesJudge()


class _SessionProcessing:
    """The processing of one session. It keeps what was extracted and judged, so that a repeated try makes no calls."""

    def __init__(
        self,
        store: Store,
        saved: Saved,
        extractor: Extractor,
        judge: Judge,
        apply: bool,
        clock: Callable[[], datetime],
        account: Account,
        previous: asyncio.Task[None] | None,
    ) -> None:
        self.store, self.saved, self.extractor, self.judge = store, saved, extractor, judge
        self.apply, self.clock, self.account, self.previous = apply, clock, account, previous
        self.reader = SessionReader(store, saved, extractor)
        self.judging = PairJudging(store, saved.scope, judge)
        self.finding_policy = store.privacy.findings
        self.tries, self.is_first = 0, False

    @property
    def usage(self) -> Usage:
        return self.reader.usage + self.judging.usage

    async def run(self) -> SessionOutcome:
        """Store the facts of the session, and after them what agents found in it."""
        if self.saved.off_the_record:
            return skipped_outcome(self.saved.scope, self.saved.session_id, OFF_THE_RECORD)
        with self.account.charging_requests():
            async with self.account.time_limit():
                outcome = await self._store_facts()
        if self.apply and outcome.transcript.turns:
            await read_and_store_findings(
                self.store,
                outcome,
                self.finding_policy,
                extractor=self.extractor,
                tracker=self.account.tracker,
                clock=self.clock,
            )
        return outcome

    async def _store_facts(self) -> SessionOutcome:
        try:
            return await retry_or_raise_busy(
                self._try_once,
                f"{self.saved.scope} kept changing while {self.saved.session_id!r} was judged; run it again",
            )
        except ExtractionError as error:
            error.usage = self.usage  # of the whole session, earlier answers included
            raise

    async def _try_once(self) -> SessionOutcome:
        self.tries += 1
        previous = self.previous if self.previous and not self.previous.done() else None
        prepared = await self.reader.prepare(self.clock())
        if prepared.stored.is_paused:
            return await self._leave_out(prepared)
        self.finding_policy, self.is_first = prepared.stored.findings, prepared.stored.last_keys is None
        if self.tries == 1:
            measure_queue_age(prepared.stored, self.clock())
        readings = None
        if self._has_new_windows(prepared):
            prepared, readings = await self.reader.read(prepared)
        if previous is not None:
            with self.account.pausing_time_limit():
                await asyncio.wait([previous])
        if readings is not None:
            return await self._judge_and_write(prepared, readings, may_be_outdated=previous is not None)
        if previous is not None:
            prepared = await self.store.read(partial(with_revision_if_unchanged, self.saved, prepared))
        return await self._finish_unchanged(prepared)

    async def _leave_out(self, prepared: PreparedSession) -> SessionOutcome:
        """Store nothing of a session whose scope is paused. Count it, and note which of its turns stay out later."""
        saved, reading, leaves_out_turns = self.saved, prepared.reading, self.apply and self.saved.path is None
        note = partial(note_skipped_session, reading=reading, leaves_out_turns=leaves_out_turns)
        await self.store.write(lambda transaction: note(transaction, saved.scope, saved.session_id))
        return skipped_outcome(saved.scope, saved.session_id, PAUSED)

    def _has_new_windows(self, prepared: PreparedSession) -> bool:
        # Compare with the last run even if it was undone: the same windows hold nothing new.
        is_same = prepared.stored.last_keys == list(prepared.keys) and not self.saved.reread
        return bool(prepared.keys) and not is_same

    async def _judge_and_write(
        self, prepared: PreparedSession, readings: Sequence[WindowReading], *, may_be_outdated: bool
    ) -> SessionOutcome:
        """Judge and store the run. If the session `may_be_outdated`, the scope may have changed since it was read."""
        if self.tries <= PATIENT_TRIES or self.store.is_in_memory:
            read = partial(self._read_to_judge, prepared, readings, may_be_outdated)
            latest, own, comparison = await self.store.read(read)
            judged = await self.judging.judge(comparison.to_judge)
            decision = self._decide(own, comparison, judged, latest.stored.revision)
            run_id = await self.store.write(partial(self._write_run, latest, decision))
        else:
            run_id, decision = await self.store.write(partial(self._decide_and_write, prepared, readings))
        return self._outcome(prepared, run_id, readings, decision)

    async def _finish_unchanged(self, prepared: PreparedSession) -> SessionOutcome:
        """Mark a session that has nothing new as done, unless other processes have changed the scope."""

        def work(transaction: Session) -> None:
            if scope_rows.revision_of(transaction, self.saved.scope) == prepared.stored.revision:
                self._save_transcript(transaction, prepared)

        if self.apply:
            await self.store.write(work)
        return SessionOutcome(
            scope=self.saved.scope,
            session_id=self.saved.session_id,
            run_id=None,
            transcript=prepared.transcript,
            owners=prepared.owners,
            turns=len(prepared.transcript.turns),
        )

    def _read_to_judge(
        self, prepared: PreparedSession, readings: Sequence[WindowReading], may_be_outdated: bool, transaction: Session
    ) -> tuple[PreparedSession, list[WindowReading], _Comparison]:
        """Return the session as it is stored now, its readings, and the pairs to judge with all that is known."""
        readings = self._with_own_ids(transaction, readings)
        latest = with_revision_if_unchanged(self.saved, prepared, transaction) if may_be_outdated else prepared
        return latest, readings, self._read_comparison(transaction, readings)

    def _with_own_ids(self, transaction: Session, readings: Sequence[WindowReading]) -> list[WindowReading]:
        """Return the readings. Statements whose ids a rename or a merge has given to another scope get other ids."""
        ids = [said.id for reading in readings for said in reading.assertions]
        other = replacements_of_taken_ids(transaction, self.saved.scope, ids, session_id=self.saved.session_id)
        return [replace(reading, assertions=with_new_ids(reading.assertions, other)) for reading in readings]

    def _read_comparison(self, transaction: Session, readings: Sequence[WindowReading]) -> _Comparison:
        """Read what the session's statements must be compared with."""
        before = lookup.read_knowledge(transaction, self.saved.scope)
        new = [assertion for reading in readings for assertion in reading.assertions]
        old = before.said_in(self.saved.session_id)
        replaced = replace_statements(before, old, new, self.judging.pairs_a_statement)
        to_judge = self.judging.prepare(transaction, replaced.others, replaced.pairs)
        return _Comparison(
            scope_rows.approval_policy_of(transaction, self.saved.scope), before, replaced.combined, old, new, to_judge
        )

    def _decide(
        self, readings: Sequence[WindowReading], comparison: _Comparison, judged: JudgingResult, revision: int
    ) -> _Decision:
        """Return the run to store, for the scope at this revision."""
        before = comparison.before
        after = comparison.combined.revised(before.revision + 1, added_verdicts=judged.verdicts)
        ids = [assertion.id for assertion in (*comparison.old, *comparison.new)]
        ids += [end for verdict in judged.verdicts for end in (verdict.earlier_id, verdict.later_id)]
        known = KnowledgeChange(before, after, frozenset(after.affected_ids(before, ids)))
        changes = fact_changes_of_statements(before, after, known.affected_ids, self.clock())
        counts = {"windows": len(readings), "assertions": len(comparison.new), "unjudged": judged.unjudged}
        counts |= {**self._reading_counts(readings), **changes.unnamed.counts_if_waiting()}
        proposal = self._proposal(readings, judged, revision, counts)
        must_wait = changes.unnamed.must_wait or comparison.policy.holds(retires=bool(changes.retired))
        return _Decision(proposal, known, changes, self.apply and must_wait, judged.unjudged)

    def _proposal(
        self, readings: Sequence[WindowReading], judged: JudgingResult, revision: int, counts: Mapping[str, int]
    ) -> Proposal:
        return Proposal(
            scope=self.saved.scope,
            source=self.account.source,
            purpose="session",
            extractor=self.extractor.version,
            judge=self.judge.version,
            started_at=self.clock(),
            revision=revision,
            readings=tuple(readings),
            verdicts=judged.verdicts,
            calls=self.usage.calls,
            prompt_tokens=self.usage.prompt_tokens,
            completion_tokens=self.usage.completion_tokens,
            counts=counts,
        )

    def _reading_counts(self, readings: Sequence[WindowReading]) -> dict[str, int]:
        """Return how many windows were read in halves, words called private, and candidates rejected, by reason."""
        return {
            **({"splits": self.reader.splits} if self.reader.splits else {}),
            **self.reader.called_private.counts(),
            **{f"refused_{reason}": number for reason, number in rejection_counts(readings).items()},
        }

    def _decide_and_write(
        self, prepared: PreparedSession, readings: Sequence[WindowReading], transaction: Session
    ) -> tuple[int, _Decision]:
        """Judge and store the run while the scope is locked. Pairs that need a model are left to consolidation."""
        scope_rows.lock_scope(transaction, self.saved.scope)
        prepared = with_revision_if_unchanged(self.saved, prepared, transaction, may_have_grown=True)
        readings = self._with_own_ids(transaction, readings)
        comparison = self._read_comparison(transaction, readings)
        judged = self.judging.judge_without_calls(comparison.to_judge)
        decision = self._decide(readings, comparison, judged, comparison.before.revision)
        return self._write_run(prepared, decision, transaction), decision

    def _write_run(self, prepared: PreparedSession, decision: _Decision, transaction: Session) -> int:
        """Store the run and return its id. Raises `ScopeMoved` if the scope has changed or was paused since."""
        scope, proposal = self.saved.scope, decision.proposal
        if scope_rows.revision_of(transaction, scope) != proposal.revision:
            raise ScopeMoved(f"{scope} has changed since session {self.saved.session_id!r} was judged")
        if read_pause(transaction, scope) is not None:
            raise ScopeMoved(f"{scope} was paused while session {self.saved.session_id!r} was judged")
        if not self.apply:
            run_id = ledger.propose_run(transaction, proposal, transcript=prepared.transcript)
        else:
            key = self._save_transcript(transaction, prepared)
            if decision.is_held:
                run_id = ledger.propose_run(transaction, proposal, session_pk=key, is_held=True)
            else:
                run_id, _ = ledger.propose_and_apply(
                    transaction, proposal, at=self.clock(), session_pk=key, expected=decision.known
                )
                agent_requests.satisfy_held_requests(transaction, scope, proposal.assertions)
        self.account.assign_to_run(transaction, run_id)
        return run_id

    def _save_transcript(self, transaction: Session, prepared: PreparedSession) -> int:
        """Store the turns and return the session's key.

        If its state was saved again meanwhile, its later turns are kept, and it stays queued.
        """
        scope, session_id, number_read = self.saved.scope, self.saved.session_id, len(prepared.transcript.turns)
        prepared = with_later_turns(self.saved, prepared, self.store.privacy, transaction)
        transcript = prepared.transcript
        is_same = sessions.state_saved_at(transaction, scope, session_id) == prepared.stored.state_saved_at
        is_done = is_same and len(transcript.turns) == number_read
        key = sessions.save_transcript(transaction, scope, session_id, transcript, self.clock(), is_done=is_done)
        if self.saved.path or self.saved.state is not None or prepared.reading.hidden:
            note_turns_of_state(transaction, scope, session_id, prepared.reading)
        if prepared.masked_texts:
            texts = {**{turn.text: turn.text for turn in transcript.turns}, **prepared.masked_texts}
            hide = partial(
                hide_in_state, masked_texts=texts, humans=transcript.humans, markers=self.store.privacy.markers
            )
            sessions.rewrite_state(transaction, key, hide)
        return key

    def _outcome(
        self, prepared: PreparedSession, run_id: int, readings: Sequence[WindowReading], decision: _Decision
    ) -> SessionOutcome:
        return SessionOutcome(
            scope=self.saved.scope,
            session_id=self.saved.session_id,
            run_id=run_id,
            transcript=prepared.transcript,
            owners=prepared.owners,
            applied=self.apply and not decision.is_held,
            held=decision.is_held,
            unjudged=decision.unjudged,
            splits=self.reader.splits,
            usage=self.usage,
            rejected=rejection_counts(readings),
            changes=decision.changes,
            turns=len(prepared.transcript.turns),
        )

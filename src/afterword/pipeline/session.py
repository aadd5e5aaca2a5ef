"""Processing one session from its saved state to facts: read, extract, ground, judge, propose, apply.

No transaction is open while a model is asked. One transaction reads the session, one reads what its statements are
compared with, and one writes the run. If the scope has changed by then, the session is judged again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from sqlmodel import Session

from afterword import telemetry
from afterword.errors import ScopeMoved
from afterword.extractors.errors import ExtractionError
from afterword.extractors.extractor import Extractor, Usage
from afterword.extractors.grounding import Grounding
from afterword.extractors.judge import Judge
from afterword.extractors.words_named_by_model import hidden_from_state
from afterword.facts.assertions import Assertion
from afterword.facts.knowledge import Knowledge
from afterword.facts.transcripts import Turn
from afterword.pipeline.budget import Account, Budget, CostTracker, as_cost_tracker
from afterword.pipeline.intake import (
    PreparedSession,
    Saved,
    begins_with,
    prepare_session,
    record_queue_age,
    refresh_prepared,
    with_later_turns,
    without_words_named_by_model,
)
from afterword.pipeline.judging import JudgingResult, PairJudging, PairsToJudge
from afterword.pipeline.resolution import Changes, changes_between, replaced_statements
from afterword.pipeline.run_storage import retry_if_overtaken
from afterword.pipeline.session_findings import keep_findings
from afterword.pipeline.session_outcome import SessionOutcome, counting_failures, record_outcome, skipped_outcome
from afterword.pipeline.window_reader import WindowReader, ground_window, limited_reading, refusals, window_reading
from afterword.privacy.policy import OFF_THE_RECORD
from afterword.store import agent_requests, ledger, lookup, scope_rows, sessions
from afterword.store.database.engine import Store
from afterword.store.forgetting.pauses import PAUSED, leave_out_new_turns, read_pause
from afterword.store.forgetting.tombstone_rows import note_state
from afterword.store.proposals import KnowledgeChange, Proposal, WindowReading
from afterword.store.statement_ids import replacement_ids, with_new_ids
from afterword.telemetry import Count, Stage, count

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
    if judge is None:
        # Imported only here: a caller with a judge of its own never loads the rules.
        from afterword.extractors.rules import RulesJudge

        judge = RulesJudge()
    account = Account(as_cost_tracker(budget), store, saved.scope, ledger.session_source(saved.session_id))
    processing = _Processing(store, saved, extractor, judge, apply, clock, account, before)
    stage = telemetry.stage(Stage.SESSION, scope=saved.scope, session_id=saved.session_id)
    with stage, counting_failures():
        if saved.off_the_record:
            outcome = skipped_outcome(saved.scope, saved.session_id, OFF_THE_RECORD)
        else:
            with account.open():
                async with account.time_limit():
                    outcome = await processing.run()
            if apply and outcome.transcript.turns:
                await keep_findings(
                    store, outcome, processing.finding_policy, extractor=extractor, tracker=account.tracker, clock=clock
                )
        record_outcome(outcome, is_first=processing.is_first)
        return outcome


class _Processing:
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
        self.reader = WindowReader(extractor, store.privacy)
        self.judging = PairJudging(store, saved.scope, judge)
        self.extracted: dict[str, WindowReading] = {}
        self.turns: Sequence[Turn] = ()
        self.forgotten_size = 0
        self.finding_policy = store.privacy.findings
        self.tries, self.is_first = 0, False

    @property
    def usage(self) -> Usage:
        return self.reader.usage + self.judging.usage

    async def run(self) -> SessionOutcome:
        try:
            return await retry_if_overtaken(
                self._run_once,
                f"{self.saved.scope} kept changing while {self.saved.session_id!r} was judged; run it again",
            )
        except ExtractionError as error:
            error.usage = self.usage  # of the whole session, earlier answers included
            raise

    async def _run_once(self) -> SessionOutcome:
        self.tries += 1
        previous = self.previous if self.previous and not self.previous.done() else None
        prepared = await prepare_session(self.store, self.saved, self.extractor.version, now=self.clock())
        if not begins_with(prepared.transcript.turns, self.turns):
            self.reader.start_again()
            self.extracted.clear()
        self.turns = prepared.transcript.turns
        prepared = without_words_named_by_model(prepared, self.reader.private, self.extractor.version)
        if prepared.stored.is_paused:
            saved, reading, stay_out = self.saved, prepared.reading, self.apply and self.saved.path is None
            leave_out = partial(leave_out_new_turns, reading=reading, stay_out=stay_out)
            await self.store.write(lambda transaction: leave_out(transaction, saved.scope, saved.session_id))
            return skipped_outcome(saved.scope, saved.session_id, PAUSED)
        self.finding_policy, self.is_first = prepared.stored.findings, prepared.stored.last_keys is None
        if self.tries == 1:
            record_queue_age(prepared.stored, self.clock())
        # Compare with the last run even if it was undone: the same windows hold nothing new.
        is_same = prepared.stored.last_keys == list(prepared.keys) and not self.saved.reread
        readings = None
        if prepared.keys and not is_same:
            prepared, readings = await self._masked_readings(prepared)
        if previous is not None:
            with self.account.waiting():
                await asyncio.wait([previous])

        def current(transaction: Session) -> PreparedSession:
            return refresh_prepared(self.saved, prepared, transaction) if previous else prepared

        if readings is None:
            return await self._finish_unchanged(await self.store.read(current) if previous else prepared)
        if self.tries <= PATIENT_TRIES or self.store.in_memory:
            latest, own, comparison = await self.store.read(partial(self._read_to_judge, current, readings))
            judged = await self.judging.judge(comparison.to_judge)
            decision = self._decide(own, comparison, judged, latest.stored.revision)
            run_id = await self.store.write(partial(self._write, latest, decision))
        else:
            run_id, decision = await self.store.write(partial(self._decide_and_write, prepared, readings))
        return self._outcome(prepared, run_id, readings, decision)

    async def _masked_readings(self, prepared: PreparedSession) -> tuple[PreparedSession, list[WindowReading]]:
        """Return the session with everything masked that the model calls private, and the readings of its windows."""
        readings = await self._readings(prepared)
        masked = without_words_named_by_model(prepared, self.reader.private, self.extractor.version)
        if masked is prepared:
            return prepared, readings
        self.extracted.clear()  # it was grounded before everything private was known
        return await self._masked_readings(masked)

    async def _readings(self, prepared: PreparedSession) -> list[WindowReading]:
        stored, readings = prepared.stored, list[WindowReading]()
        if self.forgotten_size != stored.forgotten.size:
            self.extracted.clear()  # it was grounded before something was forgotten
            self.forgotten_size = stored.forgotten.size
        privacy, private, most = self.store.privacy, self.reader.private, self.store.privacy.facts_per_session
        for window, key in zip(prepared.windows, prepared.keys, strict=True):
            count(Count.CACHE, cache="window", hit=key in stored.readings)
            most -= len(readings[-1].assertions) if readings else 0
            if key in stored.readings:
                readings.append(limited_reading(window_reading(key, window, Grounding(stored.readings[key], ())), most))
                continue
            if key not in self.extracted:
                await asyncio.sleep(0)  # an extractor without calls would hold the event loop until the last window
                ground = partial(
                    ground_window, prepared=prepared, saved=self.saved, privacy=privacy, private=private, most=most
                )
                grounding = await self.reader.read(window, ground)
                count(Count.ASSERTIONS, len(grounding.assertions))
                for rejection in grounding.rejections:
                    count(Count.REFUSED, reason=str(rejection.reason))
                self.extracted[key] = window_reading(key, window, grounding)
            readings.append(limited_reading(self.extracted[key], most))
        return readings

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
        self,
        current: Callable[[Session], PreparedSession],
        readings: Sequence[WindowReading],
        transaction: Session,
    ) -> tuple[PreparedSession, list[WindowReading], _Comparison]:
        readings = self._own_readings(transaction, readings)
        return current(transaction), readings, self._compare(transaction, readings)

    def _own_readings(self, transaction: Session, readings: Sequence[WindowReading]) -> list[WindowReading]:
        """Return the readings. Statements whose ids a rename or a merge has given to another scope get other ids."""
        ids = [said.id for reading in readings for said in reading.assertions]
        other = replacement_ids(transaction, self.saved.scope, ids, session_id=self.saved.session_id)
        return [replace(reading, assertions=with_new_ids(reading.assertions, other)) for reading in readings]

    def _compare(self, transaction: Session, readings: Sequence[WindowReading]) -> _Comparison:
        """Read what the session's statements must be compared with."""
        before = lookup.read_knowledge(transaction, self.saved.scope)
        new = [assertion for reading in readings for assertion in reading.assertions]
        old = before.said_in(self.saved.session_id)
        replaced = replaced_statements(before, old, new, self.judging.pairs_a_statement)
        to_judge = self.judging.prepare(transaction, replaced.others, replaced.pairs)
        return _Comparison(
            scope_rows.approval_policy_of(transaction, self.saved.scope), before, replaced.combined, old, new, to_judge
        )

    def _decide(
        self, readings: Sequence[WindowReading], comparison: _Comparison, judged: JudgingResult, revision: int
    ) -> _Decision:
        """Return the run to store, for the scope at this revision."""
        before, combined = comparison.before, comparison.combined
        after = combined.revised(before.revision + 1, added_verdicts=judged.verdicts)
        ids = [assertion.id for assertion in (*comparison.old, *comparison.new)]
        ids += [end for verdict in judged.verdicts for end in (verdict.earlier_id, verdict.later_id)]
        known = KnowledgeChange(before, after, frozenset(after.affected_ids(before, ids)))
        changes = changes_between(before, after, known.affected_ids, self.clock())
        refused = {f"refused_{reason}": number for reason, number in refusals(readings).items()}
        proposal = Proposal(
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
            counts={
                "windows": len(readings),
                "assertions": len(comparison.new),
                "unjudged": judged.unjudged,
                **({"splits": self.reader.splits} if self.reader.splits else {}),
                **self.reader.private.counts(),
                **refused,
                **changes.unnamed.counts(),
            },
        )
        must_wait = changes.unnamed.must_wait or comparison.policy.holds(retires=bool(changes.retired))
        return _Decision(proposal, known, changes, self.apply and must_wait, judged.unjudged)

    def _decide_and_write(
        self, prepared: PreparedSession, readings: Sequence[WindowReading], transaction: Session
    ) -> tuple[int, _Decision]:
        """Judge and store the run while the scope is locked. Pairs that need a model are left to consolidation."""
        scope_rows.lock_scope(transaction, self.saved.scope)
        prepared = refresh_prepared(self.saved, prepared, transaction, may_have_grown=True)
        readings = self._own_readings(transaction, readings)
        comparison = self._compare(transaction, readings)
        judged = self.judging.judge_without_calls(comparison.to_judge)
        decision = self._decide(readings, comparison, judged, comparison.before.revision)
        return self._write(prepared, decision, transaction), decision

    def _write(self, prepared: PreparedSession, decision: _Decision, transaction: Session) -> int:
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
                agent_requests.close_requests(transaction, scope, proposal.assertions)
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
            note_state(transaction, scope, session_id, prepared.reading)
        if prepared.masked_texts:
            texts = {**{turn.text: turn.text for turn in transcript.turns}, **prepared.masked_texts}
            hide = partial(
                hidden_from_state, masked_texts=texts, humans=transcript.humans, markers=self.store.privacy.markers
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
            rejected=refusals(readings),
            changes=decision.changes,
            turns=len(prepared.transcript.turns),
        )

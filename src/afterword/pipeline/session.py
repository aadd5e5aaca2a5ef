"""One session from its saved state to facts: read, extract, ground, judge, propose, apply.

No transaction is open while a model is asked: what is known is read first, and what was decided is written in one short
transaction, which is refused and tried again where the scope has changed in between.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial

from sqlmodel import Session

from afterword import telemetry
from afterword.errors import Overtaken, ScopeMoved
from afterword.extractors.candidate_masking import mask_candidates
from afterword.extractors.candidates import Candidate
from afterword.extractors.errors import ExtractionError
from afterword.extractors.extractor import Extractor, Usage, Window
from afterword.extractors.grounding import Grounding, ground
from afterword.extractors.judge import Judge, Pair
from afterword.facts.assertions import Assertion
from afterword.facts.knowledge import Knowledge
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Transcript
from afterword.pipeline import session_telemetry
from afterword.pipeline.budget import Account, Budget, CostTracker, as_cost_tracker
from afterword.pipeline.errors import ScopeBusy
from afterword.pipeline.forgotten_candidates import withheld
from afterword.pipeline.intake import Read, Saved, read_session, still
from afterword.pipeline.judging import Docket, Judged, gone
from afterword.pipeline.resolution import Changes, moved_by, partners, required_pairs
from afterword.pipeline.window_reader import Reader
from afterword.privacy.policy import OFF_THE_RECORD
from afterword.store import ledger, lookup, scope_rows, sessions
from afterword.store.database.engine import Store, pause_s
from afterword.store.forgetting.tombstone_rows import read_forgotten
from afterword.store.proposals import Proposal, WindowReading
from afterword.store.scope_rows import Policy
from afterword.telemetry import Count, Stage, count

PATIENT_TRIES, TRIES = 6, 20
"""How often a session is judged again because another process changed the scope meanwhile: so often without making
others wait, and so often in all."""


@dataclass(frozen=True, slots=True)
class SessionOutcome:
    """What became of a session. `run_id` is None where there was nothing new to do.

    `held` says that the scope's policy lets a person decide first; `unjudged` counts pairs left to consolidation,
    `splits` the windows that were too long for the model and were read in halves, `turns` the turns of the transcript.
    """

    scope: Scope
    session_id: str
    run_id: int | None
    transcript: Transcript
    owners: tuple[str, ...]
    applied: bool = False
    held: bool = False
    unjudged: int = 0
    splits: int = 0
    usage: Usage = field(default_factory=Usage)
    rejected: Mapping[str, int] = field(default_factory=dict)
    changes: Changes = field(default_factory=Changes)
    turns: int = 0

    def brief(self) -> SessionOutcome:
        """Return the same without what was said, whose number of turns stays."""
        return replace(self, transcript=replace(self.transcript, turns=()))


@dataclass(frozen=True, slots=True)
class _Decided:
    """What is to be stored of a session, and what it changes."""

    proposal: Proposal
    moved: Changes
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
    """Bring what one session says into the store, and return what became of it.

    Processed again it costs nothing; grown, only its last window and new ones are extracted, and their assertions
    swapped. With `apply=False` the proposal is stored and counts for nothing. What a `ModelClient` is asked stays
    within the `budget` (sessions share a `CostTracker`), and its cost is kept. What was extracted waits for the
    task `before`, which processes a session of the same scope that comes first.

    Raises a `ReadError` where the state cannot be read, `SourceInvalid` where it has no times at all, an
    `ExtractionError` (its `usage` is all that was spent on the session) where the extractor or the judge gave no
    answer, `BudgetReached` where there is no room for an extraction, and `ScopeBusy` where others kept changing the
    scope. In each case nothing of the session is half stored.
    """
    if judge is None:
        # Imported only here: a caller with a judge of its own never loads the rules.
        from afterword.extractors.rules import RulesJudge

        judge = RulesJudge()
    account = Account(as_cost_tracker(budget), store, saved.scope, ledger.session_source(saved.session_id))
    work = _Processing(store, saved, extractor, judge, apply, clock, account, before)
    with telemetry.stage(Stage.SESSION, scope=saved.scope, session_id=saved.session_id), session_telemetry.failing():
        if saved.off_the_record:
            nothing = Transcript((), layout=OFF_THE_RECORD, skipped={OFF_THE_RECORD: 1})
            outcome = SessionOutcome(saved.scope, saved.session_id, None, nothing, ())
        else:
            with account.open():
                outcome = await work.run()
        session_telemetry.ended(outcome)
        return outcome


async def windows_of(store: Store, saved: Saved, *, extractor: Extractor) -> list[tuple[Window, str]]:
    """Return the windows as which a session would be read, each with its key; nothing is asked or stored.

    Raises a `ReadError` or `SourceInvalid` as `process_session` does.
    """
    read = await read_session(store, saved, extractor.version)
    return list(zip(read.windows, read.keys, strict=True))


class _Processing:
    """The processing of one session: what it needs, and what was extracted so far, so that a second try asks nobody."""

    def __init__(
        self,
        store: Store,
        saved: Saved,
        extractor: Extractor,
        judge: Judge,
        apply: bool,
        clock: Callable[[], datetime],
        account: Account,
        before: asyncio.Task[None] | None,
    ) -> None:
        self.store, self.saved, self.extractor, self.judge = store, saved, extractor, judge
        self.apply, self.clock, self.account, self.first = apply, clock, account, before
        self.source = ledger.session_source(saved.session_id)
        self.extracted: dict[str, WindowReading] = {}
        self.docket = Docket(store, saved.scope, judge)
        self.before = Knowledge.of(0, (), ())
        self.own: list[Assertion] = []
        self.policy = Policy.AUTO
        self.forgotten = 0
        self.reader = Reader(extractor)

    async def run(self) -> SessionOutcome:
        try:
            return await self._run()
        except ExtractionError as error:
            error.usage = self._spent  # of the whole session, what was answered before it failed included
            raise

    async def _run(self) -> SessionOutcome:
        for attempt in range(TRIES):
            first = None if self.first is None or self.first.done() else self.first
            found = await read_session(self.store, self.saved, self.extractor.version)
            if attempt == 0:
                session_telemetry.waited(found.kept, self.clock())
            is_known = self._is_known(found)
            readings = [] if is_known else await self._readings(found)
            read = await self._in_turn(found, first)
            if read is None:
                continue
            if is_known:
                return await self._known_outcome(read)
            try:
                if attempt < PATIENT_TRIES or self.store.in_memory:
                    decided = await self._decided(readings, await self._known(), read.kept.revision)
                    run_id = await self.store.write(partial(self._write, read, decided))
                else:
                    run_id, decided = await self._insist(read, readings)
            except Overtaken:
                await asyncio.sleep(pause_s(attempt))
                continue
            return self._outcome(read, run_id, readings, decided)
        raise ScopeBusy(f"{self.saved.scope} kept changing while {self.saved.session_id!r} was judged; run it again")

    async def _insist(self, read: Read, readings: Sequence[WindowReading]) -> tuple[int, _Decided]:
        """Decide while every other writer of the scope waits. Nobody is asked meanwhile: what only a call could judge
        is left to consolidation."""
        scope, session_id = self.saved.scope, self.saved.session_id

        def work(db: Session) -> tuple[int, _Decided]:
            scope_rows.lock_scope(db, scope)
            hidden = read_forgotten(db, scope, session_id)
            if hidden.size != read.kept.forgotten.size or sessions.read_turns(db, scope, session_id) != read.kept.turns:
                raise ScopeMoved(f"session {session_id!r} of {scope} was read further, or forgotten, meanwhile")
            known, self.policy = lookup.read_knowledge(db, scope), scope_rows.policy_of(db, scope)
            told, pairs = self._to_judge(readings, self._others(known))
            judged = self.docket.judge_at_once(db, pairs, hidden=gone(told, pairs))
            decided = self._decision(readings, told, judged, known.revision)
            return self._write(read, decided, db), decided

        return await self.store.write(work)

    async def _decided(self, readings: Sequence[WindowReading], known: Knowledge, revision: int) -> _Decided:
        """Return what the readings mean for what is known, with at most one call of the judge.

        It holds for the scope at `revision`."""
        told, pairs = self._to_judge(readings, known)
        judged = await self.docket.judge(pairs, hidden=gone(known, pairs))
        return self._decision(readings, told, judged, revision)

    def _to_judge(self, readings: Sequence[WindowReading], known: Knowledge) -> tuple[Knowledge, list[Pair]]:
        """Return what is known with the readings, and the pairs that they call for."""
        said = [one for reading in readings for one in reading.assertions]
        told = known.revised(known.revision, added=said)
        return told, required_pairs([*said, *self._bereft(said, known)], told.index)

    def _decision(self, readings: Sequence[WindowReading], told: Knowledge, judged: Judged, revision: int) -> _Decided:
        said = [one for reading in readings for one in reading.assertions]
        after = told.revised(told.revision, added_verdicts=judged.verdicts)
        ends = (end for one in judged.verdicts for end in (one.earlier_id, one.later_id))
        ids = [*(one.id for one in (*self.own, *said)), *ends]
        moved = moved_by(self.before, after, after.affected_ids(self.before, ids), self.clock())
        is_held = self.apply and self.policy.holds(retires=bool(moved.retired))
        return _Decided(self._proposal(readings, revision, judged), moved, is_held, judged.unjudged)

    async def _in_turn(self, read: Read, first: asyncio.Task[None] | None) -> Read | None:
        """Wait for the session that comes first; return what was read for the scope as it is then.

        None where this session itself is not as it was read any more."""
        if first is None:
            return read
        await asyncio.wait([first])
        return await still(self.store, self.saved, read)

    def _is_known(self, read: Read) -> bool:
        """Whether the last run read exactly these windows: undone or not, there is nothing new in the session."""
        return not read.keys or (read.kept.last_keys == list(read.keys) and not self.saved.reread)

    async def _known_outcome(self, read: Read) -> SessionOutcome:
        if self.apply:
            await self.store.write(partial(self._keep_known, read))
        turns = len(read.transcript.turns)
        return SessionOutcome(self.saved.scope, self.saved.session_id, None, read.transcript, read.owners, turns=turns)

    def _keep_known(self, read: Read, db: Session) -> None:
        """Mark a session done in which there was nothing new; where others have changed the scope, leave it to them."""
        if scope_rows.revision_of(db, self.saved.scope) == read.kept.revision:
            self._keep(db, read)

    async def _readings(self, read: Read) -> list[WindowReading]:
        found, kept = list[WindowReading](), read.kept.readings
        if self.forgotten != read.kept.forgotten.size:
            self.extracted.clear()  # it was grounded before something was forgotten
            self.forgotten = read.kept.forgotten.size
        for window, key in zip(read.windows, read.keys, strict=True):
            first, last = window.turns[0].number, window.turns[-1].number
            count(Count.CACHE, cache="window", hit=key in kept)
            if key in kept:
                found.append(WindowReading(key, first, last, kept[key]))
                continue
            if key not in self.extracted:
                grounding = await self.reader.read(window, partial(self._ground, read))
                session_telemetry.grounded(grounding)
                refused = tuple((one.reason, one.candidate.statement, one.detail) for one in grounding.rejections)
                self.extracted[key] = WindowReading(key, first, last, grounding.assertions, refused)
            found.append(self.extracted[key])
        return found

    def _ground(self, read: Read, candidates: Sequence[Candidate]) -> Grounding:
        scope, session_id = self.saved.scope, self.saved.session_id
        clean = mask_candidates(candidates, self.store.privacy)
        found = ground(clean, read.transcript, scope=scope, session_id=session_id, owners=read.owners)
        return withheld(found, read.transcript, read.kept.forgotten)

    async def _known(self) -> Knowledge:
        """Return what is known of the scope from everything but this session."""
        scope = self.saved.scope
        self.policy, known = await self.store.read(
            lambda db: (scope_rows.policy_of(db, scope), lookup.read_knowledge(db, scope))
        )
        return self._others(known)

    def _others(self, known: Knowledge) -> Knowledge:
        self.before = known
        _ = known.index  # laid out once, they go on with all that follows from what is known
        self.own = known.said_in(self.saved.session_id)
        return known.revised(known.revision, removed=self.own) if self.own else known

    def _bereft(self, said: Sequence[Assertion], known: Knowledge) -> list[Assertion]:
        """Return what others say that was judged with what this session takes back.

        What was compared only with a statement that is gone now must be compared with the next one.
        """
        kept = {one.id for one in said}
        lost = [one for one in self.own if one.id not in kept]
        return [one for one in partners(lost, self.before.index) if one.id in known.by_id]

    def _proposal(self, readings: Sequence[WindowReading], revision: int, judged: Judged) -> Proposal:
        kept = sum(len(reading.assertions) for reading in readings)
        refused = {f"refused_{reason}": count for reason, count in _refused(readings).items()}
        return Proposal(
            scope=self.saved.scope,
            source=self.source,
            purpose="session",
            extractor=self.extractor.version,
            judge=self.judge.version,
            started_at=self.clock(),
            revision=revision,
            readings=tuple(readings),
            verdicts=judged.verdicts,
            calls=self._spent.calls,
            prompt_tokens=self._spent.prompt_tokens,
            completion_tokens=self._spent.completion_tokens,
            counts={
                "windows": len(readings),
                "assertions": kept,
                "unjudged": judged.unjudged,
                **({"splits": self.reader.splits} if self.reader.splits else {}),
                **refused,
            },
        )

    @property
    def _spent(self) -> Usage:
        return self.reader.usage + self.docket.usage

    def _write(self, read: Read, decided: _Decided, db: Session) -> int:
        """Store what was decided, in one transaction. Raises `ScopeMoved` where the scope has changed since."""
        scope, proposal = self.saved.scope, decided.proposal
        if scope_rows.revision_of(db, scope) != proposal.revision:
            raise ScopeMoved(f"{scope} has changed since session {self.saved.session_id!r} was judged")
        if not self.apply:
            run_id = ledger.propose_run(db, proposal, transcript=read.transcript)
            self.account.tie_in(db, run_id)
            return run_id
        key = self._keep(db, read)
        run_id = ledger.propose_run(db, proposal, session_pk=key, is_held=decided.is_held)
        self.account.tie_in(db, run_id)
        if not decided.is_held:
            ledger.apply_run(db, scope, run_id, self.clock())
        return run_id

    def _keep(self, db: Session, read: Read) -> int:
        """Keep what was read as the session's turns; a session that was saved again meanwhile stays queued."""
        scope, session_id = self.saved.scope, self.saved.session_id
        is_done = sessions.state_saved_at(db, scope, session_id) == read.kept.state_saved_at
        return sessions.save_transcript(db, scope, session_id, read.transcript, self.clock(), is_done=is_done)

    def _outcome(self, read: Read, run_id: int, readings: Sequence[WindowReading], decided: _Decided) -> SessionOutcome:
        return SessionOutcome(
            scope=self.saved.scope,
            session_id=self.saved.session_id,
            run_id=run_id,
            transcript=read.transcript,
            owners=read.owners,
            applied=self.apply and not decided.is_held,
            held=decided.is_held,
            unjudged=decided.unjudged,
            splits=self.reader.splits,
            usage=self._spent,
            rejected=_refused(readings),
            changes=decided.moved,
            turns=len(read.transcript.turns),
        )


def _refused(readings: Sequence[WindowReading]) -> Counter[str]:
    return Counter(reason for reading in readings for reason, _, _ in reading.rejections)

"""One session from its saved state to facts: read, extract, ground, judge, propose, apply.

No transaction is open while a model is asked: what is known is read first, and what was decided is written in one short
transaction, which is refused and tried again where the scope has changed in between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from sqlmodel.ext.asyncio.session import AsyncSession

from afterword.extractors.candidates import Candidate
from afterword.extractors.errors import ExtractionError
from afterword.extractors.extractor import Extractor, Usage, Window
from afterword.extractors.grounding import Grounding, ground
from afterword.extractors.judge import Judge, RulesJudge
from afterword.extractors.masking import masked
from afterword.extractors.owners import owners
from afterword.extractors.readers import read_file, read_state
from afterword.extractors.times import dated
from afterword.extractors.union import union
from afterword.extractors.windows import window_key, windows
from afterword.pipeline.budget import Account, Budget, Purse, purse_of
from afterword.pipeline.docket import Docket, Judged, gone
from afterword.pipeline.errors import ScopeBusy, SourceInvalid
from afterword.pipeline.reading import Reader
from afterword.pipeline.resolution import Changes, moved_by, partners, required_pairs
from afterword.store import ledger, lookup, runs, sessions
from afterword.store.assertions import Assertion
from afterword.store.engine import Store, pause
from afterword.store.errors import Overtaken, ScopeMoved
from afterword.store.knowledge import Known
from afterword.store.ledger import Proposal, Reading
from afterword.store.privacy import OFF_THE_RECORD, counted
from afterword.store.runs import Policy
from afterword.store.scopes import Scope
from afterword.store.transcripts import TimeBasis, Transcript, Turn

PATIENT_TRIES, TRIES = 6, 20
"""How often a session is judged again because another process changed the scope meanwhile: so often without making
others wait, and so often in all."""


@dataclass(frozen=True, slots=True)
class Saved:
    """A session to process: a file at `path`, or the parsed `state`; and what is known about it from elsewhere.

    `humans` are names known to be people. Times are aware; `file_time` is a guess and retires nothing. With `reread`
    the turns that the store keeps are read again, for example by a better extractor, and no file is needed. What is
    `off_the_record` is not read at all.
    """

    scope: Scope
    session_id: str
    path: Path | None = None
    state: object = None
    humans: Collection[str] = ()
    started_at: datetime | None = None
    ended_at: datetime | None = None
    file_time: datetime | None = None
    reread: bool = False
    off_the_record: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a session. `run_id` is None where there was nothing new to do.

    `held` says that the scope's policy lets a person decide first; `unjudged` counts pairs left to consolidation,
    `splits` the windows that were too long for the model and were read in halves.
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


@dataclass(frozen=True, slots=True)
class _Read:
    """A session as it stands before extraction."""

    transcript: Transcript
    owners: tuple[str, ...]
    windows: Sequence[Window]
    keys: tuple[str, ...]


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
    budget: Budget | Purse | None = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Outcome:
    """Bring what one session says into the store, and return what became of it.

    Processed again it costs nothing; grown, only its last window and new ones are extracted, and their assertions
    swapped. With `apply=False` the proposal is stored and counts for nothing. What a `ModelClient` is asked stays
    within the `budget` (a `Purse` is one that sessions share), and its cost is kept.

    Raises a `ReadError` where the state cannot be read, `SourceInvalid` where it has no times at all, an
    `ExtractionError` (its `usage` is all that was spent on the session) where the extractor or the judge gave no
    answer, `BudgetReached` where there is no room for an extraction, and `ScopeBusy` where others kept changing the
    scope. In each case nothing of the session is half stored.
    """
    if saved.off_the_record:
        nothing = Transcript((), layout=OFF_THE_RECORD, skipped={OFF_THE_RECORD: 1})
        return Outcome(saved.scope, saved.session_id, None, nothing, ())
    account = Account(purse_of(budget), store, saved.scope, ledger.source_of(saved.session_id))
    with account.open():
        outcome = await _Processing(store, saved, extractor, judge or RulesJudge(), apply, clock).run()
    await account.tie(outcome.run_id)
    return outcome


async def windows_of(store: Store, saved: Saved, *, extractor: Extractor) -> list[tuple[Window, str]]:
    """Return the windows as which a session would be read, each with its key; nothing is asked or stored.

    Raises a `ReadError` or `SourceInvalid` as `process_session` does.
    """
    read = await _Processing(store, saved, extractor, RulesJudge(), False, lambda: datetime.now(UTC)).read()
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
    ) -> None:
        self.store, self.saved, self.extractor, self.judge = store, saved, extractor, judge
        self.apply, self.clock = apply, clock
        self.source = ledger.source_of(saved.session_id)
        self.extracted: dict[str, Reading] = {}
        self.docket = Docket(store, saved.scope, judge)
        self.before = Known.of(0, (), ())
        self.own: list[Assertion] = []
        self.turns: list[Turn] = []
        self.kept: dict[str, tuple[Assertion, ...]] = {}
        self.last_keys: list[str] | None = None
        self.policy = Policy.AUTO
        self.revision = 0
        self.state_saved_at: datetime | None = None
        self.reader = Reader(extractor)

    async def run(self) -> Outcome:
        try:
            return await self._run()
        except ExtractionError as error:
            error.usage = self._spent  # of the whole session, what was answered before it failed included
            raise

    async def _run(self) -> Outcome:
        for attempt in range(TRIES):
            read = await self.read()
            if await self._nothing_new(read):
                return Outcome(self.saved.scope, self.saved.session_id, None, read.transcript, read.owners)
            readings = await self._readings(read)
            try:
                if attempt < PATIENT_TRIES or self.store.in_memory:
                    decided = await self._decided(readings, await self._known(), calls=1)
                    async with self.store.write() as db:
                        run_id = await self._written(db, read.transcript, decided)
                else:
                    run_id, decided = await self._insist(read, readings)
            except Overtaken:
                await pause(attempt)
                continue
            return self._outcome(read, run_id, readings, decided)
        raise ScopeBusy(f"{self.saved.scope} kept changing while {self.saved.session_id!r} was judged; run it again")

    async def _insist(self, read: _Read, readings: Sequence[Reading]) -> tuple[int, _Decided]:
        """Decide while every other writer of the scope waits. Nobody is asked meanwhile: what only a call could judge
        is left to consolidation."""
        scope, session_id = self.saved.scope, self.saved.session_id
        async with self.store.write() as db:
            await ledger.hold(db, scope)
            if await sessions.turns(db, scope, session_id) != self.turns:
                raise ScopeMoved(f"session {session_id!r} of {scope} was read further meanwhile")
            known, self.policy = await lookup.known(db, scope), await runs.policy_of(db, scope)
            self.revision = known.revision
            decided = await self._decided(readings, self._others(known), calls=0)
            return await self._written(db, read.transcript, decided), decided

    async def _decided(self, readings: Sequence[Reading], known: Known, *, calls: int) -> _Decided:
        """Return what the readings mean for what is known, with at most so many calls of the judge."""
        said = [one for reading in readings for one in reading.assertions]
        told = known.moved(known.revision, come=said)
        pairs = required_pairs([*said, *self._bereft(said, known)], told.postings)
        judged = await self.docket.judge(pairs, hidden=gone(known, pairs), calls=calls)
        after = told.moved(known.revision, given=judged.verdicts)
        ends = (end for one in judged.verdicts for end in (one.earlier_id, one.later_id))
        ids = [*(one.id for one in (*self.own, *said)), *ends]
        moved = moved_by(self.before, after, after.touched(self.before, ids), self.clock())
        is_held = self.apply and self.policy.holds(retires=bool(moved.retired))
        return _Decided(self._proposal(readings, self.revision, judged), moved, is_held, judged.unjudged)

    async def read(self) -> _Read:
        before, kept, state = await self._kept()
        humans = (*self.saved.humans, *(kept.humans if kept else ()))
        path, privacy = self.saved.path, self.store.privacy
        before = list(privacy.turns(before))  # they may have been kept before secrets were masked
        if self.saved.reread and kept is not None:
            return self._windows(counted(sessions.as_kept(before, kept)))
        fresh = (
            read_file(path, humans=humans, privacy=privacy)
            if path
            else read_state(state, humans=humans, privacy=privacy)
        )
        timed = dated(
            fresh,
            started_at=self.saved.started_at,
            ended_at=self.saved.ended_at,
            file_time=self.saved.file_time,
        )
        basis = TimeBasis(kept.time_basis) if kept and kept.time_basis else None
        joined = union(before, basis, timed, assumed=kept.assumed if kept else ())
        if any(turn.said_at is None for turn in joined.turns):
            raise SourceInvalid(
                f"session {self.saved.session_id!r} carries no times; give started_at in a manifest, or a file time"
            )
        return self._windows(counted(joined))

    def _windows(self, transcript: Transcript) -> _Read:
        owning = owners(transcript, self.saved.scope)
        cut = windows(transcript, owning)
        version = self.extractor.version
        return _Read(transcript, owning, cut, tuple(window_key(one, version) for one in cut))

    async def _kept(self) -> tuple[list[Turn], sessions.SavedSession | None, object]:
        """Return what the store has of the session: its turns as last read, its row, and the state to read."""
        scope, session_id = self.saved.scope, self.saved.session_id
        async with self.store.read() as db:
            # What is decided holds for the scope as it is now, when the session is read, not when it is judged.
            self.revision = await lookup.revision_of(db, scope)
            self.last_keys = await ledger.last_keys(db, scope, self.source)
            self.kept = await ledger.kept_readings(db, scope, self.source)
            kept, before = await sessions.find(db, scope, session_id), list[Turn]()
            if kept is not None:
                before = await sessions.turns(db, scope, session_id)
            self.state_saved_at = await sessions.saved_at(db, scope, session_id) if kept else None
            self.turns = before
            state = self.saved.state
            if state is None and self.saved.path is None and not self.saved.reread:
                state = await sessions.load_state(db, scope, session_id)
        return before, kept, state

    async def _nothing_new(self, read: _Read) -> bool:
        """Whether the last run read exactly these windows: undone or not, there is nothing new in the session."""
        if read.keys and (self.last_keys != list(read.keys) or self.saved.reread):
            return False
        if self.apply:
            await self.store.written(lambda db: self._keep_known(db, read.transcript))
        return True

    async def _keep_known(self, db: AsyncSession, transcript: Transcript) -> None:
        """Mark a session done in which there was nothing new; where others have changed the scope, leave it to them."""
        if await lookup.revision_of(db, self.saved.scope) == self.revision:
            await self._keep(db, transcript)

    async def _readings(self, read: _Read) -> list[Reading]:
        found: list[Reading] = []
        for window, key in zip(read.windows, read.keys, strict=True):
            first, last = window.turns[0].number, window.turns[-1].number
            if key in self.kept:
                found.append(Reading(key, first, last, self.kept[key]))
                continue
            if key not in self.extracted:
                grounding = await self.reader.read(window, partial(self._ground, read))
                refused = tuple((one.reason, one.candidate.statement, one.detail) for one in grounding.rejections)
                self.extracted[key] = Reading(key, first, last, grounding.assertions, refused)
            found.append(self.extracted[key])
        return found

    def _ground(self, read: _Read, candidates: Sequence[Candidate]) -> Grounding:
        scope, session_id, clean = self.saved.scope, self.saved.session_id, masked(candidates, self.store.privacy)
        return ground(clean, read.transcript, scope=scope, session_id=session_id, owners=read.owners)

    async def _known(self) -> Known:
        """Return what is known of the scope from everything but this session."""
        async with self.store.read() as db:
            self.policy = await runs.policy_of(db, self.saved.scope)
            return self._others(await lookup.known(db, self.saved.scope))

    def _others(self, known: Known) -> Known:
        self.before = known
        _ = known.postings  # laid out once, they go on with all that follows from what is known
        self.own = known.said_in(self.saved.session_id)
        return known.moved(known.revision, gone=self.own) if self.own else known

    def _bereft(self, said: Sequence[Assertion], known: Known) -> list[Assertion]:
        """Return what others say that was judged with what this session takes back.

        What was compared only with a statement that is gone now must be compared with the next one.
        """
        kept = {one.id for one in said}
        lost = [one for one in self.own if one.id not in kept]
        return [one for one in partners(lost, self.before.postings) if one.id in known.by_id]

    def _proposal(self, readings: Sequence[Reading], revision: int, judged: Judged) -> Proposal:
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

    async def _written(self, db: AsyncSession, transcript: Transcript, decided: _Decided) -> int:
        """Store what was decided, in one transaction. Raises `ScopeMoved` where the scope has changed since."""
        scope, proposal = self.saved.scope, decided.proposal
        if await lookup.revision_of(db, scope) != proposal.revision:
            raise ScopeMoved(f"{scope} has changed since session {self.saved.session_id!r} was judged")
        if not self.apply:
            return await ledger.propose(db, proposal, transcript=transcript)
        key = await self._keep(db, transcript)
        run_id = await ledger.propose(db, proposal, session_pk=key, is_held=decided.is_held)
        if not decided.is_held:
            await ledger.apply(db, scope, run_id, self.clock())
        return run_id

    async def _keep(self, db: AsyncSession, transcript: Transcript) -> int:
        """Keep what was read as the session's turns; a session that was saved again meanwhile stays queued."""
        scope, session_id = self.saved.scope, self.saved.session_id
        is_done = await sessions.saved_at(db, scope, session_id) == self.state_saved_at
        return await sessions.keep_transcript(db, scope, session_id, transcript, self.clock(), is_done=is_done)

    def _outcome(self, read: _Read, run_id: int, readings: Sequence[Reading], decided: _Decided) -> Outcome:
        return Outcome(
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
        )


def _refused(readings: Sequence[Reading]) -> Counter[str]:
    return Counter(reason for reading in readings for reason, _, _ in reading.rejections)

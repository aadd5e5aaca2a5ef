"""Saving what was said when a conversation is over, and taking it up again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar

from sqlmodel import Session

from afterword import telemetry
from afterword.agents.store_reference import StoreReference, named_scope, opened_store
from afterword.errors import NotFound, StateConflict
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import TimeBasis, Transcript, Turn
from afterword.privacy.policy import Privacy, with_privacy_counts
from afterword.store import sessions
from afterword.store.forgetting.tombstone_rows import read_forgotten
from afterword.telemetry import Stage

GENERIC = ("user", "human", "user_proxy")
"""Who is taken for a person in a state that cannot be read."""

_log = telemetry.logs(__name__)


class Recordable(Protocol):
    """An agent or a team: anything whose state can be saved and loaded."""

    async def save_state(self) -> Mapping[str, Any]:
        """Return the state, made of what JSON can hold."""
        ...

    async def load_state(self, state: Mapping[str, Any]) -> None:
        """Take up a saved state."""
        ...


AgentOrTeam = TypeVar("AgentOrTeam", bound=Recordable)


@asynccontextmanager
async def record_session(
    agent_or_team: AgentOrTeam,
    *,
    user: str | None = None,
    scope: Scope | str | None = None,
    session_id: str,
    store: StoreReference | None = None,
    humans: Collection[str] = (),
    off_the_record: bool = False,
) -> AsyncIterator[AgentOrTeam]:
    """Save the agent's or team's state at the end of the block, and queue the session for processing.

    It is saved on every way out, errors and cancellation too; then the error that ended the block is the one that is
    raised, and a failing save is only logged. End a team's run within the block: a team that still runs is saved as it
    stands. `humans` are names of people, for speakers whose names do not say so. Secrets are masked in what is kept,
    and what people said off the record is left out of it; with `off_the_record` nothing is kept at all. Raises
    `ScopeInvalid` unless exactly one of `user` and `scope` is given, `StateConflict` for an empty session id or where
    another kind of agent saved this session, and `StoreError` where the state could not be kept.
    """
    session = _Session(agent_or_team, named_scope(user, scope), session_id, store, tuple(humans))
    if not session_id.strip():
        raise StateConflict("the session id is empty; give each conversation an id of its own")
    if off_the_record:
        yield agent_or_team
        return
    try:
        yield agent_or_team
    except BaseException:  # whatever ended the session, what was said in it is kept, and it ends as it did
        error = await _saved(session)
        if error is not None:
            _log.error("session %r was not saved (%s)", session_id, type(error).__name__)
        raise
    error = await _saved(session)
    if error is not None:
        raise error


async def resume(
    agent_or_team: Recordable,
    *,
    user: str | None = None,
    scope: Scope | str | None = None,
    session_id: str,
    store: StoreReference | None = None,
    missing_ok: bool = False,
) -> bool:
    """Load the saved state of a session into an agent or team of the same make; return whether there was one.

    What was masked when it was saved stays masked: the agent no longer knows the secrets that it was told.
    Raises `NotFound` where this scope has no such session (False with `missing_ok`), and `StateConflict` where another
    kind of agent or team saved it, or one with other participants.
    """
    whose, component = named_scope(user, scope), _component(agent_or_team)
    async with opened_store(store) as kept:
        try:
            saved = await kept.read(lambda db: sessions.load_state(db, whose, session_id, component))
        except NotFound:
            if missing_ok:
                return False
            raise
        state = kept.privacy.mask_state(saved)
    try:
        await agent_or_team.load_state(state)
    except (ValueError, KeyError) as error:
        raise StateConflict(
            f"session {session_id!r} does not fit this {component} ({type(error).__name__}); "
            "build it with the same participants as when it was saved"
        ) from error
    return True


@dataclass(frozen=True, slots=True)
class _Session:
    """What is to be saved, whose it is, and where."""

    recorded: Recordable
    scope: Scope
    session_id: str
    store: StoreReference | None
    humans: tuple[str, ...]

    async def save(self) -> None:
        with telemetry.stage(Stage.RECORD, scope=self.scope, session_id=self.session_id):
            await self._save()

    async def _save(self) -> None:
        from afterword.extractors.turn_times import date_turns

        state = await self.recorded.save_state()
        at = datetime.now(UTC)
        async with opened_store(self.store) as store:
            clean, fresh = _private(state, self.humans, self.session_id, store.privacy)

            def work(db: Session) -> None:
                # What is new was said not later than now.
                component = _component(self.recorded)
                whose, name, humans = self.scope, self.session_id, self.humans
                gone = read_forgotten(db, whose, name)
                read = fresh or Transcript((), layout="")
                before = store.privacy.mask_turns(sessions.read_turns(db, whose, name))
                left = gone.transcript(read, date_turns(read, saves=[(at, len(read.turns))]), before)
                state = gone.state(clean, read, left)
                sessions.save_state(db, whose, name, component=component, state=state, at=at, humans=humans)
                if fresh is not None:
                    joined = self._joined(db, before, left)
                    sessions.save_transcript(db, whose, name, joined, at, is_done=False)

            await store.write(work)

    def _joined(self, db: Session, before: Sequence[Turn], timed: Transcript) -> Transcript:
        """Return all that was ever saved of the session."""
        from afterword.extractors.transcript_union import unite_readings

        kept = sessions.find_session(db, self.scope, self.session_id)
        basis = TimeBasis(kept.time_basis) if kept and kept.time_basis else None
        return with_privacy_counts(unite_readings(before, basis, timed, assumed=kept.assumed if kept else ()))


async def _saved(session: _Session) -> BaseException | None:
    """Save to the end, cancelled or not; return what went wrong."""
    saving = asyncio.ensure_future(session.save())
    try:
        await asyncio.wait({saving})
    except asyncio.CancelledError:
        # Waiting was cancelled, saving was not: half a conversation is worth less than the moment it takes.
        await asyncio.wait({saving})
        raise
    return saving.exception()


def _private(
    state: Mapping[str, Any], humans: Collection[str], session_id: str, privacy: Privacy
) -> tuple[Mapping[str, Any], Transcript | None]:
    """Return the state as it may be kept, and what that says."""
    first = _read(state, humans, session_id, privacy)
    people = first.humans if first is not None else (*humans, *GENERIC)
    clean = privacy.mask_state(state, people)
    # Read from what is kept, as the processing will: both must see the same turns.
    return clean, first if clean == state else _read(clean, humans, session_id, privacy)


def _read(state: Mapping[str, Any], humans: Collection[str], session_id: str, privacy: Privacy) -> Transcript | None:
    """Return what a state says, None where it cannot be read: then it is kept all the same."""
    from afterword.extractors.errors import ReadError
    from afterword.extractors.readers import read_state

    try:
        return read_state(state, humans=humans, privacy=privacy)
    except ReadError as error:
        _log.warning("the state of session %r is kept, but not read (%s)", session_id, type(error).__name__)
        return None


def _component(agent_or_team: Recordable) -> str:
    return type(agent_or_team).__name__

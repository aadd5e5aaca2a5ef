"""Storing the saved state of a session with its turns, and queuing the session for processing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from sqlmodel import Session

from afterword import telemetry
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Role, TimeBasis, Transcript, Turn
from afterword.privacy.blanking import FORGOTTEN
from afterword.privacy.off_record import newly_hidden_indexes
from afterword.privacy.policy import Privacy, with_privacy_counts
from afterword.privacy.seen_turns import RecognisedTurns, TurnsToRecognise
from afterword.privacy.tombstones import ForgottenContent
from afterword.store import sessions
from afterword.store.database.engine import Store
from afterword.store.forgetting import pauses
from afterword.store.forgetting.seen_turn_rows import note_seen_turns
from afterword.store.forgetting.tombstone_rows import read_forgotten_content

GENERIC_SPEAKERS = ("user", "human", "user_proxy")
"""The names of speakers who count as people if the state of a session cannot be read."""

_log = telemetry.logs(__name__)


@dataclass(frozen=True, slots=True)
class QueuedTurns:
    """The turns in the state that was stored of a session, and those that were stored of it before."""

    turns: Sequence[Turn]
    before: Sequence[Turn]

    @property
    def replaces_other_chat(self) -> bool:
        """Whether people have spoken before and in this state, and no words of theirs are the same."""
        said, said_before = (
            {turn.text for turn in turns if turn.role is Role.HUMAN and FORGOTTEN not in turn.text}
            for turns in (self.turns, self.before)
        )
        return bool(said and said_before) and said.isdisjoint(said_before)


async def store_and_queue_state(
    store: Store,
    scope: Scope,
    session_id: str,
    raw_state: Mapping[str, Any],
    *,
    component: str,
    humans: Collection[str] = (),
    started_at: datetime | None = None,
    at: datetime | None = None,
    is_kept: bool = True,
) -> QueuedTurns | None:
    """Store a state without its secrets and what was said off the record, and queue its session for processing.

    `started_at` is when the session began. Without it, turns that have no time of their own count as said at the time
    of saving: `at`, by default the present time. Unless the state `is_kept`, only keyed hashes of its new turns are
    stored, by which they stay left out when the session is saved again. Returns the turns, None if they are left out.
    Raises `StateConflict` if another kind of component saved this session.
    """
    # Loaded before the transaction that needs it, since a transaction keeps other writers waiting.
    from afterword.extractors import words_called_private  # noqa: F401
    from afterword.extractors.transcript_assembly import date_turns, no_earlier_than_clock, without_future_times

    at = at or datetime.now(UTC)
    state, transcript = _mask_and_read(raw_state, humans, scope, session_id, store.privacy)
    fresh = without_future_times(transcript or Transcript((), layout=""), no_earlier_than_clock(at))
    dated = date_turns(fresh, saved_at=at if started_at is None else None, started_at=started_at)
    queuing = _StateQueuing(store.privacy, scope, session_id, component, tuple(humans), at, state, fresh, dated)
    if is_kept:
        return await store.write(partial(queuing.queue, is_read=transcript is not None))
    await store.write(queuing.leave_out)
    return None


@dataclass(frozen=True, slots=True)
class _StateQueuing:
    """The queuing of a masked state of a session. Its transcript is `fresh` as it was read, and `dated` with times."""

    privacy: Privacy
    scope: Scope
    session_id: str
    component: str
    humans: tuple[str, ...]
    at: datetime
    state: Mapping[str, Any]
    fresh: Transcript
    dated: Transcript

    def leave_out(self, transaction: Session) -> None:
        """Store only keyed hashes of the new turns."""
        pauses.note_skipped_session(transaction, self.scope, self.session_id, self._reading(transaction))

    def queue(self, transaction: Session, *, is_read: bool) -> QueuedTurns | None:
        """Store the state, and its turns if it `is_read`. While the scope is paused, leave it out and return None."""
        if pauses.read_pause(transaction, self.scope) is not None:
            self.leave_out(transaction)
            return None
        reading = self._reading(transaction)
        forgotten = read_forgotten_content(transaction, self.scope, self.session_id, creates_key=True)
        state, hidden, recognised = self._without_private_words(forgotten, reading)
        sessions.save_state(
            transaction,
            self.scope,
            self.session_id,
            component=self.component,
            state=state,
            at=self.at,
            humans=self.humans,
        )
        if not is_read:
            return None
        note_seen_turns(transaction, self.scope, self.session_id, forgotten, recognised)
        self._save_transcript(transaction, reading.before, hidden)
        return QueuedTurns(hidden.turns, reading.before)

    def _reading(self, transaction: Session) -> TurnsToRecognise:
        before = self.privacy.mask_and_hide_turns(sessions.read_turns(transaction, self.scope, self.session_id))
        return TurnsToRecognise(self.fresh, self.dated, before, self.at)

    def _without_private_words(
        self, forgotten: ForgottenContent, reading: TurnsToRecognise
    ) -> tuple[Mapping[str, Any], Transcript, RecognisedTurns]:
        """Return the state and its transcript without forgotten and private words, and which turns were seen before."""
        from afterword.extractors.words_called_private import hide_after_lost_turns

        recognised = forgotten.recognise_seen_turns(reading)
        timed = forgotten.blank_in_transcript(reading, recognised)
        known = recognised.hidden_indexes if forgotten.seen.turns else None
        blanked = forgotten.blank_in_state(self.state, self.fresh.turns, timed.turns)
        state, hidden = _mask_again(blanked, timed, reading.before, self.privacy, known)
        continued = hide_after_lost_turns(timed.turns, reading.before, self.privacy.markers)
        return state, hidden, recognised.with_hidden(newly_hidden_indexes(continued, hidden.turns))

    def _save_transcript(self, transaction: Session, before: Sequence[Turn], hidden: Transcript) -> None:
        from afterword.extractors.transcript_assembly import merge_earlier_turns

        row = sessions.find_session(transaction, self.scope, self.session_id)
        basis = TimeBasis(row.time_basis) if row and row.time_basis else None
        joined = with_privacy_counts(merge_earlier_turns(before, basis, hidden, assumed=row.assumed if row else ()))
        sessions.save_transcript(transaction, self.scope, self.session_id, joined, self.at, is_done=False)


def _mask_and_read(
    state: Mapping[str, Any], humans: Collection[str], scope: Scope, session_id: str, privacy: Privacy
) -> tuple[Mapping[str, Any], Transcript | None]:
    """Return the state without secrets and what was said off the record, and its transcript."""
    read = partial(_read_transcript, humans=humans, scope=scope, session_id=session_id, privacy=privacy)
    transcript = read(state)
    people = transcript.humans if transcript is not None else (*humans, *GENERIC_SPEAKERS)
    masked = privacy.mask_state(state, people)
    # Processing will read the stored state later, so the transcript must have the same turns.
    return masked, transcript if masked == state else read(masked)


def _mask_again(
    state: Mapping[str, Any], timed: Transcript, before: Sequence[Turn], privacy: Privacy, known: set[int] | None
) -> tuple[Mapping[str, Any], Transcript]:
    """Return a state and its transcript without what a model had called private in the turns stored before.

    `known` are the indexes of the turns that are known to be off the record, None if that was not recorded.
    """
    from afterword.extractors.words_called_private import hide_as_stored, hide_in_state

    turns = hide_as_stored(timed.turns, before, privacy.markers, known)
    if turns == timed.turns:
        return state, timed
    texts = {turn.text: hidden.text for turn, hidden in zip(timed.turns, turns, strict=True)}
    return hide_in_state(state, texts, timed.humans, privacy.markers), replace(timed, turns=turns)


def _read_transcript(
    state: Mapping[str, Any], humans: Collection[str], scope: Scope, session_id: str, privacy: Privacy
) -> Transcript | None:
    """Return the transcript of a state; None if the state cannot be read."""
    from afterword.extractors.errors import ReadError
    from afterword.extractors.readers import read_state

    try:
        return read_state(state, humans=humans, user=scope.user_id, privacy=privacy)
    except ReadError as error:
        _log.warning("the state of session %r is stored, but could not be read (%s)", session_id, type(error).__name__)
        return None

"""What there is to read of one session: what is saved of it now, joined with what the store keeps of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from sqlmodel import Session

from afterword import telemetry
from afterword.extractors.extractor import Window
from afterword.extractors.owners import find_owners
from afterword.extractors.readers import read_file, read_state
from afterword.extractors.transcript_union import unite_readings
from afterword.extractors.turn_times import date_turns
from afterword.extractors.windows import cut_windows, window_key
from afterword.facts.assertions import Assertion
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import TimeBasis, Transcript, Turn
from afterword.pipeline.errors import SourceInvalid
from afterword.privacy.policy import with_privacy_counts
from afterword.privacy.tombstones import Forgotten
from afterword.store import ledger, scope_rows, sessions
from afterword.store.database.engine import Store
from afterword.store.forgetting.tombstone_rows import read_forgotten
from afterword.telemetry import Stage


@dataclass(frozen=True, slots=True)
class Saved:
    """A session to process: a file at `path`, or the parsed `state` (or what returns it); and what else is known of it.

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
class Kept:
    """What the store had of a session when it was read, and the scope's revision then.

    `turns` are those of the last reading, `last_keys` the windows of the last run (None: there is none), `readings`
    what was kept of each window ever read, and `state` what is saved now. `forgotten` is held against all that is
    read of it.
    """

    revision: int
    row: sessions.SavedSession | None
    turns: Sequence[Turn]
    last_keys: Sequence[str] | None
    readings: Mapping[str, tuple[Assertion, ...]]
    state_saved_at: datetime | None
    state: object
    forgotten: Forgotten


@dataclass(frozen=True, slots=True)
class Read:
    """A session as it stands before extraction: its windows, and the key of each."""

    kept: Kept
    transcript: Transcript
    owners: tuple[str, ...]
    windows: Sequence[Window]
    keys: tuple[str, ...]


@telemetry.staged(Stage.READ)
async def read_session(store: Store, saved: Saved, version: str) -> Read:
    """Return the session as an extractor of that version is to read it; nothing is stored.

    Raises a `ReadError` where the state cannot be read, and `SourceInvalid` where it has no times at all.
    """
    kept = await _kept(store, saved)
    transcript = _transcript(store, saved, kept)
    owning = find_owners(transcript, saved.scope)
    cut = cut_windows(transcript, owning)
    telemetry.note(turns=len(transcript.turns), windows=len(cut), layout=transcript.layout)
    return Read(kept, transcript, owning, cut, tuple(window_key(one, version) for one in cut))


async def still(store: Store, saved: Saved, read: Read) -> Read | None:
    """Return what was read for the scope as it is now, None where something of the session itself has changed."""
    scope, session_id, kept = saved.scope, saved.session_id, read.kept
    now = await store.read(
        lambda db: replace(
            kept,
            revision=scope_rows.revision_of(db, scope),
            row=sessions.find_session(db, scope, session_id),
            last_keys=ledger.last_window_keys(db, scope, ledger.session_source(session_id)),
            forgotten=read_forgotten(db, scope, session_id),
        )
    )
    is_same = (now.row, now.last_keys, now.forgotten.size) == (kept.row, kept.last_keys, kept.forgotten.size)
    return replace(read, kept=now) if is_same else None


async def _kept(store: Store, saved: Saved) -> Kept:
    scope, session_id = saved.scope, saved.session_id

    def work(db: Session) -> Kept:
        row, state = sessions.find_session(db, scope, session_id), saved.state
        if state is None and saved.path is None and not saved.reread:
            state = sessions.load_state(db, scope, session_id)
        return Kept(
            # What is decided holds for the scope as it is now, when the session is read, not when it is judged.
            revision=scope_rows.revision_of(db, scope),
            row=row,
            turns=sessions.read_turns(db, scope, session_id) if row else [],
            last_keys=ledger.last_window_keys(db, scope, ledger.session_source(session_id)),
            readings=ledger.read_windows(db, scope, ledger.session_source(session_id)),
            state_saved_at=sessions.state_saved_at(db, scope, session_id) if row else None,
            state=state() if callable(state) else state,
            forgotten=read_forgotten(db, scope, session_id),
        )

    return await store.read(work)


def _transcript(store: Store, saved: Saved, kept: Kept) -> Transcript:
    privacy, row = store.privacy, kept.row
    before = list(privacy.mask_turns(kept.turns))  # they may have been kept before secrets were masked
    if saved.reread and row is not None:
        return with_privacy_counts(sessions.stored_transcript(before, row))
    humans = (*saved.humans, *(row.humans if row else ()))
    fresh = (
        read_file(saved.path, humans=humans, privacy=privacy)
        if saved.path
        else read_state(kept.state, humans=humans, privacy=privacy)
    )
    timed = date_turns(fresh, started_at=saved.started_at, ended_at=saved.ended_at, file_time=saved.file_time)
    timed = kept.forgotten.transcript(fresh, timed, before)
    basis = TimeBasis(row.time_basis) if row and row.time_basis else None
    joined = unite_readings(before, basis, timed, assumed=row.assumed if row else ())
    if any(turn.said_at is None for turn in joined.turns):
        raise SourceInvalid(
            f"session {saved.session_id!r} carries no times; give started_at in a manifest, or a file time"
        )
    return with_privacy_counts(joined)

"""Preparing one session for extraction: joining its saved state with the turns that are stored, and cutting windows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from functools import partial
from pathlib import Path
from typing import Any

from sqlmodel import Session

from afterword import telemetry
from afterword.errors import ScopeMoved
from afterword.extractors.extractor import Window
from afterword.extractors.readers import read_file, read_state
from afterword.extractors.transcript_assembly import (
    MOST_AHEAD,
    date_turns,
    diff_turns,
    localise_turns,
    merge_earlier_turns,
    no_earlier_than_clock,
    without_future_times,
)
from afterword.extractors.windows import cut_windows, window_key
from afterword.extractors.words_called_private import WordsCalledPrivate, hide_after_lost_turns, hide_as_stored
from afterword.facts.assertions import Assertion
from afterword.facts.findings import FindingPolicy
from afterword.facts.local_time import at_speaker_offset
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import TimeBasis, Transcript, Turn, find_owners
from afterword.pipeline.errors import SourceInvalid
from afterword.privacy.off_record import newly_hidden_indexes
from afterword.privacy.policy import Privacy, with_privacy_counts
from afterword.privacy.seen_turns import TurnsToRecognise
from afterword.privacy.tombstones import ForgottenContent
from afterword.store import ledger, proposals, scope_rows, sessions
from afterword.store.database.engine import Store
from afterword.store.findings.stored_findings import finding_policy_of
from afterword.store.forgetting.pauses import read_pause
from afterword.store.forgetting.tombstone_rows import read_forgotten_content


@dataclass(frozen=True, slots=True)
class Saved:
    """A session to process: a file at `path`, or the parsed `state` (or a function that returns it).

    `humans` are speakers who are known to be people. A time without an offset is a local time of the scope. `file_time`
    is only a guess of when the session took place, so a statement with this time never retires a fact. With a
    `folder`, no symbolic link in the path may lead out of it. With `reread` no file is needed: the turns in the store
    are read again, for example by a better extractor. A session that is `off_the_record` is not read at all.
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
    folder: Path | None = None


@dataclass(frozen=True, slots=True)
class StoredSession:
    """What the store held about a session when it was read, and the revision of the scope at that time.

    `turns` are the stored turns, `last_keys` the keys of the windows of the last run (None without a run), `readings`
    the statements of every window ever read, by its key, and `state` the saved state. `forgotten` recognises content of
    the session that must not be stored again. While the scope `is_paused`, nothing of the session is stored. `zone` is
    for times without an offset, and `findings` says whose findings the scope keeps.
    """

    revision: int
    row: sessions.SavedSession | None
    turns: Sequence[Turn]
    last_keys: Sequence[str] | None
    readings: Mapping[str, tuple[Assertion, ...]]
    state_saved_at: datetime | None
    state: object
    forgotten: ForgottenContent
    is_paused: bool
    zone: tzinfo
    findings: FindingPolicy


@dataclass(frozen=True, slots=True)
class PreparedSession:
    """A session before extraction: its windows, and the key of each.

    `reading` is what was read of its state. `masked_texts` has, for each turn in which a model called something
    private, the text before and after masking.
    """

    stored: StoredSession
    transcript: Transcript
    owners: tuple[str, ...]
    windows: Sequence[Window]
    keys: tuple[str, ...]
    reading: TurnsToRecognise
    masked_texts: Mapping[str, str] = field(default_factory=dict)


@telemetry.staged(telemetry.Stage.READ)
async def prepare_session(store: Store, saved: Saved, version: str, *, now: datetime | None = None) -> PreparedSession:
    """Return the session as the extractor with this version will read it. Nothing is stored.

    Raises a `ReadError` if the state cannot be read, and `SourceInvalid` if the session has no times, or one that lies
    in the future.
    """
    stored = await store.read(partial(_read_stored_session, saved, store))
    transcript, masked_texts, reading = _joined_transcript(store, saved, stored, no_earlier_than_clock(now))
    owners = find_owners(transcript.humans, transcript.assumed, saved.scope)
    prepared = _cut_into_windows(PreparedSession(stored, transcript, owners, (), (), reading, masked_texts), version)
    telemetry.note(turns=len(transcript.turns), windows=len(prepared.windows), layout=transcript.layout)
    return prepared


def without_words_called_private(
    prepared: PreparedSession, private: WordsCalledPrivate, version: str
) -> PreparedSession:
    """Return the session with everything masked that a model called private; the same object if nothing was."""
    turns = private.hide_in_turns(prepared.transcript.turns)
    if turns == prepared.transcript.turns:
        return prepared
    newly_masked = _changed_texts(prepared.transcript.turns, turns)
    again = {text: newly_masked.get(masked, masked) for text, masked in prepared.masked_texts.items()}
    hidden = _indexes_in_state(prepared, newly_hidden_indexes(prepared.transcript.turns, turns))
    reading = replace(prepared.reading, hidden=prepared.reading.hidden | hidden)
    transcript = with_privacy_counts(replace(prepared.transcript, turns=turns))
    prepared = replace(prepared, transcript=transcript, reading=reading, masked_texts=newly_masked | again)
    return _cut_into_windows(prepared, version)


def _indexes_in_state(prepared: PreparedSession, indexes: Collection[int]) -> set[int]:
    """Return where these turns of the transcript, given by their indexes, stand in the state that was read."""
    found: set[int] = set()
    for is_equal, start, end, new_start, _ in diff_turns(prepared.transcript.turns, prepared.reading.fresh.turns):
        found.update(new_start + index - start for index in indexes if is_equal and start <= index < end)
    return found


def _changed_texts(turns: Sequence[Turn], masked: Sequence[Turn]) -> dict[str, str]:
    return {turn.text: after.text for turn, after in zip(turns, masked, strict=True) if turn.text != after.text}


def _cut_into_windows(prepared: PreparedSession, version: str) -> PreparedSession:
    windows = cut_windows(prepared.transcript, prepared.owners)
    return replace(prepared, windows=windows, keys=tuple(window_key(window, version) for window in windows))


def with_revision_if_unchanged(
    saved: Saved, prepared: PreparedSession, transaction: Session, *, may_have_grown: bool = False
) -> PreparedSession:
    """Return the prepared session with the current revision of the scope.

    Raises `ScopeMoved` if the stored data about the session itself has changed: then it must be prepared again. If it
    `may_have_grown`, its state may have been saved again.
    """

    def of_session(stored: StoredSession) -> tuple[object, ...]:
        row = stored.row and stored.row.key if may_have_grown else stored.row
        return row, stored.last_keys, stored.forgotten.forgotten_item_count

    current = replace(prepared.stored, **_read_changing_fields(saved, transaction))
    if of_session(current) != of_session(prepared.stored):
        raise ScopeMoved(f"session {saved.session_id!r} of {saved.scope} was read further, or forgotten, meanwhile")
    return replace(prepared, stored=current)


def with_later_turns(
    saved: Saved, prepared: PreparedSession, privacy: Privacy, transaction: Session
) -> PreparedSession:
    """Return the prepared session with the turns that were stored since it was read. They are in none of its windows.

    What is private in the session is masked in these turns, too. Raises `ScopeMoved` unless they all stand behind the
    turns that were read, because quotes name turns by their numbers.
    """
    row = sessions.find_session(transaction, saved.scope, saved.session_id)
    turns = sessions.turns_by_session_pk(transaction, row.key) if row else []
    if row is None or turns == prepared.stored.turns:
        return prepared
    read, unmasked = prepared.transcript, privacy.mask_and_hide_turns(turns)
    later = sessions.transcript_of_session(hide_as_stored(unmasked, read.turns, privacy.markers), row)
    joined = merge_earlier_turns(read.turns, read.time_basis, later, assumed=read.assumed)
    are_last = turns_begin_with(turns, prepared.stored.turns) and turns_begin_with(joined.turns, read.turns)
    if prepared.stored.row is None or not are_last:
        raise ScopeMoved(f"turns were stored within those of session {saved.session_id!r} of {saved.scope} meanwhile")
    masked_texts = {**_changed_texts(unmasked, later.turns), **prepared.masked_texts}
    transcript = with_privacy_counts(localise_turns(joined, prepared.stored.zone))
    return replace(prepared, transcript=transcript, masked_texts=masked_texts)


def turns_begin_with(turns: Sequence[Turn], first: Sequence[Turn]) -> bool:
    """Return whether these are the first turns, by their texts."""
    return [turn.text for turn in turns[: len(first)]] == [turn.text for turn in first]


def measure_queue_age(stored: StoredSession, at: datetime) -> None:
    """Record in a metric how long a session that is not processed yet has waited since its state was saved."""
    is_waiting = stored.row is not None and stored.row.progress != "done"
    if is_waiting and stored.state_saved_at is not None:
        telemetry.measure(telemetry.Measure.QUEUE_AGE, max(0.0, (at - stored.state_saved_at).total_seconds()))


def _read_stored_session(saved: Saved, store: Store, transaction: Session) -> StoredSession:
    scope, session_id = saved.scope, saved.session_id
    fields = _read_changing_fields(saved, transaction)
    state = saved.state
    if state is None and saved.path is None and not saved.reread:
        state = sessions.load_state(transaction, scope, session_id)
    return StoredSession(
        **fields,
        turns=sessions.read_turns(transaction, scope, session_id) if fields["row"] else [],
        readings=proposals.read_window_assertions(transaction, scope, ledger.session_run_source(session_id)),
        state_saved_at=sessions.state_saved_at(transaction, scope, session_id) if fields["row"] else None,
        state=state() if callable(state) else state,
        zone=scope_rows.zone_of(transaction, scope, store.zone),
        findings=finding_policy_of(transaction, scope, store.privacy),
    )


def _read_changing_fields(saved: Saved, transaction: Session) -> dict[str, Any]:
    scope, session_id = saved.scope, saved.session_id
    row = sessions.find_session(transaction, scope, session_id)
    return {
        # The run is refused if the revision changes after this read, not only after the pairs are read.
        "revision": scope_rows.revision_of(transaction, scope),
        "row": row,
        # A session without a row can have dry runs only, which do not count here.
        "last_keys": row and ledger.last_window_keys(transaction, scope, ledger.session_run_source(session_id)),
        "forgotten": read_forgotten_content(transaction, scope, session_id),
        "is_paused": read_pause(transaction, scope) is not None,
    }


def _joined_transcript(
    store: Store, saved: Saved, stored: StoredSession, now: datetime
) -> tuple[Transcript, dict[str, str], TurnsToRecognise]:
    """Return the transcript of a session, and what was masked again because a model called it private before.

    The second value has the text of each such turn before and after masking. The third is what was read of the state.
    """
    row = stored.row
    before = list(store.privacy.mask_and_hide_turns(stored.turns))  # an older version may have stored them unmasked
    if saved.reread and row is not None:
        again = with_privacy_counts(localise_turns(sessions.transcript_of_session(before, row), stored.zone))
        return again, {}, TurnsToRecognise(again, again, before)
    fresh = without_future_times(_read_saved_transcript(saved, stored, store.privacy), now)
    reading = TurnsToRecognise(fresh, _dated_transcript(saved, fresh, stored.zone, now), before, now)
    masked, masked_texts, reading = _masked_as_before(stored.forgotten, reading, store.privacy)
    basis = TimeBasis(row.time_basis) if row and row.time_basis else None
    # Older versions stored times in the future, too. The saved state may have better ones.
    known = without_future_times(Transcript(tuple(before), layout=""), now).turns
    joined = merge_earlier_turns(known, basis, masked, assumed=row.assumed if row else ())
    joined = _with_all_times(joined, saved, stored.state_saved_at)
    return with_privacy_counts(localise_turns(joined, stored.zone)), masked_texts, reading


def _read_saved_transcript(saved: Saved, stored: StoredSession, privacy: Privacy) -> Transcript:
    """Return the transcript of the file or state of a session."""
    humans = (*saved.humans, *(stored.row.humans if stored.row else ()))
    user, zone = saved.scope.user_id, stored.zone
    if saved.path:
        return read_file(saved.path, folder=saved.folder, humans=humans, user=user, privacy=privacy, zone=zone)
    return read_state(stored.state, humans=humans, user=user, privacy=privacy, zone=zone)


def _dated_transcript(saved: Saved, fresh: Transcript, zone: tzinfo, now: datetime) -> Transcript:
    """Return the transcript with the known times of the session. Raises `SourceInvalid` for one in the future."""
    started, ended, written = (
        at and at_speaker_offset(at, zone) for at in (saved.started_at, saved.ended_at, saved.file_time)
    )
    dated = date_turns(fresh, started_at=started, ended_at=ended, file_time=written)
    _check_times(saved, dated, {"started_at": started, "ended_at": ended}, now)
    return dated


def _masked_as_before(
    forgotten: ForgottenContent, reading: TurnsToRecognise, privacy: Privacy
) -> tuple[Transcript, dict[str, str], TurnsToRecognise]:
    """Return the dated transcript without forgotten words and without what a model called private before.

    The second value has the text of each turn that was masked, before and after. The third is the reading, which now
    knows what was off the record.
    """
    recognised = forgotten.recognise_seen_turns(reading) if forgotten.seen.turns else None
    kept = forgotten.blank_in_transcript(reading, recognised)
    known = recognised.hidden_indexes if recognised else None
    turns = hide_as_stored(kept.turns, reading.before, privacy.markers, known)
    continued = hide_after_lost_turns(kept.turns, reading.before, privacy.markers)
    reading = replace(reading, hidden=frozenset(newly_hidden_indexes(continued, turns)))
    return replace(kept, turns=turns), _changed_texts(kept.turns, turns), reading


def _with_all_times(joined: Transcript, saved: Saved, state_saved_at: datetime | None) -> Transcript:
    """Return the transcript with a time for each turn. Raises `SourceInvalid` if none is known."""
    if all(turn.said_at is not None for turn in joined.turns):
        return joined
    if state_saved_at is None or saved.path is not None or saved.state is not None:
        raise SourceInvalid(f"session {saved.session_id!r} has no times; give started_at in a manifest, or a file time")
    # An older version could lose turns of a recorded state, together with their times.
    turns = tuple(turn if turn.said_at else turn.dated(state_saved_at) for turn in joined.turns)
    return replace(joined, turns=turns, time_basis=joined.time_basis or TimeBasis.RECORDER)


def _check_times(saved: Saved, dated: Transcript, given: Mapping[str, datetime | None], now: datetime) -> None:
    """Raise `SourceInvalid` if a `given` time, or that of the last turn, is more than a day later than `now`."""
    last = max((turn.said_at for turn in dated.turns if turn.said_at), default=None)
    source = "the time of its file" if dated.time_basis is TimeBasis.FILE else "its time"
    for name, at in (*given.items(), (source, last)):
        if at is not None and at > now + MOST_AHEAD:
            where = f"{saved.path}: " if saved.path else ""
            raise SourceInvalid(
                f"{where}session {saved.session_id!r}: {name} is {at.isoformat(timespec='seconds')}, which lies in the "
                "future; correct it, and process the session again"
            )

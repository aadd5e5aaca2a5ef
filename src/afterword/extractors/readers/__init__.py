"""Readers: turn saved states of any known layout into transcripts. Pure except for `read_file`.

Other packages use the functions below, and of the modules here `memory_marks` (what is injected memory),
`agent_framework` (the messages of that library) and `limits` (how large and deep a saved state may be).
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, tzinfo
from pathlib import Path

from afterword.extractors.errors import ReadError
from afterword.extractors.readers.agent_framework import is_session_without_messages
from afterword.extractors.readers.layouts import recognise
from afterword.extractors.readers.limits import check_depth, parse_state, read_bytes
from afterword.extractors.readers.role_messages import Perspective
from afterword.extractors.readers.turns import build_transcript
from afterword.extractors.readers.utterances import People, ReadingLog
from afterword.facts.transcripts import Transcript
from afterword.normal_form import composed_value
from afterword.privacy.policy import Privacy

__all__ = ["is_session_without_messages", "parse_state", "read_bytes", "read_file", "read_state"]


def read_state(
    state: object,
    *,
    humans: Collection[str] = (),
    user: str | None = None,
    privacy: Privacy | None = None,
    zone: tzinfo = UTC,
) -> Transcript:
    """Return the transcript of an already parsed saved state.

    `humans` are names of people, added to the names that say so themselves. `user` is the id of the user whose memory
    it is: a member of a team whose state does not tell whether it is a person is one under that name.
    `privacy` says which secrets are masked (default: all) and which phrases take turns off the record.
    Times without an offset are local times of `zone`.
    Raises `LayoutUnknown` if nothing in it looks like a conversation, and `StateTooLarge` if it is nested more than
    200 levels deep.
    """
    check_depth(state)
    return _read(state, People.named(humans, user), privacy, zone)


def read_file(
    path: Path,
    *,
    folder: Path | None = None,
    humans: Collection[str] = (),
    user: str | None = None,
    privacy: Privacy | None = None,
    zone: tzinfo = UTC,
) -> Transcript:
    """Return the transcript of a saved-state file. The arguments are those of `read_state`.

    No symbolic link may lead out of `folder`, in which the file lies.

    Raises a `ReadError` whose message starts with the file's name: `StateTooLarge` over 64 MiB (unread) or 200 levels,
    `StateBroken` for what is no sound JSON, `LayoutUnknown`, or `ReadError` itself where the file cannot be opened.
    """
    try:
        return _read(parse_state(read_bytes(path, folder)), People.named(humans, user), privacy, zone)
    except ReadError as error:
        raise type(error)(f"{path}: {error}") from error


def _read(state: object, people: People, privacy: Privacy | None, zone: tzinfo) -> Transcript:
    state, log = composed_value(state), ReadingLog(zone=zone)
    return build_transcript(recognise(state, log, Perspective(people)), log, people, privacy or Privacy())

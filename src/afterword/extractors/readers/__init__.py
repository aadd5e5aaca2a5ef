"""Readers: turn saved states of any known layout into transcripts. Pure except for `read_file`.

Other packages use the functions below and three of the modules: `memory_marks` (injected memory), `agent_framework`
(messages of that library) and `limits` (how large and how deeply nested a saved state may be).
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, tzinfo
from pathlib import Path

from afterword.extractors.errors import ReadError
from afterword.extractors.readers.agent_framework import is_session_without_messages
from afterword.extractors.readers.layouts import read_known_layout
from afterword.extractors.readers.limits import check_depth, parse_state, read_bytes
from afterword.extractors.readers.role_messages import SpeakerClues
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

    `humans` are further names of people, besides generic names such as `user`. `user` is the id of the user whose
    memory it is. A speaker with that name is taken for a person if the state does not show that it is an agent.
    `privacy` says which secrets are masked (default: all) and which phrases take turns off the record.
    Times without an offset are local times of `zone`.

    Raises `LayoutUnknown` if nothing in the state looks like a conversation, and `StateTooLarge` if it is nested more
    than 200 levels deep.
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

    If `folder` is given, the file must lie in it, and no symbolic link may lead out of it.

    Raises a `ReadError` whose message starts with the file's name: `StateTooLarge` over 64 MiB (without reading it) or
    200 levels, `StateBroken` for invalid JSON, `LayoutUnknown`, or `ReadError` itself if the file cannot be opened.
    """
    try:
        return _read(parse_state(read_bytes(path, folder)), People.named(humans, user), privacy, zone)
    except ReadError as error:
        raise type(error)(f"{path}: {error}") from error


def _read(state: object, people: People, privacy: Privacy | None, zone: tzinfo) -> Transcript:
    state, log = composed_value(state), ReadingLog(zone=zone)
    return build_transcript(read_known_layout(state, log, SpeakerClues(people)), log, people, privacy or Privacy())

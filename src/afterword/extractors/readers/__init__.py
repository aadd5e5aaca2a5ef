"""Read saved states of any known layout into transcripts. Pure but for `read_file`."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from afterword.extractors.errors import ReadError
from afterword.extractors.readers.detect import recognise
from afterword.extractors.readers.legacy import Side
from afterword.extractors.readers.limits import check_depth, parse_state, read_bytes
from afterword.extractors.readers.people import People
from afterword.extractors.readers.turns import transcript_of
from afterword.extractors.readers.utterances import Notes
from afterword.facts.transcripts import Transcript
from afterword.privacy.policy import Privacy

__all__ = ["parse_state", "read_file", "read_state"]


def read_state(
    data: object, *, humans: Collection[str] = (), owner: str | None = None, privacy: Privacy | None = None
) -> Transcript:
    """Return the transcript of an already parsed saved state.

    `humans` are names known to be people's, added to those that say so themselves. `owner` is the person (the user
    proxy) whose v0.2 list it is, needed where its messages carry no names: their role `assistant` is then the owner's.
    `privacy` says which secrets are masked (default: all), and what takes turns off the record.
    Raises `LayoutUnknown` where nothing in it looks like a conversation, `StateTooLarge` over 200 levels of nesting.
    """
    check_depth(data)
    return _read(data, humans, owner, privacy)


def read_file(
    path: Path, *, humans: Collection[str] = (), owner: str | None = None, privacy: Privacy | None = None
) -> Transcript:
    """Return the transcript of a saved-state file; arguments as for `read_state`.

    Raises a `ReadError` whose message starts with the file's name: `StateTooLarge` over 64 MiB (unread) or 200 levels,
    `StateBroken` for what is no sound JSON, `LayoutUnknown`, or `ReadError` itself where the file cannot be opened.
    """
    try:
        return _read(parse_state(read_bytes(path)), humans, owner, privacy)
    except ReadError as error:
        raise type(error)(f"{path}: {error}") from error


def _read(data: object, humans: Collection[str], owner: str | None, privacy: Privacy | None) -> Transcript:
    notes = Notes()
    people = People.named(humans, owner)
    return transcript_of(recognise(data, notes, Side(people, owner)), notes, people, privacy or Privacy())

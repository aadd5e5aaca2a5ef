"""Transcripts: the utterances of a session in order. Frozen values, no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class Role(StrEnum):
    """Who speaks in a turn, or in a stretch of one. Only a human's words are evidence by themselves.

    `PASTED` is the role of a stretch of a human's turn that somebody else wrote. No whole turn has it.
    """

    HUMAN = "human"
    AGENT = "agent"
    TOOL = "tool"
    MEMORY = "memory"
    SYSTEM = "system"
    THOUGHT = "thought"
    PASTED = "pasted"


LARGEST_STATE_BYTES = 64 * 1024 * 1024
"""The largest saved state that is read, as UTF-8."""


class TimeBasis(StrEnum):
    """Where the times of a session come from, best first. `FILE` is a guess, and a guess never retires a fact."""

    TURNS = "turns"
    RECORDER = "recorder"
    MANIFEST = "manifest"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class Turn:
    """One utterance. `number` counts from 1. `said_at` has the speaker's offset, None while no time is known.

    `time_is_guess` says that the time is only that of a file.
    """

    number: int
    speaker: str
    role: Role
    text: str
    said_at: datetime | None = None
    message_id: str | None = None
    time_is_guess: bool = False

    def dated(self, said_at: datetime, *, is_guess: bool | None = None) -> Turn:
        """Return the turn with this time, which is a guess as before unless that is given."""
        if said_at is self.said_at and is_guess is None:
            return self
        guess = self.time_is_guess if is_guess is None else is_guess
        # A session may have a hundred thousand turns, and `dataclasses.replace` takes five times as long.
        return Turn(self.number, self.speaker, self.role, self.text, said_at, self.message_id, guess)


@dataclass(frozen=True, slots=True)
class Transcript:
    """The turns of one saved state.

    `layout` names the recognised format. `humans` are the speakers taken for people, in order of their first turn.
    `assumed` are those of them who are taken for people only because they spoke from outside a team: they are the owner
    only if the scope's id names them. `skipped` counts what could not be read, by reason. `time_basis` is None until
    the turns have times.
    """

    turns: tuple[Turn, ...]
    layout: str
    humans: tuple[str, ...] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)
    time_basis: TimeBasis | None = None
    assumed: tuple[str, ...] = ()

    @property
    def started_at(self) -> datetime | None:
        """The first known time of a turn."""
        return min((turn.said_at for turn in self.turns if turn.said_at), default=None)

    @property
    def ended_at(self) -> datetime | None:
        """The last known time of a turn."""
        return max((turn.said_at for turn in self.turns if turn.said_at), default=None)


TurnPlace = tuple[str, int]
"""Session id and number of a turn."""


@dataclass(frozen=True, slots=True)
class SourceTurn:
    """A person's turn that is evidence of a fact. `in_company` says that several people speak in its session.

    `shown` is what is stored about what an agent is shown of it (see `recall.said_index`), None if nothing is.
    """

    session_id: str
    number: int
    speaker: str
    said_at: datetime | None
    text: str
    in_company: bool = False
    shown: str | None = field(default=None, compare=False, repr=False)

    @property
    def place(self) -> TurnPlace:
        """The session id and number."""
        return self.session_id, self.number

"""A session's utterances in order, as every package speaks of them. Frozen values, no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class Role(StrEnum):
    """Who speaks in a turn. Only a human's words are evidence by themselves."""

    HUMAN = "human"
    AGENT = "agent"
    TOOL = "tool"
    MEMORY = "memory"
    SYSTEM = "system"
    THOUGHT = "thought"


class TimeBasis(StrEnum):
    """Where a session's times come from, best first. `FILE` is a guess, and a guess never retires a fact."""

    TURNS = "turns"
    RECORDER = "recorder"
    MANIFEST = "manifest"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class Turn:
    """One utterance. `number` counts from 1; `said_at` is aware UTC, None while no source of time is known.

    `time_is_guess`: the time is only that of a file.
    """

    number: int
    speaker: str
    role: Role
    text: str
    said_at: datetime | None = None
    message_id: str | None = None
    time_is_guess: bool = False


@dataclass(frozen=True, slots=True)
class Transcript:
    """What one saved state says.

    `layout` names the recognised form, `humans` the speakers taken for people (in order of first words), `skipped`
    counts what could not be read, by reason. `time_basis` is None until the turns carry times. `assumed` are those of
    `humans` who are taken for people only because they spoke from outside of a team; never the owner unless the
    scope's id names them.
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
"""Where a turn stands: session id, number."""


@dataclass(frozen=True, slots=True)
class SourceTurn:
    """A turn of a person that a fact rests on. `in_company` says that several people speak in its session."""

    session_id: str
    number: int
    speaker: str
    said_at: datetime | None
    text: str
    in_company: bool = False

    @property
    def place(self) -> TurnPlace:
        """Where it stands."""
        return self.session_id, self.number

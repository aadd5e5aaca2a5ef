"""Transcripts: the utterances of a session in order, and which of their speakers own the scope. No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from afterword.facts.scopes import Scope, ScopeKind
from afterword.facts.words import folded

LARGEST_STATE_BYTES = 64 * 1024 * 1024
"""The largest saved state that is read, as UTF-8."""
TurnPlace = tuple[str, int]
"""Session id and number of a turn."""
HUMAN_NAMES = frozenset({"user", "human", "user_proxy", "userproxy"})
"""Speaker names that stand for a person without naming one. Within a session all of them are the same person."""
PROGRAM_NAMES = frozenset(
    "agent application assistant bot manager orchestrator program scheduler system task tool".split()
)
"""Speaker names that stand for a program. A task under such a name is no person's, unless the name is listed as one."""
_SHORTEST_PART = 2
PERSONAL_WORDS = frozenset(
    "i i'm i've i'll i'd me my mine myself we we're our ours us user user's he he's him his she she's her hers they "
    "they're their them ich mir mich mein meine meinen meiner meinem wir uns unser unsere er sie sein seine ihr ihre "
    "nutzer nutzerin".split()
)
"""Words by which a text refers to its writer or to another person."""


class Role(StrEnum):
    """Who speaks in a turn, or in a part of a turn. Only the words of a human are evidence by themselves.

    `PASTED` is the role of text within a human's turn that somebody else wrote. No whole turn has it.
    """

    HUMAN = "human"
    AGENT = "agent"
    TOOL = "tool"
    MEMORY = "memory"
    SYSTEM = "system"
    THOUGHT = "thought"
    PASTED = "pasted"


class TimeBasis(StrEnum):
    """Where the times of a session come from, best first. `FILE` is a guess, and a guess never retires a fact."""

    TURNS = "turns"
    RECORDER = "recorder"
    MANIFEST = "manifest"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class Turn:
    """One utterance. `number` counts from 1.

    `said_at` has the speaker's UTC offset, and is None while no time is known. `time_is_guess` says that the time is
    only that of a file.
    """

    number: int
    speaker: str
    role: Role
    text: str
    said_at: datetime | None = None
    message_id: str | None = None
    time_is_guess: bool = False

    @property
    def is_said(self) -> bool:
        """Whether somebody said or wrote this, or thought it. Memory and system messages are put in by a program."""
        return self.role not in (Role.MEMORY, Role.SYSTEM)

    def dated(self, said_at: datetime, *, is_guess: bool | None = None) -> Turn:
        """Return the turn with this time. `is_guess` None keeps the turn's `time_is_guess`."""
        if said_at is self.said_at and is_guess is None:
            return self
        guess = self.time_is_guess if is_guess is None else is_guess
        # A session may have a hundred thousand turns, and `dataclasses.replace` takes five times as long.
        return Turn(self.number, self.speaker, self.role, self.text, said_at, self.message_id, guess)


@dataclass(frozen=True, slots=True)
class Transcript:
    """The turns of one saved state.

    `layout` names the recognised format. `humans` are the speakers who count as people, in order of their first turn.
    `assumed` are those of them who count as people only because they spoke from outside a team. They are the owner of
    the scope only if its id names them. `skipped` counts the messages that could not be read, by reason. `time_basis`
    is None until the turns have times.
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


@dataclass(frozen=True, slots=True)
class SourceTurn:
    """A stored turn with its session: one that a fact cites or that a question matches, or the turn before it.

    `in_company` says that several people speak in its session.

    `shown` is the stored form of the text that an agent may be shown of the turn (see `recall.said_index`), None if
    nothing was stored.
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


def is_generic_name(name: str) -> bool:
    """Return whether a speaker's name stands for a person without naming one, such as "user"."""
    return folded(name) in HUMAN_NAMES


def find_owners(humans: Sequence[str], assumed_names: Sequence[str], scope: Scope) -> tuple[str, ...]:
    """Return the speakers who are the owner of the scope, in the order of `humans`.

    In a user's scope the only person of a session is the owner, whatever names this person has in the session. Among
    several people the owner is the person whom the scope's id names, and every speaker with a generic name. If the id
    fits two people, it names neither. The scope of a team, a project or an agent has no owner among the speakers, and
    people's statements about themselves are stored under their own names.

    A speaker who is only assumed to be a person (`assumed_names`) is the owner only if the scope's id names them, and
    never prevents somebody else from being the owner.
    """
    if scope.kind is not ScopeKind.USER:
        return ()
    assumed = {folded(name) for name in assumed_names}
    generic = {folded(name) for name in humans if is_generic_name(name)}
    known = {folded(name) for name in humans} - assumed - generic
    named = _named_by(scope.id, known) or _named_by(scope.id, assumed)
    taken = known if len(known) <= 1 and named.isdisjoint(assumed) else named
    return tuple(name for name in humans if folded(name) in taken | generic)


def _named_by(scope_id: str, people: set[str]) -> set[str]:
    """Return the person whom the whole id or a part of it names, as a set; the empty set if two people fit."""
    whole = folded(scope_id)
    if whole in people:
        return {whole}
    parts = {part for part in re.split(r"[\W_]+", whole) if len(part) >= _SHORTEST_PART}
    # A name without letters and digits counts as one word, because an empty set would fit every id.
    words = {person: set(filter(None, re.split(r"[\W_]+", person))) or {person} for person in people}
    fitting = {person for person in people if person in parts or words[person] <= parts}
    return fitting if len(fitting) == 1 else set()


def refers_to_person(text: str, owner: str) -> bool:
    """Whether a text refers to its writer, to the owner, or to a person by a pronoun such as "she"."""
    words = {word.strip('.,;:!?"()[]').replace("\u2019", "'") for word in folded(text).split()}
    names = set(folded(owner).split())
    return bool(words & PERSONAL_WORDS) or names <= words | {word.removesuffix("'s") for word in words}

"""Assertions (statements with speaker, time and quotes) and the verdicts on pairs of them. Frozen values, no I/O."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum, StrEnum

from afterword.facts.scopes import Scope
from afterword.facts.words import folded

OWNER = "user"
"""The subject of facts about the owner of the scope."""


EVERYTHING = "everything"
"""The attribute of a retraction that withdraws everything said about its subject."""


class Kind(StrEnum):
    """What sort of thing a fact is."""

    PREFERENCE = "preference"
    ENTITY = "entity"
    DECISION = "decision"


class Act(StrEnum):
    """What saying it does: states something, says it no longer holds, or asks for it to be gone."""

    STATE = "state"
    RETRACT = "retract"
    ERASE = "erase"


# Models are sent the class name and its docstring in the JSON schema of their answer: neither may change.
SpeechAct = Act


class Cue(StrEnum):
    """How the speaker marked it against what was said before, where they did."""

    CHANGE = "change"
    CORRECTION = "correction"


class Authority(IntEnum):
    """The source of an assertion, from the lowest authority to the highest. A lower one never retires a higher one."""

    AGENT = 1
    IMPORTED = 2
    INFERRED = 3
    APPLICATION = 4
    CONFIRMED = 5
    STATED = 6


class EvidenceKind(StrEnum):
    """What supports an assertion."""

    TURN = "turn"
    APPLICATION = "application"
    PERSON = "person"
    IMPORT = "import"


Order = tuple[datetime, str, int, int, str]
"""A place in the order of saying: the time, the session, the turn, the position in the turn, and the id."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What supports an assertion. For a turn, `quote` holds the words exactly as they stand in it.

    `start` is the position of the quote in the turn's text, in characters from 0.
    """

    kind: EvidenceKind
    quote: str
    session_id: str | None = None
    turn: int | None = None
    speaker: str | None = None
    start: int | None = None


@dataclass(frozen=True, slots=True)
class Assertion:
    """One grounded statement from one session (or from the application, a person, an import).

    `said_at` is when it was said. `valid_from` and `valid_to` (the last instant) say when it holds, if the words say
    so. These times have the speaker's UTC offset, since days are the speaker's own. `time_is_guess` says that the only
    known time is that of the session's file. `limited_to` names a project or occasion for which alone the statement
    holds, `outcome` how a decision turned out. `is_flagged` says whether agents must always be told it; None if neither
    a person nor a model has decided. `tags` come from the application. `former_name` is an earlier name of the subject,
    if the words give one.
    """

    id: str
    scope: Scope
    session_id: str | None
    act: SpeechAct
    kind: Kind
    subject: str
    attribute: str
    value: str
    statement: str
    speaker: str | None
    authority: Authority
    said_at: datetime
    evidence: tuple[Evidence, ...]
    time_is_guess: bool = False
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    cue: Cue | None = None
    limited_to: str | None = None
    outcome: str | None = None
    is_flagged: bool | None = None
    tags: tuple[str, ...] = ()
    former_name: str | None = None

    @property
    def slot(self) -> tuple[str, str]:
        """The subject and the attribute, in folded form. Assertions of one slot can replace each other."""
        return folded(self.subject), folded(self.attribute)

    @property
    def order(self) -> Order:
        """The sort key for the order of saying. Two assertions never have the same key."""
        turn, start = max(((evidence.turn or 0, evidence.start or 0) for evidence in self.evidence), default=(0, 0))
        return self.said_at, self.session_id or "", turn, start, self.id


PERSON = "person"
"""The name of the judge in verdicts that a person gave."""


class Relation(StrEnum):
    """How a later-said assertion relates to an earlier-said one."""

    SAME = "same"
    NARROWS = "narrows"
    CHANGES = "changes"
    CORRECTS = "corrects"
    RETRACTS = "retracts"
    CONTINUES = "continues"
    EXCEPTS = "excepts"
    BESIDE = "beside"


class Extent(StrEnum):
    """How much a change takes of an earlier statement with days of its own: all of it, or only the days it names."""

    WHOLE = "whole"
    DAYS = "days"


RETIRING_RELATIONS = frozenset({Relation.NARROWS, Relation.CHANGES, Relation.CORRECTS, Relation.RETRACTS})


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judge's decision on how the later of two assertions relates to the earlier one, with the reason.

    `judge` names who decided. A person's verdict outranks all others. `joins_subjects` says that the two assertions use
    two names for one subject, `parts_subjects` that they use one name for two subjects. `extent` says whether a change
    replaces all of the earlier assertion or only some days; if it is None, the dates decide. `remainder` is the
    sentence of the earlier assertion without the part that a change or a correction ends, None if nothing of the
    sentence still holds.
    """

    earlier_id: str
    later_id: str
    relation: Relation
    reason: str
    judge: str
    joins_subjects: bool = False
    parts_subjects: bool = False
    extent: Extent | None = None
    remainder: str | None = None

    @property
    def pair(self) -> tuple[str, str]:
        """The ids of the two assertions, the earlier-said first."""
        return self.earlier_id, self.later_id

    @property
    def rank(self) -> tuple[int, str]:
        """The sort key among verdicts on one pair: a person outranks a model, and a model outranks the rules."""
        return (2 if self.judge == PERSON else 0 if self.judge.startswith("rules") else 1), self.judge


def deciding_verdict(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict that counts among several on one pair."""
    return max(
        verdicts,
        key=lambda verdict: (
            *(verdict.rank, verdict.relation, verdict.reason, verdict.joins_subjects, verdict.parts_subjects),
            *(verdict.extent or "", verdict.remainder or ""),
        ),
    )


def deciding_verdicts(verdicts: Iterable[Verdict]) -> dict[tuple[str, str], Verdict]:
    """Return the verdict that counts for each pair."""
    decided: dict[tuple[str, str], Verdict] = {}
    for verdict in verdicts:
        other = decided.get(verdict.pair)
        decided[verdict.pair] = deciding_verdict((other, verdict)) if other else verdict
    return decided


def digest(*parts: object, length: int = 20) -> str:
    """Return a stable hex digest of JSON-representable parts (`length` hex digits, 4 bits each)."""
    text = json.dumps(parts, ensure_ascii=True, separators=(",", ":"), default=str)
    return hashlib.blake2b(text.encode(), digest_size=32).hexdigest()[:length]


def assertion_id(scope: Scope, session_id: str | None, content: Iterable[object], evidence: Iterable[Evidence]) -> str:
    """Return the id of an assertion. The same words from the same session get the same id each time."""
    quotes = [(each.kind, each.session_id, each.turn, each.quote) for each in evidence]
    return digest(str(scope), session_id, *content, quotes)

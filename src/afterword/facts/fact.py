"""Facts with their validity and their status at an instant. Frozen values, no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from afterword.facts.assertions import Evidence, Kind
from afterword.facts.scopes import Scope


class Status(StrEnum):
    """The status of a fact at an instant."""

    CURRENT = "current"
    SUPERSEDED = "superseded"
    RETRACTED = "retracted"
    EXPIRED = "expired"
    CONTESTED = "contested"
    PENDING = "pending"


ENDED_STATUSES = frozenset({Status.SUPERSEDED, Status.RETRACTED, Status.EXPIRED})


SERVED = frozenset({Status.CURRENT, Status.CONTESTED})
"""The statuses of the facts that agents are told."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact: what the assertions about one slot say together, with its status at a given instant.

    `id` is the id of its first-said assertion; every id in `assertion_ids` resolves to it. `valid_from` and `valid_to`
    bound the period that decides the status (`valid_to` None: open), `dated` says whether one of them was said.
    `said_at` is when it was first said, `last_said_at` when it was last said, repeated or confirmed, `recorded_at` when
    it was learned. `support` counts the sessions, and the entries by applications or people, that say it. `retired_by`
    is the assertion that ended it, `contested_by` the facts that contradict it. `may_be` names the people it may be
    about where its subject is a name that fits several: it is pending then, and no agent is told it. `former` is the
    value that it replaced, where a block has room to show it. `is_flagged` marks what an agent must never miss: health,
    allergies, safety and standing instructions. `tags` are those that the application gave any of its assertions.
    `exceptions` are the facts that set a case of it apart: it is told together with them. `former_name` is what it says
    that its subject was called before.
    """

    id: str
    scope: Scope
    kind: Kind
    subject: str
    attribute: str
    value: str
    statement: str
    status: Status
    said_at: datetime
    valid_from: datetime | None
    valid_to: datetime | None
    support: int
    evidence: tuple[Evidence, ...]
    assertion_ids: tuple[str, ...]
    recorded_at: datetime | None = None
    retired_by: str | None = None
    contested_by: tuple[str, ...] = ()
    may_be: tuple[str, ...] = ()
    limited_to: str | None = None
    outcome: str | None = None
    dated: bool = False
    last_said_at: datetime | None = None
    former: str | None = None
    is_flagged: bool = False
    tags: tuple[str, ...] = ()
    exceptions: tuple[Fact, ...] = ()
    former_name: str | None = None

    @property
    def is_served(self) -> bool:
        """Whether agents are told it: it holds, contested or not."""
        return self.status in SERVED

"""Facts with their status at an instant, and how facts are compared, filtered and sorted. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import pairwise
from typing import Any

from afterword.facts.assertions import OWNER, Evidence, Kind
from afterword.facts.scopes import Scope
from afterword.facts.words import folded

_KINDS = {kind: number for number, kind in enumerate(Kind)}


class Status(StrEnum):
    """The status of a fact at an instant."""

    CURRENT = "current"
    SUPERSEDED = "superseded"
    RETRACTED = "retracted"
    EXPIRED = "expired"
    CONTESTED = "contested"
    PENDING = "pending"


ENDED_STATUSES = frozenset({Status.SUPERSEDED, Status.RETRACTED, Status.EXPIRED})


SERVED_STATUSES = frozenset({Status.CURRENT, Status.CONTESTED})
"""The statuses of facts that hold and whose subject is clear. Agents are told these facts."""


@dataclass(frozen=True, slots=True)
class Fact:
    """What assertions about one slot (a subject and an attribute) state together, with its status at an instant.

    `id` is the id of its first assertion in the order of saying; every id in `assertion_ids` also leads to the fact.
    `valid_from` and `valid_to` bound the period that decides the status (`valid_to` None: no end is known). `dated`
    says whether the words name one of these days. `said_at` is when the fact was first said, `last_said_at` when it was
    last said, repeated or confirmed, and `recorded_at` when it was stored. `support` counts the sessions and entries
    that state or confirm it. `retired_by` is the assertion that ended it, `contested_by` the facts that contradict it.
    `may_be` names the people whom the fact may be about, if its subject is a name that fits several people. Then the
    fact is pending, and agents are told it only if it is flagged, marked as unclear. `former` is the value that it
    replaced, if agents may be told that value. `is_flagged` marks facts that agents must always be told: health,
    allergies, safety and standing instructions. `tags` are all tags that the application gave to its assertions.
    `exceptions` are facts that limit it; agents are told them together with it. `former_name` is the earlier name of
    its subject, if the fact is about a renaming. `later_periods` are the periods in which it holds again after an
    interruption.
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
    later_periods: tuple[tuple[datetime, datetime | None], ...] = ()

    @property
    def ends_at(self) -> datetime | None:
        """The end of the last period, None if no end is known."""
        return self.later_periods[-1][1] if self.later_periods else self.valid_to

    @property
    def interruptions(self) -> tuple[tuple[datetime, datetime], ...]:
        """The gaps between its periods, from `valid_to` on. Something else holds in them."""
        periods = ((self.valid_from, self.valid_to), *self.later_periods)
        return tuple(
            (end, start) for (_, end), (start, _) in pairwise(periods) if end is not None and start is not None
        )

    @property
    def is_served(self) -> bool:
        """Whether agents are told the fact: it is current or contested, or it is pending and flagged."""
        return self.status in SERVED_STATUSES or (self.status is Status.PENDING and self.is_flagged)

    @property
    def told_statement(self) -> str:
        """The sentence as agents are told it. If the subject is unclear, the sentence says so."""
        return f"It is not clear whose: {self.statement}" if self.status is Status.PENDING else self.statement


@dataclass(frozen=True, slots=True)
class FactChange:
    """A fact before and after a run: `before` is None if the fact is new, `after` if it is gone."""

    before: Fact | None
    after: Fact | None


def fact_changes(before: Sequence[Fact], after: Sequence[Fact]) -> tuple[FactChange, ...]:
    """Return the facts that were added, changed or removed, each with its old and its new state.

    An old and a new fact are the same fact if they have an assertion in common. Facts of `after` come first, in their
    order, then the removed ones.
    """
    former = {id_: fact for fact in before for id_ in fact.assertion_ids}
    pairs = [(next((former[id_] for id_ in fact.assertion_ids if id_ in former), None), fact) for fact in after]
    continued = {old.id for old, _ in pairs if old is not None}
    changes = (FactChange(old, fact) for old, fact in pairs if old != fact)
    return (*changes, *(FactChange(fact, None) for fact in before if fact.id not in continued))


class FactOrder(StrEnum):
    """The orders of a list of facts.

    By `SAID` the fact that was said first comes first. By `SUBJECT` facts are sorted by kind, then by subject (the
    owner first), then by time (the newest first). By `LEARNED` the fact that was stored last comes first; facts that
    were stored together are sorted by the time of saying. Remaining ties are sorted by id, so that a page of the list
    can be found without reading the facts.
    """

    SAID = "said"
    SUBJECT = "subject"
    LEARNED = "learned"

    def sorted(self, facts: Iterable[Fact]) -> list[Fact]:
        """Return the facts in this order. They must be given in the order of saying."""
        if self is FactOrder.SUBJECT:
            return sorted(facts, key=lambda fact: (*subject_sort_key(fact.kind, fact.subject, fact.said_at), fact.id))
        if self is FactOrder.LEARNED:
            return sorted(
                facts, key=lambda fact: learned_sort_key(fact.recorded_at or fact.said_at, fact.said_at, fact.id)
            )
        return list(facts)


def subject_sort_key(kind: Kind, subject: str, said_at: datetime) -> tuple[Any, ...]:
    """Return the sort key of the order by subject, without the id of the fact."""
    return *_subject_group_key(kind, subject), -said_at.timestamp()


def _subject_group_key(kind: Kind, subject: str) -> tuple[Any, ...]:
    """Return the first part of the sort key by subject. It is equal for all facts of one kind about one subject."""
    return _KINDS[kind], subject != OWNER, subject.lower()


def learned_sort_key(learned_at: datetime, said_at: datetime, fact_id: str) -> tuple[Any, ...]:
    """Return the sort key of the order in which facts were learned."""
    return -learned_at.timestamp(), said_at, fact_id


@dataclass(frozen=True, slots=True)
class FactFilter:
    """A filter of facts. A field that is None accepts every fact.

    `subject_words` holds words in folded form, all of which must occur in the subject. A fact must have all of `tags`.
    """

    statuses: frozenset[Status] | None
    kinds: frozenset[Kind] | None
    subject_words: frozenset[str] | None
    tags: frozenset[str]

    def accepts_apart_from_status(self, fact: Fact) -> bool:
        """Whether a fact has the kind, the subject and the tags of the filter."""
        if (self.kinds is not None and fact.kind not in self.kinds) or not self.tags.issubset(fact.tags):
            return False
        return self.accepts_subject(fact.scope, fact.subject, fact.may_be)

    def accepts_subject(self, scope: Scope, subject: str, may_be: Iterable[str]) -> bool:
        """Return whether the filter names a fact's subject, or one of the people whom an unclear subject `may_be`."""
        if self.subject_words is None:
            return True
        names = (subject, *may_be, *((scope.id,) if subject == OWNER else ()))
        return self.subject_words <= {word for name in names for word in folded(name).split()}

    def accepts_status(self, fact: Fact) -> bool:
        """Whether the status of a fact is among those of the filter."""
        return self.statuses is None or fact.status in self.statuses

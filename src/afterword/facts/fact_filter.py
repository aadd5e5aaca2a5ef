"""A filter of facts, and the orders in which facts are listed. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from afterword.facts.assertions import OWNER, Kind
from afterword.facts.fact import Fact, Status
from afterword.facts.scopes import Scope
from afterword.facts.words import folded

_KINDS = {kind: number for number, kind in enumerate(Kind)}


class FactOrder(StrEnum):
    """The orders of a list of facts.

    By `SAID` the fact that was said first comes first. By `SUBJECT` facts are sorted by kind and by whom they are
    about, first those about the owner, the newest first. By `LEARNED` the fact that was learned last comes first; those
    that were learned at once are in order of time. What is still equal is in the order of the ids, so that a page can
    be found without reading the facts.
    """

    SAID = "said"
    SUBJECT = "subject"
    LEARNED = "learned"

    def sorted(self, facts: Iterable[Fact]) -> list[Fact]:
        """Return facts, which come in the order of saying, in this order."""
        if self is FactOrder.SUBJECT:
            return sorted(facts, key=lambda fact: (*subject_key(fact.kind, fact.subject, fact.said_at), fact.id))
        if self is FactOrder.LEARNED:
            return sorted(facts, key=lambda fact: learned_key(fact.recorded_at or fact.said_at, fact.said_at, fact.id))
        return list(facts)


def subject_key(kind: Kind, subject: str, said_at: datetime) -> tuple[Any, ...]:
    """Return the sort key of the order by subject, without the id of the fact."""
    return *subject_group(kind, subject), -said_at.timestamp()


def subject_group(kind: Kind, subject: str) -> tuple[Any, ...]:
    """Return the part of the sort key that facts of one kind and subject have in common."""
    return _KINDS[kind], subject != OWNER, subject.lower()


def learned_key(learned_at: datetime, said_at: datetime, fact_id: str) -> tuple[Any, ...]:
    """Return the sort key of the order in which facts were learned."""
    return -learned_at.timestamp(), said_at, fact_id


@dataclass(frozen=True, slots=True)
class FactFilter:
    """A filter of facts; None means any.

    `about` holds the folded words of a subject. A fact must have all of `tags`.
    """

    statuses: frozenset[Status] | None
    kinds: frozenset[Kind] | None
    about: frozenset[str] | None
    tags: frozenset[str]

    def fits(self, fact: Fact) -> bool:
        """Whether a fact has the kind, the subject and the tags of the filter."""
        if (self.kinds is not None and fact.kind not in self.kinds) or not self.tags.issubset(fact.tags):
            return False
        return self.is_about(fact.scope, fact.subject, fact.may_be)

    def is_about(self, scope: Scope, subject: str, may_be: Iterable[str]) -> bool:
        """Whether a fact of a scope with this subject, which may be these people, is about whom the filter names."""
        if self.about is None:
            return True
        names = (subject, *may_be, *((scope.id,) if subject == OWNER else ()))
        return self.about <= {word for name in names for word in folded(name).split()}

    def has_status(self, fact: Fact) -> bool:
        """Whether the filter lets the status of a fact through."""
        return self.statuses is None or fact.status in self.statuses

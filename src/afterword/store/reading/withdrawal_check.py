"""Refuse to withdraw a fact that does not hold any more, and name the fact that took its place."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime

from sqlmodel import Session

from afterword.errors import NotFound, StateConflict
from afterword.facts.fact import ENDED_STATUSES, Fact, Status
from afterword.facts.validity.fact_history import FactHistory
from afterword.store import fact_ids


def check_may_be_withdrawn(transaction: Session, fact: Fact, history: FactHistory, *, at: datetime) -> None:
    """Raise `StateConflict` if a withdrawal at `at` would change nothing, since no period of the fact ends later."""
    if fact.status not in ENDED_STATUSES or any(span.end is None or span.end > at for span in history.spans):
        return
    if fact.status is Status.SUPERSEDED:
        cause = _describe_replacement(transaction, fact, at=at)
    elif fact.status is Status.EXPIRED and fact.valid_to is not None:
        cause = f"ended on {fact.valid_to.date()} already"
    else:
        cause = "was withdrawn already"
    raise StateConflict(f"the fact {fact.id[:8]} {cause}")


def _describe_replacement(transaction: Session, fact: Fact, *, at: datetime) -> str:
    """Say by what a fact was replaced: by the fact at the end of its replacements."""
    last, seen = fact, {fact.id}
    with suppress(NotFound):
        while last.status is Status.SUPERSEDED and last.retired_by is not None:
            successor = fact_ids.read_fact(transaction, fact.scope, last.retired_by, at=at)
            if successor.id in seen:
                break
            seen.add(successor.id)
            last = successor
    if last is fact:
        return "was replaced already"
    if last.status in ENDED_STATUSES:
        return f"was replaced by {last.id[:8]}, which does not hold any more either"
    return f"was replaced by {last.id[:8]}; withdraw that"

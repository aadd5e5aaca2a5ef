"""Which facts differ between two instants or two states of a store. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from afterword.facts.fact import Fact


@dataclass(frozen=True, slots=True)
class FactChange:
    """A fact before and after a run: `before` is None if the fact is new, `after` if it is gone."""

    before: Fact | None
    after: Fact | None


def fact_changes(before: Sequence[Fact], after: Sequence[Fact]) -> tuple[FactChange, ...]:
    """Return the facts that differ, each as it was and as it is. Two facts are the same one if they share an assertion.

    The facts that are left stand first, in their order, then those that are gone.
    """
    former = {id_: fact for fact in before for id_ in fact.assertion_ids}
    changes, continued = [], set()
    for fact in after:
        old = next((former[id_] for id_ in fact.assertion_ids if id_ in former), None)
        if old is not None:
            continued.add(old.id)
        if old != fact:
            changes.append(FactChange(old, fact))
    return (*changes, *(FactChange(fact, None) for fact in before if fact.id not in continued))

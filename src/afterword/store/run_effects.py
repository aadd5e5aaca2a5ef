"""What a run changed, as the transaction that made it sees it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sqlmodel import Session

from afterword.facts.fact import Fact
from afterword.facts.fact_changes import FactChange, fact_changes
from afterword.facts.knowledge import Knowledge
from afterword.facts.renames import current_names
from afterword.facts.validity.timeline import facts_at
from afterword.store.database.statements import fetch_where_in
from afterword.store.lookup import assertion_ids_of_source, read_knowledge
from afterword.store.runs import Run, read_run
from afterword.store.tables import AssertionRow

_MOMENT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class KnowledgeChange:
    """What was known of a scope before and after a run counted or ceased to count.

    Only facts of the affected assertions may differ.
    """

    before: Knowledge
    after: Knowledge
    affected_ids: frozenset[str]


@dataclass(frozen=True, slots=True)
class RunEffect:
    """A run and what it changed. A run that is held for a person has changed nothing yet: see `run.status`.

    `facts` are the facts that the run is about, as they are now, changed or not.
    """

    run: Run
    changes: tuple[FactChange, ...] = ()
    facts: tuple[Fact, ...] = ()


def effect_of(
    transaction: Session,
    run_id: int,
    change: KnowledgeChange,
    at: datetime,
    concerns: Callable[[Fact], bool] = lambda _: False,
) -> RunEffect:
    """Return a run with the facts that it changed, and those that it `concerns`, with their status at `at`."""
    before = _facts(transaction, change.before, change.affected_ids, at)
    after = _facts(transaction, change.after, change.affected_ids, at)
    return effect_between(transaction, run_id, before, after, concerns)


def effect_between(
    transaction: Session,
    run_id: int,
    before: Sequence[Fact],
    after: Sequence[Fact],
    concerns: Callable[[Fact], bool] = lambda _: False,
) -> RunEffect:
    """Return a run with the facts that differ, and those that it `concerns`."""
    changes = fact_changes(before, after)
    changed_ids = {changed.after.id for changed in changes if changed.after is not None}
    facts = tuple(fact for fact in after if fact.id in changed_ids or concerns(fact))
    return RunEffect(read_run(transaction, run_id), changes, facts)


def past_changes(transaction: Session, run: Run, hidden_ids: Collection[str]) -> tuple[FactChange, ...]:
    """Return what a run changed when it was applied: what was believed just before, and then; none if it never was.

    Statements with `hidden_ids` are left out.
    """
    if run.applied_at is None:
        return ()
    before, after = (
        known.revised(known.revision, removed=[known.by_id[id_] for id_ in hidden_ids if id_ in known.by_id])
        for known in (read_knowledge(transaction, run.scope, at) for at in (run.applied_at - _MOMENT, run.applied_at))
    )
    ids = after.affected_ids(before, assertion_ids_of_source(transaction, run.scope, run.source))
    return fact_changes(*(_told_facts(transaction, known, ids, run.applied_at) for known in (before, after)))


def _told_facts(transaction: Session, known: Knowledge, ids: Collection[str], at: datetime) -> list[Fact]:
    """Return the facts of these statements under the names that were known for their subjects."""
    names = current_names(facts_at(known.histories(known.renaming_ids), at))
    return list(map(names.told, _facts(transaction, known, ids, at)))


def _facts(transaction: Session, known: Knowledge, ids: Collection[str], at: datetime) -> list[Fact]:
    recorded_at = {row.id: row.recorded_at for row in fetch_where_in(transaction, AssertionRow, "id", ids)}
    histories = [
        replace(history, recorded_at=min(recorded_at[member.id] for member in history.members))
        for history in known.histories(ids)
    ]
    return facts_at(sorted(histories, key=lambda history: history.members[0].order), at)

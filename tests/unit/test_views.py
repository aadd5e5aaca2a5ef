"""What may be served at an instant: a view says of every fact what the timeline says, at every instant."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

from afterword.facts.timeline import FactHistory, facts_at
from afterword.store.reading.fact_rows import COLUMNS, StoredFact, stored_facts
from afterword.store.reading.snapshots import Snapshot
from afterword.store.reading.views import View
from afterword.store.rows import assertion_values, evidence_values, fact_values
from afterword.store.tables import AssertionRow, EvidenceRow, FactAssertionRow, FactRow
from histories import LENA, History, day, histories, holds_for

TICK = timedelta(microseconds=1)


def held(course: FactHistory) -> StoredFact:
    """Return the fact as the store keeps it."""
    fact = {name: json.dumps(one) if isinstance(one, list) else one for name, one in fact_values(course, 1).items()}
    rows = []
    for ordinal, one in enumerate(course.members):
        for item in evidence_values(one) or [{}]:
            tables: dict[Any, dict[str, Any]] = {FactRow: fact, FactAssertionRow: {"ordinal": ordinal}}
            tables |= {AssertionRow: assertion_values(one, 1, day(0)), EvidenceRow: item}
            rows.append(tuple(tables[table].get(name) for table, name in COLUMNS))
    [found] = stored_facts(rows)
    return found


def instants(courses: list[FactHistory]) -> list[datetime]:
    """Return the moments at which something may change, and those just before and after."""
    moments = {one.members[0].said_at for one in courses}
    moments |= {moment for one in courses for span in one.spans for moment in (span.start, span.end) if moment}
    return sorted(moment + shift for moment in moments for shift in (-TICK, timedelta(), TICK))


def views_say_what_the_timeline_says(history: History) -> None:
    courses = sorted(history.at_once().courses(), key=lambda one: one.members[0].order)
    snapshot = Snapshot(LENA, 1, tuple(sorted(map(held, courses), key=lambda one: one.order)))
    assert [one.id for one in snapshot.facts] == [one.id for one in courses]
    kept: View | None = None
    for at in instants(courses):
        if kept is None or not kept.is_valid_at(at):
            kept = View(snapshot, at)
        known = [fact for fact in facts_at(courses, at) if fact.is_served]
        assert [one.id for one in kept.served] == [fact.id for fact in known]
        for one, fact in zip(kept.served, known, strict=True):
            served = kept.fact(one)
            assert (served.status, served.valid_from, served.valid_to) == (fact.status, fact.valid_from, fact.valid_to)
            assert (served.statement, served.support, served.evidence) == (fact.statement, fact.support, fact.evidence)
        past = {fact.id for fact in facts_at(courses, at) if not fact.is_served}
        assert {one.id for one in kept.past} <= past


def test_a_view_says_what_the_timeline_says() -> None:
    holds_for(60, histories(), views_say_what_the_timeline_says)

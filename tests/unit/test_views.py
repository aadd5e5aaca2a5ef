"""What may be served at an instant: a view says of every fact what the timeline says, at every instant."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from afterword.facts.assertions import OWNER
from afterword.facts.fact import Fact
from afterword.facts.validity.fact_history import FactHistory, facts_at
from afterword.recall.unit_table import UnitTable
from afterword.store.fact_details import DETAILS
from afterword.store.reading.fact_rows import KINDS, StoredFact, stored_facts
from afterword.store.reading.snapshots import ScopeVersion, Snapshot
from afterword.store.reading.views import View
from afterword.store.rows import assertion_values, evidence_values, fact_values
from afterword.store.tables import AssertionRow, EvidenceRow, FactRow
from histories import LENA, History, day, histories, holds_for

TICK = timedelta(microseconds=1)


def stored(history: FactHistory) -> StoredFact:
    """Return the fact as the store holds it, read back from a row that a database would give."""
    fact = {
        name: json.dumps(value) if isinstance(value, list) else value for name, value in fact_values(history, 1).items()
    }
    rows = []
    first = history.members[0]
    for ordinal, member in enumerate(history.members):
        for evidence in evidence_values(member) or [{}]:
            tables: dict[Any, dict[str, Any]] = {FactRow: fact, AssertionRow: assertion_values(member, 1, day(0))}
            details = [(tables | {EvidenceRow: evidence})[table].get(name) for table, name in DETAILS]
            turn, start = evidence.get("turn"), evidence.get("start")
            order = member.said_at, member.session_id or "", turn or 0, start or 0, history.id
            source = evidence.get("session_id")
            rows.append(
                (
                    *order,
                    *(ordinal, evidence.get("ordinal") or 0, None if member.id == first.id else member.id),
                    *(int(member.id == history.lead.id), KINDS.index(member.kind), len(member.statement)),
                    *(fact["spans"], None if fact["may_be"] == "[]" else fact["may_be"], None),
                    *(None if source == (member.session_id or "") else source, turn, member.former_name is not None),
                    *(None if member.subject == OWNER else member.subject, day(0)),
                    None if fact["contested_by"] == "[]" else fact["contested_by"],
                    json.dumps(details, default=datetime.isoformat),
                )
            )
    [found] = stored_facts(rows)
    return found


def instants(courses: list[FactHistory]) -> list[datetime]:
    """Return the moments at which something may change, and those just before and after."""
    moments = {one.members[0].said_at for one in courses}
    moments |= {moment for one in courses for span in one.spans for moment in (span.start, span.end) if moment}
    return sorted(moment + shift for moment in moments for shift in (-TICK, timedelta(), TICK))


def without_record(fact: Fact) -> Fact:
    """Return the fact without the time at which it was learned, which a store alone knows."""
    return replace(fact, recorded_at=None, exceptions=tuple(map(without_record, fact.exceptions)))


def views_say_what_the_timeline_says(history: History) -> None:
    courses = sorted(history.at_once().courses(), key=lambda one: one.members[0].order)
    table = UnitTable().revised((), map(stored, courses))
    assert [table.unit_at(place).id for place in table.by_order.tolist()] == [one.id for one in courses]
    snapshot = Snapshot(LENA, ScopeVersion(1, 1), table)
    view: View | None = None
    for at in instants(courses):
        if view is None or not view.is_valid_at(at):
            view = View(snapshot, at, view)
        known = [fact for fact in facts_at(courses, at) if fact.is_served]
        served = list(view.facts_at(view.served_fact_places()))
        assert list(map(without_record, served)) == known
        assert list(map(without_record, view.lists.all_facts())) == facts_at(courses, at)
        past = {fact.id for fact in facts_at(courses, at) if not fact.is_served}
        assert {table.unit_at(place).id for place in view.is_past.nonzero()[0].tolist()} <= past
        afresh = View(snapshot, at)
        assert (view.is_served.tolist(), view.is_past.tolist()) == (afresh.is_served.tolist(), afresh.is_past.tolist())


def test_a_view_says_what_the_timeline_says() -> None:
    holds_for(60, histories(), views_say_what_the_timeline_says)


def stored_facts_say_what_their_histories_say(history: History) -> None:
    for course in history.at_once().courses():
        fact = stored(course)
        lead = course.lead
        assert (fact.kind, fact.value, fact.statement) == (lead.kind, lead.value, lead.statement)
        assert [member.id for member in fact.history(LENA).members] == [member.id for member in course.members]


def test_a_stored_fact_says_what_its_history_says() -> None:
    holds_for(40, histories(), stored_facts_say_what_their_histories_say)

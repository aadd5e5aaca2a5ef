"""One fact: its sentence, its history, its quotes in their transcript, and what a person may do about it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from starlette.responses import Response
from starlette.routing import BaseRoute

from afterword import Fact, FactOrigin, RecordedVerdict, RunEffect, ScopeMemory
from afterword.client.values import OWNER, Assertion
from afterword.errors import ArgumentInvalid, NotFound
from afterword.server.pages.transcript_marks import ShownTurn, shown_turn
from afterword.server.pages.visit import SCOPE, Visit, page_route

TURNS_AROUND = 2
MOST_SESSIONS = 5


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """What happened to a fact at an instant: somebody said it, or a verdict was given."""

    at: datetime
    saying: Assertion | None = None
    verdict: RecordedVerdict | None = None


@dataclass(frozen=True, slots=True)
class QuotedSession:
    """A session that a fact rests on: the turns with its quotes, and those around them."""

    session_id: str
    turns: tuple[ShownTurn, ...]


def history_entries(origin: FactOrigin) -> tuple[HistoryEntry, ...]:
    """Return what happened to a fact, the oldest first."""
    entries = [HistoryEntry(said.said_at, saying=said) for said in origin.assertions]
    entries += [HistoryEntry(recorded.later.said_at, verdict=recorded) for recorded in origin.verdicts]
    return tuple(sorted(entries, key=lambda entry: (entry.at, entry.saying is None)))


async def quoted_sessions(memory: ScopeMemory, facts: Sequence[Fact]) -> tuple[QuotedSession, ...]:
    """Return the quotes of facts in their transcripts, of the latest sessions only."""
    numbers: dict[str, set[int]] = {}
    for evidence in (evidence for fact in facts for evidence in fact.evidence):
        if evidence.session_id is not None and evidence.turn is not None:
            numbers.setdefault(evidence.session_id, set()).add(evidence.turn)
    sessions = []
    for session_id in list(numbers)[-MOST_SESSIONS:]:
        try:
            details = await memory.session(session_id)
        except NotFound:
            continue  # it was imported without its transcript
        near = {number + step for number in numbers[session_id] for step in range(-TURNS_AROUND, TURNS_AROUND + 1)}
        turns = tuple(shown_turn(read, session_id, facts) for read in details.turns if read.turn.number in near)
        sessions.append(QuotedSession(session_id, turns))
    return tuple(sessions)


async def show_fact_page(visit: Visit) -> Response:
    """Show a fact with its history and its quotes."""
    origin = await visit.memory.history(visit.path_value("fact_id"))
    return visit.render(
        "fact.html",
        fact=origin.fact,
        origin=origin,
        history=history_entries(origin),
        sessions=await quoted_sessions(visit.memory, [origin.fact]),
    )


async def save_edited(visit: Visit) -> Response:
    """Correct a fact: its sentence, its value, or whom it is about."""
    fact_id = visit.path_value("fact_id")
    fact = await visit.memory.fact(fact_id)
    sent = {name: visit.form.get(name, "").strip() for name in ("statement", "about")}
    if sent["about"] == visit.memory.scope.id != fact.subject:
        sent["about"] = OWNER
    meant: dict[str, str] = {}
    if sent["statement"] and sent["statement"] != fact.statement:
        meant["statement"] = sent["statement"]
    if sent["about"] and sent["about"] != fact.subject:
        meant["about"] = sent["about"]
    if not meant:
        raise ArgumentInvalid(visit.reader.text("fact.nothing_changed"))
    changed = visit.form.get("changed") == "yes"
    return await _changed(visit, "edit", lambda: visit.memory.edit(fact_id, changed=changed, **meant))


async def save_confirmed(visit: Visit) -> Response:
    """Mark a fact as confirmed by a person."""
    return await _changed(visit, "confirm", lambda: visit.memory.confirm(visit.path_value("fact_id")))


async def save_withdrawn(visit: Visit) -> Response:
    """Withdraw a fact."""
    return await _changed(visit, "withdraw", lambda: visit.memory.withdraw(visit.path_value("fact_id")))


async def save_flagged(visit: Visit) -> Response:
    """Say whether an agent must never miss a fact."""
    flagged = visit.form.get("flagged") == "yes"
    return await _changed(visit, "flag", lambda: visit.memory.flag(visit.path_value("fact_id"), flagged=flagged))


async def save_remembered(visit: Visit) -> Response:
    """Remember a sentence that a person types in."""
    statement = visit.form.get("statement", "")
    return await _changed(visit, "remember", lambda: visit.memory.remember_text(statement))


async def _changed(visit: Visit, action: str, work: Callable[[], Awaitable[RunEffect]]) -> Response:
    """Carry out a change, and return to the fact as it is now."""
    effect = await visit.change(action, work)
    shown_facts = [fact for fact in effect.facts if fact.is_served] or list(effect.facts)
    fact_id = shown_facts[0].id if shown_facts else visit.request.path_params.get("fact_id")
    path = visit.path_to("facts", fact_id) if fact_id else visit.path_to("memory")
    return visit.redirect(path, done="held" if effect.run.status == "held" else action, run=effect.run.id)


FACT = f"{SCOPE}/facts/{{fact_id}}"
ROUTES: list[BaseRoute] = [
    page_route(f"{SCOPE}/facts", save_remembered, is_change=True),
    page_route(FACT, show_fact_page),
    page_route(f"{FACT}/edit", save_edited, is_change=True),
    page_route(f"{FACT}/confirm", save_confirmed, is_change=True),
    page_route(f"{FACT}/withdraw", save_withdrawn, is_change=True),
    page_route(f"{FACT}/flag", save_flagged, is_change=True),
]

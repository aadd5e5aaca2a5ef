"""Pages of facts with their history, and of sessions as conversations in which quotes are marked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import pairwise
from typing import NamedTuple
from urllib.parse import quote

from starlette.responses import Response
from starlette.routing import BaseRoute

from afterword import (
    Fact,
    FactOrigin,
    ProcessingOptions,
    RecordedVerdict,
    RunEffect,
    ScopeMemory,
    SessionOutcome,
    TurnFacts,
)
from afterword.client.values import HIDDEN_TURNS, OWNER, SECRET_MASK, Assertion, Evidence
from afterword.errors import NotFound
from afterword.server.pages.visit import PER_PAGE, SCOPE, PagePosition, Visit, page_or_last, page_route

TURNS_AROUND = 2
MOST_SESSIONS = 5
MOST_TURNS = 100

FACT, SESSION = f"{SCOPE}/facts/{{fact_id}}", f"{SCOPE}/sessions/{{session_id}}"


@dataclass(frozen=True, slots=True)
class MarkedStretch:
    """A part of a turn's text. `fact_ids` are the ids of the facts that quote it."""

    text: str
    fact_ids: tuple[str, ...] = ()
    is_masked: bool = False
    is_pasted: bool = False


@dataclass(frozen=True, slots=True)
class ShownTurn:
    """A turn, split into marked and unmarked parts. `is_hidden` means that it was said off the record."""

    number: int
    speaker: str
    role: str
    said_at: datetime | None
    stretches: tuple[MarkedStretch, ...]
    is_hidden: bool


@dataclass(frozen=True, slots=True)
class _Mark:
    start: int
    end: int
    fact_id: str | None = None
    is_masked: bool = False
    is_pasted: bool = False


def quote_place(text: str, evidence: Evidence) -> tuple[int, int] | None:
    """Return start and end of a quote in the text of its turn, or None if the text does not contain it."""
    start = evidence.start
    if start is None or text[start : start + len(evidence.quote)] != evidence.quote:
        start = text.find(evidence.quote)
    return (start, start + len(evidence.quote)) if evidence.quote and start >= 0 else None


def marked_turn(read: TurnFacts, session_id: str, facts: Iterable[Fact]) -> ShownTurn:
    """Return a turn in which the quotes of these facts, masked secrets and pasted text are marked."""
    turn = read.turn
    marks = [_Mark(*match.span(), is_masked=True) for match in SECRET_MASK.finditer(turn.text)]
    marks += [_Mark(stretch.start, stretch.end, is_pasted=True) for stretch in read.pasted]
    marks += [
        _Mark(*place, fact_id=fact.id)
        for fact in facts
        for evidence in fact.evidence
        if evidence.session_id == session_id and evidence.turn == turn.number
        if (place := quote_place(turn.text, evidence)) is not None
    ]
    stretches = tuple(_split_at_marks(turn.text, marks))
    return ShownTurn(turn.number, turn.speaker, str(turn.role), turn.said_at, stretches, turn.text in HIDDEN_TURNS)


def _split_at_marks(text: str, marks: Sequence[_Mark]) -> Iterator[MarkedStretch]:
    for start, end in pairwise(
        sorted({0, len(text), *(border for mark in marks for border in (mark.start, mark.end))})
    ):
        over = [mark for mark in marks if mark.start <= start and end <= mark.end]
        yield MarkedStretch(
            text[start:end],
            tuple(dict.fromkeys(mark.fact_id for mark in over if mark.fact_id is not None)),
            any(mark.is_masked for mark in over),
            any(mark.is_pasted for mark in over),
        )


class HistoryEntry(NamedTuple):
    """One event in the history of a fact: somebody stated it, or two statements of it were compared.

    `is_confirmation` means that a person only confirmed what was said before.
    """

    at: datetime
    assertion: Assertion | None = None
    verdict: RecordedVerdict | None = None
    is_confirmation: bool = False


class QuotedSession(NamedTuple):
    """A session that a fact quotes: the quoted turns, and those around them."""

    session_id: str
    turns: list[ShownTurn]


async def quoted_sessions(memory: ScopeMemory, fact: Fact) -> list[QuotedSession]:
    """Return the turns that a fact quotes, and those around them, of its latest sessions."""
    numbers: dict[str, set[int]] = {}
    for evidence in fact.evidence:
        if evidence.session_id is not None and evidence.turn is not None:
            numbers.setdefault(evidence.session_id, set()).add(evidence.turn)
    sessions = []
    for session_id in list(numbers)[-MOST_SESSIONS:]:
        near = {number + step for number in numbers[session_id] for step in range(-TURNS_AROUND, TURNS_AROUND + 1)}
        with suppress(NotFound):  # it was imported without its transcript
            read = (await memory.session(session_id)).turns
            turns = [marked_turn(turn, session_id, [fact]) for turn in read if turn.turn.number in near]
            sessions.append(QuotedSession(session_id, turns))
    return sessions


def history_entries(origin: FactOrigin) -> list[HistoryEntry]:
    """Return the history of a fact, oldest first. A verdict on several equal statements is listed once."""
    verdicts = {
        (recorded.verdict.later_id, recorded.verdict.relation, recorded.earlier.statement, recorded.effect): recorded
        for recorded in reversed(origin.verdicts)
    }
    entries = [
        HistoryEntry(recorded.later.said_at, verdict=recorded, is_confirmation=_is_confirmation(recorded))
        for recorded in reversed(verdicts.values())
    ]
    restatements = {entry.verdict.later.id for entry in entries if entry.verdict and entry.is_confirmation}
    entries += [HistoryEntry(said.said_at, assertion=said) for said in origin.assertions if said.id not in restatements]
    return sorted(entries, key=lambda entry: (entry.at, entry.assertion is None))


async def show_fact_page(visit: Visit) -> Response:
    """Show a fact with its history, the oldest first, and its quotes."""
    origin = await visit.memory.history(visit.path_value("fact_id"))
    return visit.render(
        "fact.html",
        fact=origin.fact,
        origin=origin,
        history=history_entries(origin),
        sessions=await quoted_sessions(visit.memory, origin.fact),
    )


def _is_confirmation(recorded: RecordedVerdict) -> bool:
    verdict, is_equal = recorded.verdict, recorded.earlier.statement == recorded.later.statement
    return is_equal and verdict.judge == "person" and verdict.relation == "same"


async def save_fact_edit(visit: Visit) -> Response:
    """Correct a fact: its sentence, its value, or whom it is about."""
    fact_id = visit.path_value("fact_id")
    fact = await visit.memory.fact(fact_id)
    statement, about = (visit.form.get(name, "").strip() for name in ("statement", "about"))
    if about == visit.memory.scope.id != fact.subject:
        about = OWNER
    sent, known = {"statement": statement, "about": about}, {"statement": fact.statement, "about": fact.subject}
    meant = {name: words for name, words in sent.items() if words and words != known[name]} or {"statement": statement}
    changed = visit.form.get("changed") == "yes"
    return await _change_and_show_fact(visit, "edit", lambda: visit.memory.edit(fact_id, changed=changed, **meant))


async def confirm_or_withdraw_fact(visit: Visit, action: str) -> Response:
    """Confirm or withdraw a fact, as `action` says, on behalf of a person."""
    return await _change_and_show_fact(
        visit, action, lambda: getattr(visit.memory, action)(visit.path_value("fact_id"))
    )


async def save_fact_flag(visit: Visit) -> Response:
    """Flag a fact that an agent must never miss, or remove the flag."""
    flagged = visit.form.get("flagged") == "yes"
    return await _change_and_show_fact(
        visit, "flag", lambda: visit.memory.flag(visit.path_value("fact_id"), flagged=flagged)
    )


async def remember_sentence(visit: Visit) -> Response:
    """Remember a sentence that a person types in."""
    return await _change_and_show_fact(
        visit, "remember", lambda: visit.memory.remember_text(visit.form.get("statement", ""))
    )


async def _change_and_show_fact(visit: Visit, action: str, work: Callable[[], Awaitable[RunEffect]]) -> Response:
    """Carry out a change, and show the fact to which it added a statement, else the fact that the path names."""
    effect = await visit.carry_out(action, work)
    facts = [(change.after, change.before.assertion_ids if change.before else ()) for change in effect.changes]
    ids = [after.id for after, before in facts if after is not None and not set(after.assertion_ids) <= set(before)]
    fact_id = next(iter(ids), visit.request.path_params.get("fact_id"))
    path = visit.path_to("facts", fact_id) if fact_id else visit.path_to("memory")
    return visit.redirect(path, done="held" if effect.run.status == "held" else action, run=effect.run.id)


async def show_sessions(visit: Visit) -> Response:
    """Show the sessions of a memory, the newest first."""
    rows = partial(visit.memory.sessions, limit=PER_PAGE, newest_first=True)
    listed, page = await page_or_last(rows, visit.page_number())
    return visit.render("sessions.html", sessions=listed.sessions, page=page)


async def show_session(visit: Visit) -> Response:
    """Show a session as a conversation. Each turn has its marks, and the facts that quote it."""
    details = await visit.memory.session(visit.path_value("session_id"))
    page = PagePosition.of(len(details.turns), visit.page_number(), MOST_TURNS)
    shown = details.turns[page.first_row : page.first_row + MOST_TURNS]
    turns = [
        (marked_turn(read, details.session.session_id, read.facts), numbered_facts_by_id(read.facts)) for read in shown
    ]
    hidden = sum(read.turn.text in HIDDEN_TURNS for read in details.turns)
    return visit.render("session.html", details=details, turns=turns, page=page, hidden=hidden)


def numbered_facts_by_id(facts: Sequence[Fact]) -> dict[str, tuple[int | None, Fact]]:
    """Return facts by their ids, each with the number that is shown at its quote. A single fact has no number."""
    return {fact.id: (number if len(facts) > 1 else None, fact) for number, fact in enumerate(facts, 1)}


async def preview_reprocessing(visit: Visit) -> Response:
    """Process a session again, and show what would change. Nothing is applied."""
    session_id = visit.path_value("session_id")
    async with visit.recording_change("reprocess"):
        report = await visit.memory.reprocess(session_id, options=ProcessingOptions(apply=False))
    result = report.sessions[0].result
    outcome, reason = (result, "") if isinstance(result, SessionOutcome) else (None, result.reason)
    return visit.render("proposal.html", session_id=session_id, outcome=outcome, reason=reason)


async def queue_session_again(visit: Visit) -> Response:
    """Queue a failed session again."""
    session_id = visit.path_value("session_id")
    async with visit.recording_change("retry"):
        await visit.app.retry(session_id, scope=visit.memory.scope)
    visit.request.app.state.background.enqueue_session(visit.memory.scope, session_id)
    return visit.redirect(visit.path_to("sessions", quote(session_id, safe="")), done="retry")


ROUTES: list[BaseRoute] = [
    page_route(f"{SCOPE}/facts", remember_sentence, is_change=True),
    page_route(FACT, show_fact_page),
    page_route(f"{FACT}/edit", save_fact_edit, is_change=True),
    *(
        page_route(f"{FACT}/{name}", partial(confirm_or_withdraw_fact, action=name), is_change=True)
        for name in ("confirm", "withdraw")
    ),
    page_route(f"{FACT}/flag", save_fact_flag, is_change=True),
    page_route(f"{SCOPE}/sessions", show_sessions),
    page_route(SESSION, show_session),
    page_route(f"{SESSION}/again", preview_reprocessing, is_change=True),
    page_route(f"{SESSION}/retry", queue_session_again, is_change=True),
]

"""Sessions: their list, and one as a conversation with its facts, what was left out, and reading it again."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from starlette.responses import Response
from starlette.routing import BaseRoute

from afterword import Fact, ProcessingOptions, SessionDetails, SessionPage
from afterword.client.values import SessionOutcome
from afterword.server.pages.list_pages import PER_PAGE, PageOfList, page_or_last
from afterword.server.pages.transcript_marks import ShownTurn, is_off_record, shown_turn
from afterword.server.pages.visit import SCOPE, Visit, page_route

MOST_TURNS = 100


@dataclass(frozen=True, slots=True)
class ConversationTurn:
    """A turn with its marks, and the facts beside it."""

    turn: ShownTurn
    facts: tuple[Fact, ...]


def conversation(details: SessionDetails, first: int) -> tuple[ConversationTurn, ...]:
    """Return the turns of a session from `first` on, each with the facts that rest on it."""
    session_id = details.session.session_id
    return tuple(
        ConversationTurn(shown_turn(read, session_id, read.facts), read.facts)
        for read in details.turns[first : first + MOST_TURNS]
    )


async def show_sessions(visit: Visit) -> Response:
    """Show the sessions of a memory, the newest first."""

    async def rows(first_row: int) -> SessionPage:
        return await visit.memory.sessions(limit=PER_PAGE, offset=first_row, newest_first=True)

    listed, page = await page_or_last(rows, visit.page_number())
    return visit.render("sessions.html", sessions=listed.sessions, page=page)


async def show_session(visit: Visit) -> Response:
    """Show a session as a conversation."""
    details = await visit.memory.session(visit.path_value("session_id"))
    page = PageOfList.of(len(details.turns), visit.page_number(), MOST_TURNS)
    turns = conversation(details, page.first_row)
    hidden = sum(is_off_record(read.turn.text) for read in details.turns)
    return visit.render("session.html", details=details, turns=turns, page=page, hidden=hidden)


async def read_session_again(visit: Visit) -> Response:
    """Read a session again, and show the difference before anything is applied."""
    session_id = visit.path_value("session_id")
    async with visit.recorded("reprocess"):
        report = await visit.memory.reprocess(session_id, options=ProcessingOptions(apply=False))
    result = report.sessions[0].result
    outcome = result if isinstance(result, SessionOutcome) else None
    reason = "" if isinstance(result, SessionOutcome) else result.reason
    return visit.render("proposal.html", session_id=session_id, outcome=outcome, reason=reason)


async def try_session_again(visit: Visit) -> Response:
    """Queue a failed session again."""
    session_id = visit.path_value("session_id")
    async with visit.recorded("retry"):
        await visit.app.retry(session_id, scope=visit.memory.scope)
    visit.request.app.state.background.wake(visit.memory.scope, session_id)
    return visit.redirect(visit.path_to("sessions", quote(session_id, safe="")), done="retry")


SESSION = f"{SCOPE}/sessions/{{session_id}}"
ROUTES: list[BaseRoute] = [
    page_route(f"{SCOPE}/sessions", show_sessions),
    page_route(SESSION, show_session),
    page_route(f"{SESSION}/again", read_session_again, is_change=True),
    page_route(f"{SESSION}/retry", try_session_again, is_change=True),
]

"""Add the web pages to the service, with sign-in, sign-out, the start page, and the reader's display settings."""

from __future__ import annotations

from urllib.parse import quote

from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from afterword import Afterword
from afterword.errors import AfterwordError, KeyInvalid
from afterword.server.pages import fact_pages, memory_pages, operations_page, run_pages
from afterword.server.pages.rendering import (
    KEYS_COOKIE,
    LANGUAGE_COOKIE,
    LANGUAGES,
    PREFIX,
    STATIC_FILES,
    ZONE_COOKIE,
    ReaderSettings,
    page_path_or_empty,
    render_template,
    scope_path,
    zone_by_name,
)
from afterword.server.pages.visit import (
    SESSION_COOKIE,
    SIGNED_IN_S,
    BrowserSession,
    BrowserSessions,
    Visit,
    Visitor,
    find_browser_session_and_count,
    page_route,
    read_form,
    show_error,
)

YEAR_S = 365 * 24 * 3600

PAGES = (operations_page, memory_pages, fact_pages, run_pages)


async def show_sign_in(request: Request) -> Response:
    """Show the sign-in form, which asks for an API key."""
    if await find_browser_session_and_count(request) is not None:
        return RedirectResponse(f"{PREFIX}/", 303)
    values = {"target": page_path_or_empty(request.query_params.get("next", "")), "is_refused": False}
    return render_template(request, ReaderSettings.of(request), "sign_in.html", values)


async def sign_in(request: Request) -> Response:
    """Sign a browser in with an API key, and end its former session. Raises `Refused`."""
    form, app = await read_form(request), request.app.state.afterword
    target = page_path_or_empty(form.get("next", ""))
    try:
        key = await app.keys.verify(form.get("key", "").strip())
    except KeyInvalid:
        values = {"target": target, "is_refused": True}
        return render_template(request, ReaderSettings.of(request), "sign_in.html", values, status=401)
    await request.app.state.shared.count_or_refuse_request(request, key)
    sessions: BrowserSessions = request.app.state.browser_sessions
    sessions.end(request.cookies.get(SESSION_COOKIE))
    answer = RedirectResponse(target or f"{PREFIX}/", 303)
    _set_session_cookie(request, answer, sessions.begin(Visitor(key)))
    return answer


async def open_link(request: Request) -> Response:
    """Sign the operator in by a one-time link.

    The answer is a page that moves on by itself, not a redirect. After a redirect that began on another site, a browser
    would not send the cookie, because it has SameSite=Strict.
    """
    sessions, reader = request.app.state.browser_sessions, ReaderSettings.of(request)
    target = sessions.use_link(request.query_params.get("link", "")) if request.method == "GET" else None
    if target is None:
        values = {"title": reader.text("error.link"), "detail": "", "number": 403, "back": ""}
        return render_template(request, reader, "error.html", values, status=403)
    answer = render_template(request, reader, "opened.html", {"target": target})
    _set_session_cookie(request, answer, sessions.begin(Visitor.local()))
    return answer


async def sign_out(visit: Visit) -> Response:
    """End the session of the browser."""
    visit.request.app.state.browser_sessions.end(visit.session.id)
    answer = RedirectResponse(f"{PREFIX}/sign-in", 303)
    answer.delete_cookie(SESSION_COOKIE, path=PREFIX, httponly=True, samesite="strict")
    return answer


async def redirect_to_start(visit: Visit) -> Response:
    """Redirect to the key's own memory, or to the operations page if it has none."""
    own = visit.visitor.key.scope
    return RedirectResponse(f"{PREFIX}/operations" if own is None else f"{scope_path(own)}/memory", 303)


async def save_reader_settings(request: Request) -> Response:
    """Store the chosen language, time zone and shortcuts in cookies, and redirect to the page."""
    form = await read_form(request)
    answer = RedirectResponse(page_path_or_empty(form.get("next", "")) or f"{PREFIX}/", 303)
    zone = form.get("zone", "").strip()
    choices = {
        LANGUAGE_COOKIE: form.get("language") if form.get("language") in LANGUAGES else None,
        ZONE_COOKIE: quote(zone, safe="") if zone_by_name(zone) is not None else None,
        KEYS_COOKIE: "on" if form.get("keys") else "off",
    }
    for name, choice in choices.items():
        if choice is not None:
            _set_cookie(request, answer, name, choice, age_s=YEAR_S)
    return answer


def _set_session_cookie(request: Request, answer: Response, session: BrowserSession) -> None:
    _set_cookie(request, answer, SESSION_COOKIE, session.id, age_s=SIGNED_IN_S, httponly=True)


def _set_cookie(
    request: Request, answer: Response, name: str, value: str, *, age_s: int, httponly: bool = False
) -> None:
    is_encrypted = "https" in (request.url.scheme, request.headers.get("x-forwarded-proto"))
    answer.set_cookie(
        name, value, max_age=age_s, path=PREFIX, httponly=httponly, samesite="strict", secure=is_encrypted
    )


ROUTES: list[BaseRoute] = [
    Route("/sign-in", show_sign_in),
    Route("/sign-in", sign_in, methods=["POST"]),
    Route("/open", open_link),
    Route("/reader", save_reader_settings, methods=["POST"]),
    page_route("/sign-out", sign_out, is_change=True),
    page_route("/", redirect_to_start),
]


def add_pages(service: FastAPI, app: Afterword) -> None:
    """Add the pages to the service, below `/pages`."""
    pages = Starlette(
        routes=[
            Mount("/static", STATIC_FILES),
            *ROUTES,
            *(route for pages in PAGES for route in pages.ROUTES),
        ],
        exception_handlers=dict.fromkeys((AfterwordError, HTTPException, Exception), show_error),
    )
    pages.state.afterword = app
    pages.state.shared = service.state.shared
    pages.state.background = service.state.background
    pages.state.browser_sessions = service.state.browser_sessions = BrowserSessions()
    service.router.routes += [Route("/", _redirect_to_pages), Route(PREFIX, _redirect_to_pages), Mount(PREFIX, pages)]


async def _redirect_to_pages(_: Request) -> Response:
    return RedirectResponse(f"{PREFIX}/", 303)


def one_time_link(service: FastAPI, path: str) -> str:
    """Return the address of a link that signs the operator in once, and leads to `path` below `/pages`."""
    sessions: BrowserSessions = service.state.browser_sessions
    return f"{PREFIX}/open?link={sessions.make_link(f'{PREFIX}/{path}')}"

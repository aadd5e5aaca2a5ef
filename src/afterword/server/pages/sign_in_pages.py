"""Signing in with a key or a one-time link, signing out, the first page, and the reader's choices."""

from __future__ import annotations

from urllib.parse import quote, unquote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from afterword import Afterword
from afterword.errors import KeyInvalid
from afterword.server.pages.reader import KEYS_COOKIE, LANGUAGE_COOKIE, ZONE_COOKIE, Reader, zone_by_name
from afterword.server.pages.rendering import PREFIX, render_template, scope_path
from afterword.server.pages.sign_in import SIGNED_IN_S, BrowserSession, BrowserSessions, Visitor
from afterword.server.pages.texts import LANGUAGES
from afterword.server.pages.visit import SESSION_COOKIE, Visit, check_rate, page_route, sent_form, signed_in

YEAR_S = 365 * 24 * 3600


async def show_sign_in(request: Request) -> Response:
    """Show the form that takes a key."""
    if await signed_in(request) is not None:
        return RedirectResponse(f"{PREFIX}/", 303)
    return _sign_in_form(request, request.query_params.get("next", ""))


def _sign_in_form(request: Request, target: str, *, is_refused: bool = False) -> Response:
    reader = Reader.of(request)
    values = {"target": own_path(target), "is_refused": is_refused}
    return render_template(request, reader, "sign_in.html", values, status=401 if is_refused else 200)


async def sign_in(request: Request) -> Response:
    """Turn a key into a session of the browser. A session that it had before ends. Raises `Refused`."""
    form = await sent_form(request)
    app: Afterword = request.app.state.afterword
    try:
        key = await app.keys.verify(form.get("key", "").strip())
    except KeyInvalid:
        return _sign_in_form(request, form.get("next", ""), is_refused=True)
    await check_rate(request, key)
    sessions: BrowserSessions = request.app.state.sessions
    sessions.end(request.cookies.get(SESSION_COOKIE))
    answer = RedirectResponse(own_path(form.get("next", "")) or f"{PREFIX}/", 303)
    _set_session(request, answer, sessions.begin(Visitor(key)))
    return answer


async def open_link(request: Request) -> Response:
    """Sign the operator in who followed a one-time link.

    The page leads on by itself: a browser would not send a strict cookie along with a redirect from elsewhere.
    """
    sessions: BrowserSessions = request.app.state.sessions
    reader = Reader.of(request)
    target = sessions.use_link(request.query_params.get("link", "")) if request.method == "GET" else None
    if target is None:
        values = {"title": reader.text("error.link"), "detail": "", "status": 403}
        return render_template(request, reader, "error.html", values, status=403)
    answer = render_template(request, reader, "opened.html", {"target": target})
    _set_session(request, answer, sessions.begin(Visitor.local()))
    return answer


async def sign_out(visit: Visit) -> Response:
    """End the session of the browser."""
    sessions: BrowserSessions = visit.request.app.state.sessions
    sessions.end(visit.session.id)
    answer = RedirectResponse(f"{PREFIX}/sign-in", 303)
    answer.delete_cookie(SESSION_COOKIE, path=PREFIX, httponly=True, samesite="strict")
    return answer


async def show_first(visit: Visit) -> Response:
    """Lead to the memory of the key, or to the list of memories."""
    if visit.visitor.key.scope is not None:
        return RedirectResponse(f"{scope_path(visit.visitor.key.scope)}/memory", 303)
    return RedirectResponse(f"{PREFIX}/operations", 303)


async def set_reader(request: Request) -> Response:
    """Keep the language, the zone and the shortcuts that a reader has chosen, and return to the page."""
    form = await sent_form(request)
    answer = RedirectResponse(own_path(form.get("next", "")) or f"{PREFIX}/", 303)
    choices = {}
    if form.get("language") in LANGUAGES:
        choices[LANGUAGE_COOKIE] = form["language"]
    zone = form.get("zone", "").strip()
    if zone_by_name(zone) is not None:
        choices[ZONE_COOKIE] = quote(zone, safe="")
    choices[KEYS_COOKIE] = "on" if form.get("keys") else "off"
    for name, choice in choices.items():
        answer.set_cookie(name, choice, max_age=YEAR_S, path=PREFIX, samesite="strict", secure=_is_encrypted(request))
    return answer


def own_path(target: str) -> str:
    """Return a path if it leads to one of the pages, else an empty text: no sign-in leads to another site."""
    is_own = target.startswith(f"{PREFIX}/") and "//" not in unquote(target) and "\\" not in unquote(target)
    return target if is_own and target.isprintable() else ""


def _set_session(request: Request, answer: Response, session: BrowserSession) -> None:
    answer.set_cookie(
        SESSION_COOKIE,
        session.id,
        max_age=SIGNED_IN_S,
        path=PREFIX,
        httponly=True,
        samesite="strict",
        secure=_is_encrypted(request),
    )


def _is_encrypted(request: Request) -> bool:
    return "https" in (request.url.scheme, request.headers.get("x-forwarded-proto"))


ROUTES: list[BaseRoute] = [
    Route("/sign-in", show_sign_in),
    Route("/sign-in", sign_in, methods=["POST"]),
    Route("/open", open_link),
    Route("/reader", set_reader, methods=["POST"]),
    page_route("/sign-out", sign_out, is_change=True),
    page_route("/", show_first),
]

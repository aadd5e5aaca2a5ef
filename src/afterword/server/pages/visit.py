"""One visit of a page: who looks, at whose memory, and what was sent. Every page is reached through `page_route`."""

from __future__ import annotations

import hmac
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from afterword import Afterword, ApiKey, RunEffect, Scope, ScopeMemory
from afterword.errors import AfterwordError, KeyInvalid, NotFound, ScopeInvalid
from afterword.server.access import NO_SUCH_MEMORY, Service
from afterword.server.pages.reader import Reader
from afterword.server.pages.rendering import PREFIX, address, render_template, scope_path
from afterword.server.pages.sign_in import BrowserSession, BrowserSessions, Visitor
from afterword.server.paths import path_part
from afterword.server.problems import Refused, status_of

SESSION_COOKIE = "afterword_session"
MOST_FIELDS = 100
SCOPE = "/{tenant}/{scope_kind}/{scope_id}"


@dataclass(slots=True)
class Visit:
    """A request for a page by somebody who is signed in."""

    request: Request
    app: Afterword
    session: BrowserSession
    reader: Reader
    scope: Scope | None = None
    form: dict[str, str] = field(default_factory=dict)

    @property
    def visitor(self) -> Visitor:
        """Who looks."""
        return self.session.visitor

    @property
    def memory(self) -> ScopeMemory:
        """The memory that the path names. Raises `Refused` if it names none."""
        if self.scope is None:
            raise Refused(404, NO_SUCH_MEMORY)
        return self.app.scope(self.scope)

    def query(self, name: str) -> str:
        """Return a parameter of the address without white space around it, empty if it is not there."""
        return self.request.query_params.get(name, "")[:2000].strip()

    def page_number(self) -> int:
        """Return the number of the page of a list, from 1."""
        number = self.query("page")
        return max(1, int(number)) if number.isascii() and number.isdecimal() and len(number) < 7 else 1

    def path_value(self, name: str) -> str:
        """Return a part of the path as it was meant."""
        return path_part(str(self.request.path_params[name]))

    def path_to(self, *parts: str) -> str:
        """Return the path of a page of this memory."""
        if self.scope is None:
            return "/".join((PREFIX, *parts))
        return "/".join((scope_path(self.scope), *parts))

    def render(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """Return a page."""
        shared = {
            "visitor": self.visitor,
            "may_write": not self.visitor.key.is_read_only,
            "csrf": self.session.csrf,
            "scope": self.scope,
            "base": self.path_to(),
            "done": self.done(),
        }
        return render_template(self.request, self.reader, template, {**shared, **values}, status=status)

    def done(self) -> dict[str, str] | None:
        """Return what the change before this page did, as the address says; None if it says nothing known."""
        name, run = self.query("done"), self.query("run")
        text = self.reader.text_or(f"done.{name}", "")
        is_number = run.isascii() and run.isdecimal() and len(run) < 12
        return {"text": text, "run": run if is_number else ""} if text else None

    def redirect(self, path: str, **query: object) -> Response:
        """Return the way to the next page after a change."""
        return RedirectResponse(address(path, **query), 303)

    @asynccontextmanager
    async def recorded(self, action: str) -> AsyncIterator[None]:
        """Record a change in the audit, and the runs that it makes."""
        async with self.app.requests.begin(self.visitor.key_for(self.scope), action, scope=self.scope):
            yield

    async def change(self, action: str, work: Callable[[], Awaitable[RunEffect]]) -> RunEffect:
        """Return what a change did, recorded in the audit."""
        async with self.recorded(action):
            return await work()


Page = Callable[[Visit], Awaitable[Response]]


def page_route(path: str, page: Page, *, is_change: bool = False) -> Route:
    """Return the route of a page for signed-in visitors; with `is_change` it answers a form that was sent."""

    async def endpoint(request: Request) -> Response:
        session = await signed_in(request)
        if session is None:
            return _to_sign_in(request)
        visit = Visit(request, request.app.state.afterword, session, Reader.of(request))
        visit.scope = _scope_in_path(visit)
        if is_change:
            visit.form = await sent_form(request)
            check_form(visit.form, session.csrf)
            if session.visitor.key.is_read_only:
                raise Refused(403, "this key may only read")
        return await page(visit)

    return Route(path, endpoint, methods=["POST" if is_change else "GET"])


def for_administrators(page: Page) -> Page:
    """Return a page that others than administrators are refused."""

    async def checked(visit: Visit) -> Response:
        if not visit.visitor.key.is_admin:
            raise Refused(403, "this needs an admin key")
        return await page(visit)

    return checked


async def signed_in(request: Request) -> BrowserSession | None:
    """Return the session of a browser, None if it has none, or if its key may no longer be used.

    Raises `Refused` if too many requests were made with the key.
    """
    sessions: BrowserSessions = request.app.state.sessions
    session = sessions.find(request.cookies.get(SESSION_COOKIE))
    if session is None or session.visitor.is_local:
        return session
    service: Service = request.app.state.service
    try:
        key = await service.app.keys.get(session.visitor.key.id)
    except (KeyInvalid, NotFound):
        sessions.end(session.id)
        return None
    await check_rate(request, key)
    # The key may open another memory by now: a rename or a merge moves it.
    return replace(session, visitor=Visitor(key))


async def check_rate(request: Request, key: ApiKey) -> None:
    """Count a request with a key. Raises `Refused` if there were too many."""
    service: Service = request.app.state.service
    request.state.key_id = key.id
    if not await service.limiter.hit(service.limit, key.id):
        raise Refused(429, "too many requests with this key")


def _to_sign_in(request: Request) -> Response:
    target = request.url.path if request.method == "GET" else ""
    return RedirectResponse(address(f"{PREFIX}/sign-in", next=target if target != f"{PREFIX}/" else ""), 303)


def _scope_in_path(visit: Visit) -> Scope | None:
    """Return the scope that the path names. Raises `Refused` alike if it is unknown or another one's."""
    if "scope_id" not in visit.request.path_params:
        return None
    tenant, *names = (visit.path_value(name) for name in ("tenant", "scope_kind", "scope_id"))
    try:
        scope = Scope.parse("/".join((tenant, *names)))
    except ScopeInvalid:
        raise Refused(404, NO_SUCH_MEMORY) from None
    if scope.tenant != tenant or not visit.visitor.opens(scope):
        raise Refused(404, NO_SUCH_MEMORY)
    return scope


async def sent_form(request: Request) -> dict[str, str]:
    """Return the fields of a form. Raises `Refused` for another body, or for a page of another site."""
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site", "same-origin")
    is_own = origin is None or urlsplit(origin).netloc == request.headers.get("host")
    if not is_own or site not in ("same-origin", "none"):
        raise Refused(403, "forms of other sites are refused")
    if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        raise Refused(415, "send a form")
    try:
        text = (await request.body()).decode("ascii")
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_FIELDS))
    except ValueError:
        raise Refused(400, "the form cannot be read") from None


def check_form(form: dict[str, str], csrf: str) -> None:
    """Raise `Refused` unless a form was made for this browser."""
    if not hmac.compare_digest(form.get("csrf", "").encode(), csrf.encode()):
        raise Refused(403, "this form has expired; open the page again")


def _status_and_detail(error: Exception) -> tuple[int, str]:
    """Return the status of an error, and what its page says. The message of a fault of the store names its address."""
    match error:
        case Refused():
            return error.status, error.detail
        case HTTPException():
            return error.status_code, ""
        case AfterwordError():
            is_about_request = error.is_usage or isinstance(error, NotFound)
            return status_of(error), str(error) if is_about_request else ""
        case _:
            return 500, ""


async def show_error(request: Request, error: Exception) -> Response:
    """Return the page that tells of an error."""
    status, detail = _status_and_detail(error)
    reader = Reader.of(request)
    title = reader.text_or(f"error.{status}", reader.text("error.500"))
    values = {"title": title, "detail": "" if status == 404 else detail, "status": status}
    return render_template(request, reader, "error.html", values, status=status)

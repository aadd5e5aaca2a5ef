"""A request for a page: who is signed in, which memory they look at, and the form that they sent."""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from afterword import Afterword, ApiKey, FactPage, RunEffect, RunPage, Scope, ScopeMemory, SessionPage
from afterword.errors import AfterwordError, KeyInvalid, NotFound
from afterword.server.access import (
    NO_SUCH_MEMORY,
    SharedByRoutes,
    accessible_scope,
    bearer,
    parse_number,
    verify_key,
)
from afterword.server.pages.rendering import (
    PREFIX,
    ReaderSettings,
    address,
    page_address,
    page_path_or_empty,
    render_template,
    scope_path,
)
from afterword.server.problems import Refused, http_status_of
from afterword.server.request_paths import decode_path_part, encoded_path
from afterword.server.request_types import LONGEST_NAME, LONGEST_TEXT

SIGNED_IN_S = 12 * 3600
"""How long a browser stays signed in."""
LINK_S = 600
"""How long a one-time link may be used."""
MOST_SIGNED_IN = 10_000
MOST_OF_ONE_KEY = 20
"""How many browsers one key can sign in. One more signs out the first of them, never one of another key."""
LOCAL_KEY_ID = "inspect"
"""The key id in the audit log for `afterword inspect`, which uses no key."""

SESSION_COOKIE = "afterword_session"
MOST_FIELDS = 100
SCOPE = "/{tenant}/{scope_kind}/{scope_id}"
PER_PAGE = 50
SHOWN_STATUSES = ("current", "contested", "pending", "superseded", "retracted", "expired")
"""The statuses of facts in the order in which pages name them."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """A person who looks at the pages: the holder of a key, or with `is_local` the operator of this machine.

    The operator may open every memory of the store, and needs no stored key.
    """

    key: ApiKey
    is_local: bool = False

    @classmethod
    def local(cls) -> Visitor:
        """Return the operator of this machine."""
        key = ApiKey(LOCAL_KEY_ID, "afterword inspect", "default", None, False, True, created_at=datetime.now(UTC))
        return cls(key, is_local=True)

    def opens(self, scope: Scope) -> bool:
        """Return whether the visitor may see the memory of a scope."""
        return self.is_local or self.key.opens(scope)

    @property
    def tenant(self) -> str | None:
        """The tenant whose memories an administrator sees, or None for the operator, who sees all."""
        return None if self.is_local else self.key.tenant

    def key_in_audit_log(self, scope: Scope | None) -> ApiKey:
        """Return the key that the audit log names for a change of a scope."""
        return replace(self.key, tenant=scope.tenant) if self.is_local and scope is not None else self.key


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """A signed-in browser. Every form must contain `csrf`, so that no other site can submit one."""

    id: str = field(repr=False)
    visitor: Visitor
    csrf: str = field(repr=False)
    expires: float


@dataclass(slots=True)
class BrowserSessions:
    """The signed-in browsers and the unused one-time links of a process."""

    clock: Callable[[], float] = time.time
    _sessions: dict[str, BrowserSession] = field(default_factory=dict, repr=False)
    _links: dict[str, tuple[float, str]] = field(default_factory=dict, repr=False)

    def begin(self, visitor: Visitor) -> BrowserSession:
        """Sign a visitor in, and return the session. Its id is always new, which prevents session fixation."""
        now = self.clock()
        self._sessions = {name: session for name, session in self._sessions.items() if session.expires > now}
        # Sessions are stored in the order in which they began.
        of_key = [session.id for session in self._sessions.values() if session.visitor.key.id == visitor.key.id]
        for session_id in of_key[: 1 - MOST_OF_ONE_KEY]:
            self.end(session_id)
        if len(self._sessions) >= MOST_SIGNED_IN:
            self.end(next(iter(self._sessions)))
        session = BrowserSession(secrets.token_urlsafe(32), visitor, secrets.token_urlsafe(24), now + SIGNED_IN_S)
        self._sessions[session.id] = session
        return session

    def find(self, session_id: str | None) -> BrowserSession | None:
        """Return a session that has not expired, None otherwise."""
        session = self._sessions.get(session_id or "")
        return session if session is not None and session.expires > self.clock() else None

    def end(self, session_id: str | None) -> None:
        """End a session, if there is one with this id."""
        self._sessions.pop(session_id or "", None)

    def make_link(self, path: str) -> str:
        """Return the secret of a link that signs the operator in once and leads to `path`."""
        secret = secrets.token_urlsafe(32)
        self._links[secret] = (self.clock() + LINK_S, path)
        return secret

    def use_link(self, secret: str) -> str | None:
        """Use up a link, and return the path that it leads to. Return None if it is unknown, used or expired."""
        expires, path = self._links.pop(secret, (0.0, ""))
        return path if expires > self.clock() else None


@dataclass(slots=True)
class Visit:
    """A request for a page by somebody who is signed in."""

    request: Request
    app: Afterword
    session: BrowserSession
    reader: ReaderSettings
    scope: Scope | None = None
    form: dict[str, str] = field(default_factory=dict)

    @property
    def visitor(self) -> Visitor:
        """The person who is signed in."""
        return self.session.visitor

    @property
    def memory(self) -> ScopeMemory:
        """The memory that the path names. Raises `Refused` if it names none."""
        if self.scope is None:
            raise Refused(404, NO_SUCH_MEMORY)
        return self.app.scope(self.scope)

    def query_value(self, name: str) -> str:
        """Return a query parameter, stripped and cut to 2,000 characters, or an empty text if it is missing."""
        return self.request.query_params.get(name, "")[:2000].strip()

    def page_number(self) -> int:
        """Return which page of a list is requested, counted from 1."""
        return max(1, parse_number(self.query_value("page"), most_digits=6) or 1)

    def path_value(self, name: str) -> str:
        """Return a decoded part of the path."""
        return decode_path_part(str(self.request.path_params[name]))

    def scope_in_path(self) -> Scope | None:
        """Return the scope that the path names, or None. Raises `Refused` if the visitor may not open it."""
        if "scope_id" not in self.request.path_params:
            return None
        parts = [self.path_value(name) for name in ("tenant", "scope_kind", "scope_id")]
        return accessible_scope("/".join(parts), self.visitor.opens, tenant=parts[0])

    def path_to(self, *parts: str) -> str:
        """Return the path of a page of this memory."""
        return "/".join((PREFIX if self.scope is None else scope_path(self.scope), *parts))

    def render(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """Render a template with these values and those that every page needs."""
        shared = {
            "visitor": self.visitor,
            "may_write": not self.visitor.key.is_read_only,
            "csrf": self.session.csrf,
            "scope": self.scope,
            "base": self.path_to(),
            "done": self.done_message(),
        }
        return render_template(self.request, self.reader, template, {**shared, **values}, status=status)

    def done_message(self) -> dict[str, str] | None:
        """Return a message about the change that led to this page, which the address names, or None."""
        run, text = self.query_value("run"), self.reader.text_or(f"done.{self.query_value('done')}", "")
        return {"text": text, "run": "" if parse_number(run, most_digits=11) is None else run} if text else None

    def redirect(self, path: str, **query: object) -> Response:
        """Return a redirect to the next page after a change."""
        return RedirectResponse(address(path, **query), 303)

    @asynccontextmanager
    async def recording_change(self, action: str) -> AsyncIterator[None]:
        """Record the change in this block in the audit log, with the runs that it makes."""
        async with self.app.requests.begin(self.visitor.key_in_audit_log(self.scope), action, scope=self.scope):
            yield

    async def carry_out(self, action: str, work: Callable[[], Awaitable[RunEffect]]) -> RunEffect:
        """Carry out a change, record it in the audit log, and return what it did."""
        async with self.recording_change(action):
            return await work()


def page_route(
    path: str, page: Callable[[Visit], Awaitable[Response]], *, is_change: bool = False, is_for_admins: bool = False
) -> Route:
    """Return the route of a page for signed-in visitors, or with `is_for_admins` for administrators alone.

    With `is_change`, the route receives a form.
    """

    async def endpoint(request: Request) -> Response:
        session = await find_browser_session_and_count(request)
        if session is None:
            target = page_address(request) if request.method == "GET" else ""
            return RedirectResponse(address(f"{PREFIX}/sign-in", next=target if target != f"{PREFIX}/" else ""), 303)
        visit = Visit(request, request.app.state.afterword, session, ReaderSettings.of(request))
        visit.scope = visit.scope_in_path()
        if is_change:
            visit.form = await read_form(request)
            _check_may_change(session, visit.form)
        if is_for_admins and not session.visitor.key.is_admin:
            raise Refused(403, "this needs an admin key")
        return await page(visit)

    return Route(path, endpoint, methods=["POST" if is_change else "GET"])


def _check_may_change(session: BrowserSession, form: Mapping[str, str]) -> None:
    if not hmac.compare_digest(form.get("csrf", "").encode(), session.csrf.encode()):
        raise Refused(403, "this form has expired; open the page again")
    if session.visitor.key.is_read_only:
        raise Refused(403, "this key may only read")


async def find_browser_session_and_count(request: Request) -> BrowserSession | None:
    """Return the session of a browser, or None if it has none or its key is no longer valid.

    Raises `Refused` if too many requests were made with the key.
    """
    session = await _valid_session(request, request.app.state.browser_sessions)
    if session is not None and not session.visitor.is_local:
        await request.app.state.shared.count_or_refuse_request(request, session.visitor.key)
    return session


async def _valid_session(request: Request, sessions: BrowserSessions) -> BrowserSession | None:
    """Return the session of a browser with its key as it is now, None if there is none or its key is not valid."""
    session = sessions.find(request.cookies.get(SESSION_COOKIE))
    if session is None or session.visitor.is_local:
        return session
    shared: SharedByRoutes = request.app.state.shared
    try:
        key = await shared.app.keys.get(session.visitor.key.id)
    except (KeyInvalid, NotFound):
        sessions.end(session.id)
        return None
    # The key may open another memory by now: a rename or a merge moves it.
    return replace(session, visitor=Visitor(key))


async def sender_key_id(request: Request) -> str:
    """Return the id of the key that a request carries, or that its browser is signed in with.

    Raises `Refused` and `KeyInvalid`.
    """
    session = await _valid_session(request, request.app.state.browser_sessions)
    key = await verify_key(request, await bearer(request)) if session is None else session.visitor.key
    return key.id


async def read_form(request: Request) -> dict[str, str]:
    """Return the fields of a form. Raises `Refused` if there is none, or it is too long or from another site."""
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site", "same-origin")
    is_own = origin is None or urlsplit(origin).netloc == request.headers.get("host")
    if not is_own or site not in ("same-origin", "none"):
        raise Refused(403, "forms of other sites are refused")
    if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        raise Refused(415, "the request must contain a form")
    try:
        text = (await request.body()).decode("ascii")
        form = dict(parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_FIELDS))
    except ValueError:
        raise Refused(400, "the form cannot be read") from None
    if any(len(value) > (LONGEST_NAME if name == "about" else LONGEST_TEXT) for name, value in form.items()):
        raise Refused(400, "the text is too long; make it shorter")
    return form


async def show_error(request: Request, error: Exception) -> Response:
    """Return an error page. It leaves out the message of a database error, which contains the URL of the database."""
    page = _error_page(request, error)
    if isinstance(error, Refused):
        page.headers.update(error.headers or {})
    return page


def _error_page(request: Request, error: Exception) -> Response:
    reader, (status, detail) = ReaderSettings.of(request), _status_and_detail(error)
    # What a form names existed when its page was shown. So it was removed in the meantime, which is a conflict.
    title_status = 409 if status == 404 and request.method == "POST" else status
    values = {
        "title": reader.text_or(f"error.{title_status}", reader.text("error.500")),
        "detail": "" if status == 404 else detail,
        "number": status,
        "back": _page_before(request),
    }
    session = request.app.state.browser_sessions.find(request.cookies.get(SESSION_COOKIE))
    if session is None:
        return render_template(request, reader, "error.html", values, status=status)
    visit = Visit(request, request.app.state.afterword, session, reader, session.visitor.key.scope)
    with suppress(Refused, AfterwordError):
        visit.scope = visit.scope_in_path() or visit.scope
    return visit.render("error.html", status=status, **values)


def _status_and_detail(error: Exception) -> tuple[int, str]:
    """Return the HTTP status of an error, and its message if a visitor may read it."""
    match error:
        case Refused():
            return error.status_code, error.detail
        case HTTPException():
            return error.status_code, ""
        case AfterwordError():
            status = http_status_of(error)
            return status, str(error) if error.is_usage or status == 409 else ""
    return 500, ""


def _page_before(request: Request) -> str:
    """Return the address of the page that led to this request, empty if it is unknown or the same."""
    before = urlsplit(request.headers.get("referer", ""))
    path = page_path_or_empty(f"{before.path}?{before.query}" if before.query else before.path)
    is_same = request.method == "GET" and before.path == encoded_path(request)
    return "" if is_same or before.netloc != request.headers.get("host") else path


@dataclass(frozen=True, slots=True)
class PagePosition:
    """The position of a page in a list."""

    number: int
    last: int
    total: int
    per_page: int = PER_PAGE

    @classmethod
    def of(cls, total: int, number: int, per_page: int = PER_PAGE) -> PagePosition:
        """Return the position of page `number`, or of the last page if there are fewer."""
        last = max(1, -(-total // per_page))
        return cls(min(number, last), last, total, per_page)

    @property
    def first_row(self) -> int:
        """The index of the page's first row in the list, from 0."""
        return (self.number - 1) * self.per_page


Rows = TypeVar("Rows", FactPage, RunPage, SessionPage)


async def page_or_last(rows_from: Callable[..., Awaitable[Rows]], number: int) -> tuple[Rows, PagePosition]:
    """Return the rows and the position of a page. If the list has fewer pages, return those of its last page.

    `rows_from` reads the rows of one page, starting at `offset`.
    """
    rows = await rows_from(offset=(number - 1) * PER_PAGE)
    page = PagePosition.of(rows.total, number)
    return (rows if page.number == number else await rows_from(offset=page.first_row)), page

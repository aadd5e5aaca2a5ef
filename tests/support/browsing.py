"""A browser without JavaScript for the pages of the service: it keeps cookies, reads forms, and sends them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import httpx
from fastapi import FastAPI

from afterword import Afterword
from afterword.server.app import create_app
from afterword.setting_sections import ServerOptions
from service import running

ORIGIN = "http://localhost"
VOID = frozenset("area base br col embed hr img input link meta source track wbr rect".split())


@dataclass
class Form:
    """A form of a page, with the values that are filled in."""

    action: str
    method: str
    fields: dict[str, str] = field(default_factory=dict)


class PageContent(HTMLParser):
    """What a page consists of: tags, texts, forms, addresses."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.forms: list[Form] = []
        self.texts: list[str] = []
        self.open_tags: list[str] = []
        self.faults: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.tags.append((tag, values))
        if tag not in VOID:
            self.open_tags.append(tag)
        if tag == "form":
            self.forms.append(Form(values.get("action") or "", values.get("method") or "get"))
        name = values.get("name")
        is_off = values.get("type") in ("radio", "checkbox") and "checked" not in values
        if tag in ("input", "textarea") and name and self.forms and not is_off:
            self.forms[-1].fields[name] = values.get("value") or ""

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open_tags:
            while self.open_tags and (last := self.open_tags.pop()) != tag:
                if last not in ("p", "li"):
                    self.faults.append(f"<{last}> is closed by </{tag}>")

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        """All texts of the page."""
        return "".join(self.texts)

    def form(self, action_end: str) -> Form:
        """Return the form that is sent to an address with this end."""
        return next(form for form in self.forms if form.action.endswith(action_end))


@dataclass
class Visitor:
    """Somebody who looks at the pages."""

    http: httpx.AsyncClient
    app: Afterword
    service: FastAPI

    async def sign_in(self, *, user: str | None = "mira", **rights: Any) -> str:
        """Sign in with a new key, and return the id of the key."""
        made = await self.app.keys.create(user=user, **rights)
        answer = await self.post("/pages/sign-in", {"key": made.secret})
        assert answer.status_code == 303, answer.text
        return made.key.id

    async def post(self, path: str, fields: dict[str, str], **headers: str) -> httpx.Response:
        """Send a form as a browser does."""
        return await self.http.post(path, data=fields, headers={"Origin": ORIGIN, **headers})

    async def open(self, path: str) -> PageContent:
        """Return a page."""
        answer = await self.http.get(path, follow_redirects=True)
        assert answer.status_code == 200, (path, answer.status_code, answer.text)
        return PageContent(answer.text)

    async def send(self, page: PageContent, action_end: str, **fields: str) -> httpx.Response:
        """Send a form of a page with some of its fields filled in."""
        form = page.form(action_end)
        return await self.post(form.action, {**form.fields, **fields})


@asynccontextmanager
async def visiting(app: Afterword, **options: Any) -> AsyncIterator[Visitor]:
    """Yield a visitor of the pages of this store."""
    service = create_app(app, ServerOptions(**options))
    transport = httpx.ASGITransport(service, raise_app_exceptions=False)
    async with (
        running(service),
        httpx.AsyncClient(transport=transport, base_url=ORIGIN) as http,
    ):
        yield Visitor(http, app, service)

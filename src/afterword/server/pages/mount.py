"""The pages as a part of the service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route

from afterword import Afterword
from afterword.errors import AfterwordError
from afterword.server.pages import (
    context_page,
    fact_page,
    forget_page,
    memory_page,
    operations_page,
    own_data_page,
    review_page,
    run_page,
    session_page,
    sign_in_pages,
)
from afterword.server.pages.rendering import PREFIX, prepare_pages
from afterword.server.pages.sign_in import BrowserSessions
from afterword.server.pages.static_files import send_static
from afterword.server.pages.visit import show_error
from afterword.server.problems import Refused


def add_pages(service: FastAPI, app: Afterword) -> None:
    """Add the pages to the service, below `/pages`."""
    pages = Starlette(
        routes=[
            Route("/static/{name}", send_static),
            *sign_in_pages.ROUTES,
            *operations_page.ROUTES,
            *memory_page.ROUTES,
            *fact_page.ROUTES,
            *session_page.ROUTES,
            *context_page.ROUTES,
            *review_page.ROUTES,
            *run_page.ROUTES,
            *own_data_page.ROUTES,
            *forget_page.ROUTES,
        ],
        exception_handlers=dict.fromkeys((AfterwordError, Refused, HTTPException, Exception), show_error),
    )
    pages.state.afterword = app
    pages.state.service = service.state.service
    pages.state.background = service.state.background
    pages.state.sessions = service.state.browser_sessions = BrowserSessions()
    service.state.lifespans.append(_prepared)
    service.router.routes += [Route("/", _to_pages), Route(PREFIX, _to_pages), Mount(PREFIX, pages)]


@asynccontextmanager
async def _prepared() -> AsyncIterator[None]:
    """Prepare the pages before the service answers, since the first visitor would wait longer for it."""
    await asyncio.to_thread(prepare_pages)
    yield


async def _to_pages(_: Request) -> Response:
    return RedirectResponse(f"{PREFIX}/", 303)


def one_time_link(service: FastAPI, path: str) -> str:
    """Return the path that signs the operator in once, and leads to `path` below the pages."""
    sessions: BrowserSessions = service.state.browser_sessions
    return f"{PREFIX}/open?link={sessions.make_link(f'{PREFIX}/{path}')}"

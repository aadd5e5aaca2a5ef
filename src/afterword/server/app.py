"""Build the FastAPI application: routes, middleware, and the OpenAPI document."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

from fastapi import APIRouter, Depends, FastAPI
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import BaseRoute

import afterword
from afterword.errors import AfterwordError
from afterword.server import admin_routes, memory_routes, session_routes
from afterword.server.access import SharedByRoutes, authenticate_caller, select_memory_in_path, select_own_memory
from afterword.server.answer_forms import ready_json
from afterword.server.background import BackgroundWork
from afterword.server.mcp.http import MCP_HEADERS, add_mcp
from afterword.server.pages.mount import add_pages
from afterword.server.pages.rendering import preload_templates_and_texts
from afterword.server.pages.visit import sender_key_id
from afterword.server.problems import MEDIA_TYPE, UNAVAILABLE, add_error_handlers, problem_response
from afterword.server.request_guard import RequestGuard
from afterword.server.request_types import ProblemDetails
from afterword.setting_sections import ServerOptions

LOOPBACK = ("localhost", "127.0.0.1", "::1")
ALLOWED_HEADERS = ("Authorization", "Content-Type", "Idempotency-Key", "If-None-Match", "X-Request-ID")
"""The request headers that web pages of allowed origins may send, besides those that browsers always allow."""
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": text,
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}},
    }
    for status, text in {
        400: "The request cannot be carried out as it is.",
        401: "No key, or one that is unknown, revoked or expired.",
        403: "The key lacks the right.",
        404: "There is nothing of this name, or the key does not open it.",
        405: "The method is not allowed here.",
        408: "The body took too long.",
        409: "It conflicts with the present state, or the same request is still worked on.",
        413: "The body is too long.",
        421: "The service does not answer for this host.",
        422: "The body or a parameter does not fit, or the idempotency key belongs to another request.",
        429: "Too many requests with this key.",
        503: "The store or a model does not answer now.",
    }.items()
}
"""The error responses of all routes, as the OpenAPI document describes them."""


def create_app(app: afterword.Afterword, options: ServerOptions | None = None) -> FastAPI:
    """Return the application that serves a store. The caller opens and closes the store."""
    options = options or app.settings.server
    service = _DescribedService(
        title="afterword",
        version=afterword.__version__,
        summary="What agents remember after a session ends.",
        lifespan=_lifespan,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=_operation_id,
        strict_content_type=False,
        # It would contain error messages, and URLs, which hold people's names and questions.
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    service.state.shared = SharedByRoutes(app, options.requests_per_minute)
    service.state.background = BackgroundWork(app)
    add_error_handlers(service)
    _add_middleware(service, options)
    _add_probes(service)
    add_mcp(service, app, origins=options.cors_origins, longest_body_bytes=options.longest_body_bytes)
    add_pages(service, app)
    service.router.routes += _api_routes()
    _add_openapi_route(service)
    return service


def _add_middleware(service: FastAPI, options: ServerOptions) -> None:
    if options.cors_origins:
        service.add_middleware(
            CORSMiddleware,
            allow_origins=options.cors_origins,
            allow_methods=["GET", "POST", "PATCH", "DELETE"],
            allow_headers=[*ALLOWED_HEADERS, *MCP_HEADERS],
            expose_headers=["ETag", "Location", "Idempotency-Replayed", "Retry-After", "X-Request-ID"],
        )
    service.add_middleware(
        RequestGuard,
        hosts=(*LOOPBACK, options.host, *options.allowed_hosts),
        longest_body_bytes=options.longest_body_bytes,
        body_timeout_s=options.body_timeout_s,
        sender_key_id=sender_key_id,
    )


@cache
def _api_routes() -> tuple[BaseRoute, ...]:
    """Return the routes of the API. All applications of a process share them.

    FastAPI analyses routes at the first request, which takes as long as many requests.
    """
    api = APIRouter(generate_unique_id_function=_operation_id, strict_content_type=False)
    api.include_router(memory_routes.text_router, responses=PROBLEMS)
    memory_router = APIRouter()
    for routes in (memory_routes, session_routes):
        memory_router.include_router(routes.router)
    for prefix, tag, select_memory in (
        ("/v1/me", "own memory", select_own_memory),
        ("/v1/scopes/{tenant}/{scope_kind}/{scope_id}", "a memory by its name", select_memory_in_path),
    ):
        api.include_router(
            memory_router, prefix=prefix, tags=[tag], dependencies=[Depends(select_memory)], responses=PROBLEMS
        )
    api.include_router(admin_routes.router, responses=PROBLEMS)
    return tuple(api.routes)


@asynccontextmanager
async def _lifespan(service: FastAPI) -> AsyncIterator[None]:
    await asyncio.to_thread(preload_templates_and_texts)
    async with service.state.background.running_until_block_ends(), service.state.mcp_sessions.run():
        yield


def _add_probes(service: FastAPI) -> None:
    """Add the liveness and readiness probes. They need no key, and their answers contain no words or ids."""

    @service.get("/healthz", tags=["probes"], responses={421: PROBLEMS[421]})
    async def healthz() -> dict[str, str]:
        """Return that the process runs."""
        return {"status": "ok"}

    @service.get(
        "/readyz",
        tags=["probes"],
        response_model=ready_json.model,
        responses={421: PROBLEMS[421], 503: PROBLEMS[503]},
    )
    async def readyz() -> JSONResponse:
        """Return whether the store can be read and written, and the periodic jobs that failed when they last ran."""
        try:
            app = service.state.shared.app
            await app.check()
            failed = [job.name for job in await app.jobs() if job.failure]
        except AfterwordError:
            return problem_response(503, UNAVAILABLE)
        return JSONResponse(ready_json(failed))


class _DescribedService(FastAPI):
    """An application whose OpenAPI document also has the schema of error responses, which no route declares."""

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI document."""
        document = super().openapi()
        document.setdefault("components", {}).setdefault("schemas", {})["ProblemDetails"] = (
            ProblemDetails.model_json_schema()
        )
        return document


def _add_openapi_route(service: FastAPI) -> None:
    @service.get(
        "/openapi.json",
        tags=["document"],
        response_model=dict[str, Any],
        dependencies=[Depends(authenticate_caller)],
        responses=PROBLEMS,
    )
    async def openapi_document() -> JSONResponse:
        """Return this document."""
        return JSONResponse(service.openapi())


def _operation_id(route: APIRoute) -> str:
    return ("my_" if route.path.startswith("/v1/me/") else "") + route.name

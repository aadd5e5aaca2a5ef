"""A client of the service in the test's own process, and the keys of its users."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import httpx
from fastapi import FastAPI
from jsonschema import Draft202012Validator

import afterword
from afterword import Afterword
from afterword.server.app import create_app
from afterword.setting_sections import ServerOptions
from afterword.settings import Settings


@cache
def service_document() -> dict[str, Any]:
    """Return the OpenAPI document of the service."""
    return create_app(afterword.open("sqlite://", settings=Settings()), ServerOptions()).openapi()


@cache
def _validators(method: str) -> list[tuple[re.Pattern[str], dict[int, Draft202012Validator]]]:
    """Return for each path of a method the schemas of its JSON answers, by status. Keys that they lack are refused."""
    document = service_document()
    schemas = {
        name: {**each, "additionalProperties": False} for name, each in document["components"]["schemas"].items()
    }
    return [
        (
            re.compile(re.sub(r"\{\w+\}", "[^/]+", path)),
            {
                int(status): Draft202012Validator({**media["schema"], "components": {"schemas": schemas}})
                for status, answer in operations[method]["responses"].items()
                for kind, media in answer.get("content", {}).items()
                if kind == "application/json"
            },
        )
        for path, operations in document["paths"].items()
        if method in operations
    ]


async def check_documented(answer: httpx.Response) -> None:
    """Check that an answer in JSON has the form that the document of the service declares. It lists no pages."""
    path = answer.request.url.raw_path.decode().partition("?")[0]
    if answer.headers.get("Content-Type") == "application/json" and not path.startswith("/pages/"):
        await answer.aread()
        validators = next(each for route, each in _validators(answer.request.method.lower()) if route.fullmatch(path))
        validators[answer.status_code].validate(answer.json())


@dataclass
class ServiceClient:
    """Calls the service with the keys of several users, by their names."""

    http: httpx.AsyncClient
    app: Afterword
    secrets: dict[str, str] = field(default_factory=dict)

    async def secret(self, user: str, **rights: Any) -> str:
        """Return a key of a user, made at first use."""
        name = f"{user} {rights}"
        if name not in self.secrets:
            self.secrets[name] = (await self.app.keys.create(user=user, **rights)).secret
        return self.secrets[name]

    async def __call__(
        self, method: str, path: str | httpx.URL, *, user: str = "mira", **arguments: Any
    ) -> httpx.Response:
        """Send a request with the key of a user."""
        headers = {"Authorization": f"Bearer {await self.secret(user)}", **arguments.pop("headers", {})}
        return await self.http.request(method, path, headers=headers, **arguments)


@asynccontextmanager
async def running(service: FastAPI) -> AsyncIterator[None]:
    """Run a service without a server, in a task of its own: a fixture may end in another task than it began in."""
    begun, over = asyncio.Event(), asyncio.Event()

    async def run() -> None:
        async with service.router.lifespan_context(service):
            begun.set()
            await over.wait()

    task = asyncio.create_task(run())
    waiting = asyncio.create_task(begun.wait())
    await asyncio.wait([task, waiting], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    try:
        yield
    finally:
        over.set()
        await task


@asynccontextmanager
async def serving(app: Afterword, **options: Any) -> AsyncIterator[ServiceClient]:
    """Yield a client of a service of this store."""
    service = create_app(app, ServerOptions(**options))
    transport = httpx.ASGITransport(service, raise_app_exceptions=False)
    async with (
        running(service),
        httpx.AsyncClient(
            transport=transport, base_url="http://localhost", event_hooks={"response": [check_documented]}
        ) as http,
    ):
        yield ServiceClient(http, app)


def said(*texts: str) -> dict[str, Any]:
    """Return the saved state of an agent to which a person said these texts."""
    messages = [{"content": text, "source": "user", "type": "UserMessage"} for text in texts]
    return {"type": "AssistantAgentState", "llm_context": {"messages": messages}}

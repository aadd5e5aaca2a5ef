"""What the service answers to anything that its document allows, and to much that it does not."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uvicorn

import afterword
from afterword.server.app import create_app
from afterword.setting_sections import EmbeddingOptions, ServerOptions, StoreOptions
from afterword.settings import Settings


@dataclass(frozen=True)
class Live:
    """A service on a socket, in a thread of its own."""

    address: str
    admin_key: str


EXAMPLES, SOAK_EXAMPLES = 6, 200
"""How many requests of each route are tried."""
TIMEOUT_S = 120
"""A busy machine is no failure."""


@pytest.fixture
def live(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Live]:
    """A service on a file, or with the parameter "postgres" on PostgreSQL."""
    is_file = request.param == "file"
    url = f"sqlite:///{tmp_path}/afterword.db" if is_file else str(request.getfixturevalue("postgres_store_url"))
    begun, told = threading.Event(), list[Live]()
    servers: list[uvicorn.Server] = []

    async def run() -> None:
        settings = Settings(store=StoreOptions(url=url), embedding=EmbeddingOptions(kind="none"))
        async with afterword.open(settings=settings) as app:
            key = (await app.keys.create(user="mira", admin=True)).secret
            await app.user("mira").remember("I live in Oslo.", tags=["home"])
            config = uvicorn.Config(
                create_app(app, ServerOptions(requests_per_minute=1_000_000)), log_config=None, ws="none"
            )
            server = uvicorn.Server(config)
            servers.append(server)
            with socket.create_server(("127.0.0.1", 0)) as listening:
                told.append(Live(f"http://127.0.0.1:{listening.getsockname()[1]}", key))
                begun.set()
                await server.serve(sockets=[listening])

    thread = threading.Thread(target=asyncio.run, args=(run(),))
    thread.start()
    assert begun.wait(30)
    yield told[0]
    servers[0].should_exit = True
    thread.join(30)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("live", "examples"),
    [
        ("file", EXAMPLES),
        pytest.param("file", SOAK_EXAMPLES, marks=pytest.mark.soak),
        pytest.param("postgres", SOAK_EXAMPLES, marks=pytest.mark.soak),
    ],
    indirect=["live"],
)
def test_every_route_answers_as_the_document_says(live: Live, examples: int) -> None:
    """No fault of the server, no undocumented status or form, whatever is sent."""
    schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
    from hypothesis import HealthCheck, Phase, given, settings

    headers = {"Authorization": f"Bearer {live.admin_key}"}
    schema = schemathesis.openapi.from_url(f"{live.address}/openapi.json", headers=headers, timeout=TIMEOUT_S)
    is_soak = examples > EXAMPLES
    if not is_soak:
        # All of Unicode takes schemathesis some seconds for each parameter.
        schema.config.generation.codec = "ascii"
    budget = settings(
        max_examples=examples,
        deadline=None,
        derandomize=not is_soak,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

    chosen = [
        schemathesis.checks.not_a_server_error,
        status_code_conformance,
        content_type_conformance,
        response_schema_conformance,
    ]
    tested = 0
    for found in schema.get_all_operations():
        operation = found.ok()

        @given(case=operation.as_strategy())
        @budget
        def check(case: Any) -> None:
            case.call_and_validate(headers=headers, timeout=TIMEOUT_S, checks=chosen)

        check()
        tested += 1
    assert tested > 40
